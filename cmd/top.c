/*
 * top.c - goro top: what a program's goroutines do, live.
 *
 * Each frame is made from two answers of /debug/metrics: figures of the newer, and rates
 * from the difference; the lengths of the queues are from /debug/stats.json. On a
 * terminal it is as large as that, drawn over the frame before; elsewhere, or where
 * frames are counted, it is plain text, one frame below the other. Lines are cut at the
 * screen's edge.
 */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client.h"
#include "cmd.h"
#include "metrics.h"
#include "screen.h"
#include "terminal.h"

/* Where the right half of the lower part begins. */
#define RIGHT_COLUMN 41

struct top {
	const char *target;
	long count;		/* frames to show; 0: until it is ended */
	double seconds;		/* between two */
	bool on_terminal;
	int columns, rows;
	struct client *client;
	struct metrics now, before;
	/* of the live page, for the queues: the metrics do not have them */
	char *stats;
	double now_s, before_s;	/* when they were asked for */
};

/* --------------------------------------------------------------------- numbers */

/* "1,234", "12.3 k", "1.23 M": at most 7 characters. */
static char *short_number(double n)
{
	static const char unit[] = " kMGTP";
	int u = 0;

	if (n < 9999.5)
		return n < 10 && n > 0 && n != floor(n) ? format("%.1f", n) : with_commas((uint64_t)(n + .5));
	for (; n >= 999.5 && unit[u + 1]; u++)
		n /= 1000;
	return in_unit(n, (char[]){ unit[u], '\0' });
}

static char *span_text(double s)
{
	unsigned long n = s > 0 ? (unsigned long)s : 0;

	if (n >= 86400)
		return format("%lu d %lu h", n / 86400, n / 3600 % 24);
	return n >= 3600 ? format("%lu h %lu min", n / 3600, n / 60 % 60)
	       : n >= 60 ? format("%lu min %lu s", n / 60, n % 60) : format("%lu s", n);
}

static double value(const struct top *t, const char *name)
{
	return metrics_value(&t->now, name, "");
}

static double value_of(const struct top *t, const char *name, const char *label)
{
	return metrics_value(&t->now, name, label);
}

/* Of a counter, a second. Negative: there is no earlier answer. */
static double rate(const struct top *t, const char *name)
{
	double seconds = t->now_s - t->before_s;

	if (t->before.n == 0 || seconds <= 0)
		return -1;
	return fmax(0, value(t, name) - metrics_value(&t->before, name, "")) / seconds;
}

static char *rate_text(double r)
{
	return r < 0 ? format("-") : short_number(r);
}

/* ----------------------------------------------------------------------- lines */

static int rows_left;

static void end_line(const struct top *t)
{
	fputs(t->on_terminal ? "\033[K\r\n" : "\n", stdout);
	rows_left--;
}

/* A line, cut at the edge. */
static void line(const struct top *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void line(const struct top *t, const char *fmt, ...)
{
	char *text;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		die("out of memory");
	va_end(ap);
	printf("%.*s", t->columns - 1, text);
	free(text);
	end_line(t);
}

static void show_title(const struct top *t)
{
	char *left = format("goro top - %s, up %s", t->target,
	                    span_text((double)time(NULL) - value(t, "process_start_time_seconds")));
	char clock[16];
	time_t now = time(NULL);

	strftime(clock, sizeof clock, "%H:%M:%S", localtime(&now));
	printf("%s", colour(BOLD));
	printf("%-*.*s %s", t->columns - 10, t->columns - 10, left, clock);
	printf("%s", colour(PLAIN));
	end_line(t);
}

static void show_goroutines(const struct top *t)
{
	const char *name = "goro_goroutines";
	double running = value_of(t, name, "running"), runnable = value_of(t, name, "runnable");
	double waiting = value_of(t, name, "waiting"), calls = value_of(t, name, "syscall");

	line(t, "Goroutines %8s   running %s   runnable %s   waiting %s   in calls %s",
	     short_number(running + runnable + waiting + calls), short_number(running), short_number(runnable),
	     short_number(waiting), short_number(calls));
}

static void show_threads(const struct top *t)
{
	const char *name = "goro_threads";
	double busy = value_of(t, name, "busy"), spinning = value_of(t, name, "spinning");
	double idle = value_of(t, name, "idle");

	line(t, "Processors %8s   idle %s", short_number(value(t, "goro_gomaxprocs")),
	     short_number(value(t, "goro_idle_procs")));
	line(t, "Threads    %8s   busy %s   spinning %s   idle %s", short_number(busy + spinning + idle),
	     short_number(busy), short_number(spinning), short_number(idle));
}

static void show_process(const struct top *t)
{
	double cpu = rate(t, "process_cpu_seconds_total"), files = value(t, "process_open_fds");
	char *used = cpu < 0 ? format("-") : format("%.0f %%", 100 * cpu);

	line(t, "CPU        %8s   memory %s   stacks kept %s", used,
	     bytes_text(value(t, "process_resident_memory_bytes")), bytes_text(value(t, "goro_stack_bytes_cached")));
	line(t, "Files      %8s   at most %s", short_number(files), short_number(value(t, "process_max_fds")));
}

/* The number that follows a key of the JSON; 0 if it is not there. */
static double number_after(const char *json, const char *key)
{
	const char *at = json ? strstr(json, key) : NULL;

	return at ? strtod(at + strlen(key), NULL) : 0;
}

/* The global queue, and those of the processors. */
static void show_queues(const struct top *t)
{
	static const char key[] = "\"queue\":";
	double global = number_after(t->stats, "\"global_queue\":"), local = 0, longest = 0;

	for (const char *at = t->stats; at && (at = strstr(at, key)); at += strlen(key)) {
		double n = number_after(at, key);

		local += n;
		longest = fmax(longest, n);
	}
	line(t, "Queues     %8s   global %s   of processors %s   longest of these %s", short_number(global + local),
	     short_number(global), short_number(local), short_number(longest));
}

/* "< 1.02 us"; "-" if no goroutine was measured. */
static const char *latency(const struct top *t, double share)
{
	double s = metrics_quantile(&t->now, &t->before, "goro_sched_latency_seconds_bucket", share);

	return s < 0 ? "-" : format("< %s", time_text(s));
}

/* How long goroutines that were ready waited for a processor, since the frame before. */
static void show_latency(const struct top *t)
{
	line(t, "Ready to running     half %s   90 %% %s   99 %% %s", latency(t, .5), latency(t, .9), latency(t, .99));
}

/* ----------------------------------------------------------------- lower part */

static const struct {
	const char *name, *text;
} counters[] = {
	{ "goro_goroutines_created_total", "goroutines started" },
	{ "goro_context_switches_total", "switches" },
	{ "goro_parks_total", "waits begun" },
	{ "goro_netpoll_wakeups_total", "woken by I/O" },
	{ "goro_preemptions_total", "preemptions" },
	{ "goro_steals_total", "steals" },
	{ "goro_stolen_total", "goroutines stolen" },
	{ "goro_syscall_handoffs_total", "calls that blocked" },
	{ "goro_thread_wakeups_total", "threads woken" },
};

#define N_COUNTERS ((int)(sizeof counters / sizeof *counters))

/* is_more: something follows in the right half. */
static void show_counter(const struct top *t, int i, bool is_more)
{
	if (i < N_COUNTERS)
		printf("%-20s%9s%9s", counters[i].text, rate_text(rate(t, counters[i].name)),
		       short_number(value(t, counters[i].name)));
	if (is_more)
		printf("%*s", i < N_COUNTERS ? RIGHT_COLUMN - 38 : RIGHT_COLUMN, "");
}

static int by_value(const void *a, const void *b)
{
	double x = (*(const struct metric *const *)a)->value, y = (*(const struct metric *const *)b)->value;

	return (x < y) - (x > y);
}

/* What goroutines wait for, most first; how many reasons there are. */
static int find_reasons(const struct top *t, const struct metric **reasons, int max)
{
	int n = 0;

	for (size_t i = 0; i < t->now.n && n < max; i++)
		if (strcmp(t->now.at[i].name, "goro_goroutines_waiting") == 0 && t->now.at[i].value > 0)
			reasons[n++] = &t->now.at[i];
	qsort(reasons, (size_t)n, sizeof *reasons, by_value);
	return n;
}

static void show_reason(const struct top *t, const struct metric *r, double most)
{
	int bar = t->columns - 1 - RIGHT_COLUMN - 31;
	int full = (int)ceil(bar * r->value / most);

	printf("%-23.23s%7s ", r->label, short_number(r->value));
	for (int i = 0; i < full; i++)
		putchar('#');
}

#define REASONS_MAX 64

static void show_lower(const struct top *t)
{
	const struct metric *reasons[REASONS_MAX];
	int n = find_reasons(t, reasons, REASONS_MAX), rows = n > N_COUNTERS ? n : N_COUNTERS;

	printf("%s%-20s%9s%9s%*s%s%s", colour(DIM), "", "a second", "in all", RIGHT_COLUMN - 38, "",
	       "waiting for", colour(PLAIN));
	end_line(t);
	for (int i = 0; i < rows && rows_left > 1; i++) {
		show_counter(t, i, i < n || i == 0);
		if (i < n)
			show_reason(t, reasons[i], reasons[0]->value);
		else if (i == 0)
			printf("%s", value_of(t, "goro_goroutines", "waiting") > 0 ? "(too many to look at)" : "(nothing)");
		end_line(t);
	}
}

static void show(const struct top *t)
{
	rows_left = t->on_terminal ? t->rows : 1000;
	if (t->on_terminal)
		fputs("\033[H", stdout);
	show_title(t);
	end_line(t);
	show_goroutines(t);
	show_queues(t);
	show_threads(t);
	show_process(t);
	show_latency(t);
	end_line(t);
	show_lower(t);
	if (t->on_terminal)
		printf("\033[J\033[%d;1H%sq ends it%s", t->rows, colour(DIM), colour(PLAIN));
	else
		end_line(t);
	fflush(stdout);
}

/* Until the next frame; false: it is to end. */
static bool rest(const struct top *t)
{
	struct timespec pause = { (time_t)t->seconds, (long)(fmod(t->seconds, 1) * 1e9) };
	int key;

	if (!t->on_terminal || !isatty(STDIN_FILENO)) {
		nanosleep(&pause, NULL);
		return !terminal_ended();
	}
	key = terminal_key((int)(t->seconds * 1000));
	return key != 'q' && key != 'Q' && key != KEY_END_OF_INPUT && !terminal_ended();
}

/* ------------------------------------------------------------------------ loop */

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static bool ask(struct top *t)
{
	size_t n;
	char *text = client_get(t->client, "/debug/metrics", true, &n);

	if (!text)
		return false;
	metrics_free(&t->before);
	t->before = t->now;
	t->before_s = t->now_s;
	t->now_s = seconds_now();
	metrics_parse(&t->now, text);
	free(t->stats);
	t->stats = client_get(t->client, "/debug/stats.json", true, &n);
	return t->stats != NULL;
}

/* Where frames are counted, the first has rates, too. */
static bool watch(struct top *t)
{
	long shown = 0;

	if (!ask(t))
		return false;
	while (!terminal_ended()) {
		terminal_size(&t->columns, &t->rows);
		if (!t->on_terminal)
			t->columns = 80;
		if (t->on_terminal || shown > 0 || t->before.n > 0) {
			show(t);
			if (++shown == t->count)
				return true;
		}
		if (!rest(t))
			return true;
		if (!ask(t))
			return false;
	}
	return true;
}

static const char help[] =
	"usage: goro top [-n COUNT] [-d SECONDS] PID | ADDRESS\n"
	"\n"
	"Shows what the goroutines of a program do, each second anew: their states, what\n"
	"they wait for, queues, processors, latencies and rates. q ends it.\n"
	CLIENT_TARGETS
	"\n"
	"    -n COUNT      prints COUNT frames, as plain text\n"
	"    -d SECONDS    the time between two, instead of 1\n"
	"\n"
	"    goro top $(pidof server)\n"
	"    goro top -n 1 :6060\n";

/* False: they make no sense. */
static bool parse(struct top *t, int argc, char **argv)
{
	char *end = "";
	int option;

	while ((option = getopt(argc, argv, "n:d:")) != -1) {
		if (option == 'n')
			t->count = strtol(optarg, &end, 10);
		else if (option == 'd')
			t->seconds = strtod(optarg, &end);
		else
			return false;
		if (*end || t->count < 0 || !(t->seconds >= 0.01 && t->seconds <= 3600))
			return false;
	}
	if (optind != argc - 1)
		return false;
	t->target = argv[optind];
	return true;
}

int cmd_top(int argc, char **argv)
{
	struct top t = { .seconds = 1 };
	bool good;

	if (asks_for_help(argc, argv)) {
		fputs(help, stdout);
		return 0;
	}
	if (!parse(&t, argc, argv)) {
		fputs(help, stderr);
		return STATUS_USAGE;
	}
	t.client = client_open(t.target);
	if (!t.client)
		return STATUS_FAILED;
	t.on_terminal = isatty(STDOUT_FILENO) && t.count == 0;
	if (t.on_terminal)
		terminal_take();
	good = watch(&t);
	if (t.on_terminal)
		terminal_leave();
	if (!good && t.on_terminal)
		say("%s: the program does not answer any more", t.target);
	return good ? 0 : STATUS_FAILED;
}

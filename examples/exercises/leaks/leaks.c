/*
 * leaks.c - ten ways to leave a goroutine behind, how each is found, and how it is
 *avoided.
 *
 *	./leaks check             each as it leaks and leak-proof: what the leak check and
 *the goroutineleak profile say
 *	./leaks show NAME         leaks once, and prints both reports in full
 *	./leaks cost              memory of a leaked goroutine, by pattern
 *	./leaks growth            memory of a program that leaks, by requests served
 *
 * A piece that leaks and its leak-proof form stand side by side below.
 */
#define _GNU_SOURCE
#include "measure.h"

#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* 1. send ---------------------------------------------------------------------
 * The one who asked has given up, and nobody receives the answer.
 * Leak-proof: room for the answer, so that the sender never waits. */
static void sends_answer(goro_chan *answer)
{
	int result = 42;

	goro_sleep(GORO_MILLISECOND);
	goro_chan_send(answer, &result);
	goro_chan_unref(answer);
}

static void ask_with(size_t room)
{
	goro_chan *answer = goro_chan_of(int, room);
	int result;

	go(sends_answer, goro_chan_ref(answer));
	if (goro_select_until(GORO_NOW, GORO_RECV(answer, &result)) < 0)
		result = -ETIMEDOUT;
	goro_chan_unref(answer);
}

static void send_leaks(void) { ask_with(0); }
static void send_tidy(void) { ask_with(1); }

/* 2. receive ------------------------------------------------------------------
 * The sender finds an error and returns before it sends.
 * Leak-proof: it closes the channel on every way out. */
static void receives_one(goro_chan *job)
{
	goro_chan_recv(job, NULL);
	goro_chan_unref(job);
}

static int find_job(int *job)
{
	*job = 0;
	return -ENOENT;
}

static void receive_leaks(void)
{
	goro_chan *c = goro_chan_of(int, 0);
	int job;

	go(receives_one, goro_chan_ref(c));
	if (find_job(&job) == 0)
		goro_chan_send(c, &job);
	goro_chan_unref(c);
}

static void receive_tidy(void)
{
	goro_chan *c = goro_chan_of(int, 0);
	int job;

	go(receives_one, goro_chan_ref(c));
	if (find_job(&job) == 0)
		goro_chan_send(c, &job);
	goro_chan_close(c);
	goro_chan_unref(c);
}

/* 3. range --------------------------------------------------------------------
 * The loop ends when the channel is closed, which nobody does.
 * Leak-proof: who sends closes. */
static void ranges(goro_chan *lines)
{
	int line;

	while (goro_chan_recv(lines, &line))
		continue;
	goro_chan_unref(lines);
}

static void send_lines(bool closes)
{
	goro_chan *lines = goro_chan_of(int, 0);

	go(ranges, goro_chan_ref(lines));
	for (int i = 0; i < 3; i++)
		goro_chan_send(lines, &i);
	if (closes)
		goro_chan_close(lines);
	goro_chan_unref(lines);
}

static void range_leaks(void) { send_lines(false); }
static void range_tidy(void) { send_lines(true); }

/* 4. early return ---------------------------------------------------------------
 * Four search; the first answer is enough, and three wait to send theirs.
 * Leak-proof: room for all answers. (Or a context that they select on.) */
static void searches(goro_chan *found, int i)
{
	goro_chan_send(found, &i);
	goro_chan_unref(found);
}

static void search_with(size_t room)
{
	goro_chan *found = goro_chan_of(int, room);
	int first;

	for (int i = 0; i < 4; i++)
		go(searches, goro_chan_ref(found), i);
	goro_chan_recv(found, &first);
	goro_chan_unref(found);
}

static void early_leaks(void) { search_with(0); }
static void early_tidy(void) { search_with(4); }

/* 5. context --------------------------------------------------------------------
 * A goroutine works until its context is done. The one who made it forgets it.
 * Leak-proof: cancel it on every way out; the last goro_ctx_unref does, too. */
static void works_until_done(goro_ctx *ctx)
{
	goro_chan_recv(goro_ctx_done(ctx), NULL);
	goro_ctx_unref(ctx);
}

static void context_leaks(void)
{
	goro_ctx *ctx = goro_ctx_with_cancel(goro_ctx_background());

	go(works_until_done, goro_ctx_ref(ctx));
}

static void context_tidy(void)
{
	goro_ctx *ctx = goro_ctx_with_cancel(goro_ctx_background());

	go(works_until_done, goro_ctx_ref(ctx));
	goro_ctx_cancel(ctx);
	goro_ctx_unref(ctx);
}

/* 6. ticker ---------------------------------------------------------------------
 * Freeing a ticker ends the ticks; it does not close the channel.
 * Leak-proof: something else to select on. */
static void does_each_tick(goro_chan *ticks)
{
	while (goro_chan_recv(ticks, NULL))
		continue;
	goro_chan_unref(ticks);
}

static void ticker_leaks(void)
{
	goro_ticker *t = goro_ticker_make(GORO_MILLISECOND);

	go(does_each_tick, goro_chan_ref(goro_ticker_chan(t)));
	goro_sleep(3 * GORO_MILLISECOND);
	goro_ticker_free(t);
}

static void does_each_tick_until(goro_chan *ticks, goro_chan *end)
{
	while (goro_select(GORO_RECV(ticks, NULL), GORO_RECV(end, NULL)) == 0)
		continue;
	goro_chan_unref(ticks);
	goro_chan_unref(end);
}

static void ticker_tidy(void)
{
	goro_ticker *t = goro_ticker_make(GORO_MILLISECOND);
	goro_chan *end = goro_chan_make(0, 0);

	go(does_each_tick_until, goro_chan_ref(goro_ticker_chan(t)), goro_chan_ref(end));
	goro_sleep(3 * GORO_MILLISECOND);
	goro_ticker_free(t);
	goro_chan_close(end);
	goro_chan_unref(end);
}

/* 7. mutex ----------------------------------------------------------------------
 * One who finds an error returns with the lock held.
 * Leak-proof: one way out of the function, which unlocks. */
struct account {
	goro_mutex lock;
	goro_waitgroup ended;
	int balance;
};

static void withdraws(struct account *a, int sum)
{
	goro_mutex_lock(&a->lock);
	if (sum <= a->balance) {
		a->balance -= sum;
		goro_mutex_unlock(&a->lock);
	}
	goro_waitgroup_done(&a->ended);
}

static void withdraws_and_unlocks(struct account *a, int sum)
{
	goro_mutex_lock(&a->lock);
	if (sum <= a->balance)
		a->balance -= sum;
	goro_mutex_unlock(&a->lock);
	goro_waitgroup_done(&a->ended);
}

static void banks(bool unlocks)
{
	struct account a = { .balance = 10 };

	goro_waitgroup_add(&a.ended, 1);
	if (unlocks)
		go(withdraws_and_unlocks, &a, 100);
	else
		go(withdraws, &a, 100);
	goro_waitgroup_wait(&a.ended);
	goro_mutex_lock(&a.lock);
	goro_mutex_unlock(&a.lock);
}

static void mutex_leaks(void) { go(banks, false); }
static void mutex_tidy(void) { go(banks, true); }

/* 8. wait group -------------------------------------------------------------------
 * A worker returns early, without goro_waitgroup_done.
 * Leak-proof: done is deferred, at the top. */
static void fetches(goro_waitgroup *wg, bool exists)
{
	if (!exists)
		return;
	goro_waitgroup_done(wg);
}

static void is_done(void *wg)
{
	goro_waitgroup_done(wg);
}

static void fetches_and_is_done(goro_waitgroup *wg, bool exists)
{
	goro_defer(is_done, wg);
	if (!exists)
		return;
}

static void waits_for_all(bool deferred)
{
	goro_waitgroup wg = { 0 };

	goro_waitgroup_add(&wg, 2);
	for (int i = 0; i < 2; i++) {
		if (deferred)
			go(fetches_and_is_done, &wg, i > 0);
		else
			go(fetches, &wg, i > 0);
	}
	goro_waitgroup_wait(&wg);
}

static void waitgroup_leaks(void) { go(waits_for_all, false); }
static void waitgroup_tidy(void) { go(waits_for_all, true); }

/* 9. nil channels -----------------------------------------------------------------
 * A select on channels that nobody has made yet waits for ever.
 * Leak-proof: a case that can always go in the end: a deadline. */
static void listens(goro_chan *orders, goro_chan *news, int64_t deadline)
{
	goro_select_until(deadline, GORO_RECV(orders, NULL), GORO_RECV(news, NULL));
}

static void nil_leaks(void) { go(listens, NULL, NULL, GORO_FOREVER); }
static void nil_tidy(void)
{
	go(listens, NULL, NULL, goro_deadline_in(GORO_MILLISECOND));
}

/* 10. descriptor ------------------------------------------------------------------
 * A reader waits for a peer that says nothing, on a descriptor that nobody closes.
 * Leak-proof: a deadline, and goro_close, which wakes everybody in a call on it. */
static void reads(int fd)
{
	char byte;

	goro_read(fd, &byte, 1);
}

static void descriptor_leaks(void)
{
	int fd[2];

	connect_pair(fd);
	go(reads, fd[0]);
}

static void descriptor_tidy(void)
{
	int fd[2];

	connect_pair(fd);
	go(reads, fd[0]);
	goro_close(fd[0]);
	goro_close(fd[1]);
}

static const struct pattern {
	const char *name;
	void (*leaks)(void), (*tidy)(void);
	int left;		/* goroutines, each time */
} patterns[] = {
	{ "send", send_leaks, send_tidy, 1 },
	{ "receive", receive_leaks, receive_tidy, 1 },
	{ "range", range_leaks, range_tidy, 1 },
	{ "early_return", early_leaks, early_tidy, 3 },
	{ "context", context_leaks, context_tidy, 1 },
	{ "ticker", ticker_leaks, ticker_tidy, 1 },
	{ "mutex", mutex_leaks, mutex_tidy, 1 },
	{ "wait_group", waitgroup_leaks, waitgroup_tidy, 1 },
	{ "nil_channels", nil_leaks, nil_tidy, 1 },
	{ "descriptor", descriptor_leaks, descriptor_tidy, 1 },
};
#define PATTERNS (sizeof patterns / sizeof patterns[0])

/* ------------------------------------------------------------- the two means */

/* What a piece does in a goroutine that ends leaves nothing on anybody's stack. */
static void does(void (*piece)(void), goro_waitgroup *wg)
{
	piece();
	goro_waitgroup_done(wg);
}

static void apart(void (*piece)(void))
{
	goro_waitgroup wg = { 0 };

	goro_waitgroup_add(&wg, 1);
	go(does, piece, &wg);
	goro_waitgroup_wait(&wg);
}

static char server[64];	/* the address of this program's debug server */

/* The goroutineleak profile, as text, to out if it is not NULL. How many it has. */
static long profile(FILE *out)
{
	static const char request[] =
		"GET /debug/pprof/goroutineleak?debug=1 HTTP/1.0\r\n\r\n";
	static char text[1 << 16];
	ssize_t n;
	char *body;
	long total = -1;
	int fd = goro_dial("unix", server, GORO_FOREVER);

	if (fd < 0)
		goro_panic("%s: errno %d", server, -fd);
	goro_write(fd, request, sizeof request - 1);
	n = goro_read_full(fd, text, sizeof text - 1);
	goro_close(fd);
	text[n > 0 ? n : 0] = '\0';
	body = strstr(text, "\r\n\r\n");
	if (!body || sscanf(body, " goroutineleak profile: total %ld", &total) != 1)
		goro_panic("not a profile: %s", text);
	if (out)
		fputs(body + 4, out);
	return total;
}

/* Overwrites the stack that the threads have used last. */
static void scrubs(goro_waitgroup *wg)
{
	volatile char over[8192];

	for (size_t i = 0; i < sizeof over; i++)
		over[i] = 0;
	goro_waitgroup_done(wg);
}

static void scrub(void)
{
	goro_waitgroup wg = { 0 };

	goro_waitgroup_add(&wg, 64);
	for (int i = 0; i < 64; i++)
		go(scrubs, &wg);
	goro_waitgroup_wait(&wg);
}

/* How many it has. It looks for pointers in all of memory, and what has just
 * ended may have left one in a register of an idle thread: it is asked again after other
 * goroutines ran. */
static long profile_finds(long wanted)
{
	long n = 0;

	for (int i = 0; i < 20; i++) {
		n = profile(NULL);
		if (n >= wanted)
			break;
		scrub();
		goro_sleep(5 * GORO_MILLISECOND);
	}
	return n;
}

static void serve(void)
{
	char address[80];

	snprintf(server, sizeof server, "@goro-leaks-%d", (int)getpid());
	snprintf(address, sizeof address, "unix:%s", server);
	if (goro_debug_serve(address) < 0)
		goro_panic("no debug server");
}

/* In a process of its own, so that nothing of another pattern is in its memory. */
static int check_one(const struct pattern *p)
{
	uint64_t mark;
	size_t found;

	serve();
	mark = goro_leak_mark();
	apart(p->leaks);
	found = goro_leak_check(mark, 20 * GORO_MILLISECOND, NULL);
	printf("%-13s %11d %14zu %11ld", p->name, p->left, found, profile_finds(p->left));
	return 0;
}

/* .. and the leak-proof form: the rest of the line. */
static int tidy_one(const struct pattern *p)
{
	uint64_t mark;
	size_t found;

	serve();
	mark = goro_leak_mark();
	apart(p->tidy);
	found = goro_leak_check(mark, 10 * GORO_SECOND, NULL);
	printf(" %17zu %15ld\n", found, profile(NULL));
	return 0;
}

static int show(const struct pattern *p)
{
	uint64_t mark;

	serve();
	mark = goro_leak_mark();
	apart(p->leaks);
	puts("The leak check:\n");
	goro_leak_check(mark, 20 * GORO_MILLISECOND, stdout);
	profile_finds(p->left);
	puts("\nThe profile:\n");
	profile(stdout);
	return 0;
}

/* --------------------------------------------------------------------- cost */

#define LEAKS_MAX 5000

static double memory_bytes(void)
{
	long pages = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (!f || fscanf(f, "%ld %ld", &pages, &resident) != 2)
		goro_panic("no /proc/self/statm");
	fclose(f);
	return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

/* The stacks of those who wait for long are put away, where the kernel allows it. */
static double bytes_later(size_t goroutines)
{
	struct goro_stats s;

	for (int i = 0; i < 100; i++) {
		goro_stats_read(&s);
		if (s.stacks_evacuated >= goroutines * 9 / 10)
			break;
		goro_sleep(100 * GORO_MILLISECOND);
	}
	return memory_bytes();
}

/* As many times as descriptors allow. */
static int repeats(const struct pattern *p)
{
	struct rlimit l;

	if (p->leaks != descriptor_leaks || getrlimit(RLIMIT_NOFILE, &l) < 0)
		return LEAKS_MAX / p->left;
	return l.rlim_cur > 2 * LEAKS_MAX + 100 ? LEAKS_MAX : (int)(l.rlim_cur - 100) / 2;
}

/* In a process of its own, too. */
static int cost_one(const struct pattern *p)
{
	uint64_t mark;
	double before, after, later;
	size_t left;
	int n = repeats(p);

	for (int i = 0; i < 500;
	     i++) /* the stacks of the pieces themselves, and the heap */
		apart(p->tidy);
	goro_sleep(20 * GORO_MILLISECOND);
	mark = goro_leak_mark();
	before = memory_bytes();
	for (int i = 0; i < n; i++)
		apart(p->leaks);
	left = goro_leak_check(mark, 20 * GORO_MILLISECOND, NULL);
	after = memory_bytes();
	later = bytes_later(left);
	printf("%-13s %7zu %12.0f %12.0f\n", p->name, left,
	       (after - before) / (double)left, (later - before) / (double)left);
	return 0;
}

/* ------------------------------------------------------------------- growth */

#define REQUESTS 20000
#define POINTS   20

static void serve_requests(const char *form, void (*request)(void))
{
	for (int i = 0; i <= REQUESTS; i++) {
		if (i % (REQUESTS / POINTS) == 0)
			printf("%-10s %9d %8.1f\n", form, i, memory_bytes() / 1e6);
		request();
		if (i % 100 == 0)
			goro_sleep(2 * GORO_MILLISECOND);	/* the answers come */
	}
}

/* The leak-proof form first: what has leaked stays. */
static int growth(void)
{
	printf("== growth\n%-10s %9s %8s\n", "form", "requests", "MB");
	serve_requests("leak-proof", send_tidy);
	serve_requests("leaks", send_leaks);
	return 0;
}

/* ---------------------------------------------------------------- processes */

/* `leaks WHAT NAME` as a process, whose output comes from *out. */
static pid_t begin(char *what, const char *name, FILE **out)
{
	char *words[] = { "leaks", what, (char *)name, NULL };
	int fd[2];
	pid_t pid;

	if (pipe2(fd, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		dup2(fd[1], 1);
		execv("/proc/self/exe", words);
		_exit(127);
	}
	close(fd[1]);
	*out = fdopen(fd[0], "r");
	return pid;
}

static int end(pid_t pid, FILE *out)
{
	char line[200];
	int status;

	while (out && fgets(line, sizeof line, out))
		fputs(line, stdout);
	if (out)
		fclose(out);
	fflush(stdout);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 1;
}

/* All patterns at once: most of the time they sleep. then: NULL, or what is run besides.
 */
static int all(char *what, char *then)
{
	struct {
		pid_t pid;
		FILE *out;
	} at[PATTERNS][2] = { 0 };
	int failed = 0, n = then ? 2 : 1;

	fflush(stdout);
	for (size_t i = 0; i < PATTERNS; i++)
		for (int k = 0; k < n; k++)
			at[i][k].pid =
				begin(k ? then : what, patterns[i].name, &at[i][k].out);
	for (size_t i = 0; i < PATTERNS; i++)
		for (int k = 0; k < n; k++)
			failed |= end(at[i][k].pid, at[i][k].out);
	return failed;
}

static int check(void)
{
	printf("== check\n%-13s %11s %14s %11s %17s %15s\n", "pattern", "leaves",
	       "leak_check", "profile", "tidy_leak_check", "tidy_profile");
	return all("check", "tidy");
}

static int cost(void)
{
	printf("== cost\n%-13s %7s %12s %12s\n", "pattern", "leaked", "bytes_each",
	       "bytes_later");
	return all("cost", NULL);
}

static const struct pattern *find(const char *name)
{
	for (size_t i = 0; i < PATTERNS; i++)
		if (strcmp(patterns[i].name, name) == 0)
			return &patterns[i];
	return NULL;
}

static const struct {
	const char *name;
	int (*all)(void);			/* NULL: only of one pattern */
	int (*one)(const struct pattern *p);	/* NULL: not of one pattern */
} commands[] = {
	{ "check", check, check_one }, { "tidy", NULL, tidy_one }, { "show", NULL, show },
	{ "cost", cost, cost_one }, { "growth", growth, NULL },
};

static int usage(void)
{
	fprintf(stderr, "usage: leaks check|cost [NAME] | show|tidy NAME | growth\n");
	return 2;
}

static int start(int argc, char **argv)
{
	const struct pattern *p = argc > 2 ? find(argv[2]) : NULL;

	if (argc > 2 && !p) {
		fprintf(stderr, "leaks: there is no pattern %s\n", argv[2]);
		return 2;
	}
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
		if (argc < 2 || argc > 3 || strcmp(argv[1], commands[i].name) != 0)
			continue;
		if (p && commands[i].one)
			return commands[i].one(p);
		if (!p && commands[i].all)
			return commands[i].all();
	}
	return usage();
}
GORO_MAIN(start)

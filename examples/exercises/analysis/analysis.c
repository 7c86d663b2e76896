/*
 * analysis.c - what the scheduler decides, by kind of workload.
 *
 *	./analysis                        all workloads, a line of figures for each
 *	./analysis -t FOLDER io blocking  these, and their traces: FOLDER/io.trace ..
 *	goro trace FOLDER/io.trace        what was traced
 *
 * Each workload does a fixed amount of work. The figures are differences of
 * goro_stats_read and of goro_sched_latency, before and after.
 */
#define _GNU_SOURCE
#include "measure.h"

#include <fcntl.h>
#include <string.h>

#define LATENCY_BUCKETS_MAX 256

static goro_waitgroup all;

/* ---------------------------------------------------------------- workloads */

static void hog(int64_t ns)
{
	goro_set_name("hog");
	work(ns);
	goro_waitgroup_done(&all);
}

static void task(int64_t ns)
{
	work(ns);
	goro_waitgroup_done(&all);
}

/* Starts two of itself, down to depth 0, and then computes. */
static void fork_task(int depth, int64_t ns)
{
	if (depth > 0) {
		goro_waitgroup_add(&all, 2);
		go(fork_task, depth - 1, ns);
		go(fork_task, depth - 1, ns);
	}
	work(ns);
	goro_waitgroup_done(&all);
}

static void client(int fd, int requests)
{
	goro_set_name("client");
	for (int i = 0; i < requests; i++) {
		ask(fd);
		work(5 * GORO_MICROSECOND);
	}
	goro_close(fd);
	goro_waitgroup_done(&all);
}

static void server(int fd)
{
	goro_set_name("server");
	answer(fd, 5 * GORO_MICROSECOND);
	goro_waitgroup_done(&all);
}

/* usleep is libc's: the kernel puts the thread to sleep, and nobody told goro. */
static void blocker(int calls)
{
	goro_set_name("blocker");
	for (int i = 0; i < calls; i++)
		usleep(2000);
	goro_waitgroup_done(&all);
}

static void start_hogs(int n, int64_t ns)
{
	goro_waitgroup_add(&all, n);
	for (int i = 0; i < n; i++)
		go(hog, ns);
}

static void start_connections(int n, int requests)
{
	goro_waitgroup_add(&all, 2 * n);
	for (int i = 0; i < n; i++) {
		int fd[2];

		connect_pair(fd);
		go(server, fd[0]);
		go(client, fd[1], requests);
	}
}

static void start_blockers(int n, int calls)
{
	goro_waitgroup_add(&all, n);
	for (int i = 0; i < n; i++)
		go(blocker, calls);
}

/* Six goroutines that compute and never call anything. */
static void compute(void)
{
	start_hogs(6, 50 * GORO_MILLISECOND);
}

/* 4,000 short tasks, all started by one goroutine. */
static void tasks(void)
{
	goro_waitgroup_add(&all, 4000);
	for (int i = 0; i < 4000; i++)
		go(task, 50 * GORO_MICROSECOND);
}

/* The same number, but each starts two others. */
static void tree(void)
{
	goro_waitgroup_add(&all, 1);
	go(fork_task, 11, 50 * GORO_MICROSECOND);
}

/* 32 connections, a request under way on each. */
static void io(void)
{
	start_connections(32, 300);
}

/* Eight goroutines in calls that block the thread, beside two that compute. */
static void blocking(void)
{
	start_blockers(8, 50);
	start_hogs(2, 100 * GORO_MILLISECOND);
}

/* Some of each. */
static void mixed(void)
{
	start_connections(16, 200);
	start_hogs(2, 60 * GORO_MILLISECOND);
	start_blockers(4, 30);
}

static const struct workload {
	const char *name;
	void (*start)(void);
} workloads[] = {
	{"compute", compute}, {"tasks", tasks},       {"tree", tree},
	{"io", io},           {"blocking", blocking}, {"mixed", mixed},
};
#define WORKLOADS (sizeof workloads / sizeof workloads[0])

/* ------------------------------------------------------------------ figures */

struct figures {
	struct goro_stats stats;
	size_t buckets;
	uint64_t latency[LATENCY_BUCKETS_MAX];
	double bound_s[LATENCY_BUCKETS_MAX];
	int64_t at;
};

static void figures_read(struct figures *f)
{
	f->at = goro_now();
	goro_stats_read(&f->stats);
	f->buckets = goro_sched_latency(f->latency, f->bound_s, LATENCY_BUCKETS_MAX);
	if (f->buckets > LATENCY_BUCKETS_MAX)
		f->buckets = LATENCY_BUCKETS_MAX;
}

/* In us, the upper bound of the bucket that has it. */
static double latency(const struct figures *from, const struct figures *to, double share)
{
	uint64_t sum = 0, seen = 0;
	size_t i;

	for (i = 0; i < to->buckets; i++)
		sum += to->latency[i] - from->latency[i];
	if (sum == 0)
		return 0;
	for (i = 0; i + 1 < to->buckets; i++) {
		seen += to->latency[i] - from->latency[i];
		if ((double)seen >= share * (double)sum)
			break;
	}
	return to->bound_s[i] * 1e6;
}

static void print_head(void)
{
	printf("== decisions\n");
	printf("%-9s %6s %11s %9s %8s %7s %8s %12s %9s %8s %12s %13s %13s\n", "workload",
	       "ms", "goroutines", "switches", "parks", "steals", "stolen", "preemptions",
	       "handoffs", "polled", "thread_wakes", "half_wait_us", "99_%_wait_us");
}

static void print_figures(const char *name, const struct figures *from,
                          const struct figures *to)
{
	const struct goro_stats *a = &from->stats, *b = &to->stats;

	printf("%-9s %6.0f %11d %9d %8d %7d %8d %12d %9d %8d %12d %13.1f %13.1f\n", name,
	       (double)(to->at - from->at) / 1e6,
	       (int)(b->goroutines_created - a->goroutines_created),
	       (int)(b->context_switches - a->context_switches),
	       (int)(b->parks - a->parks), (int)(b->steals - a->steals),
	       (int)(b->stolen - a->stolen), (int)(b->preemptions - a->preemptions),
	       (int)(b->syscall_handoffs - a->syscall_handoffs),
	       (int)(b->netpoll_wakeups - a->netpoll_wakeups),
	       (int)(b->thread_wakeups - a->thread_wakeups), latency(from, to, .5),
	       latency(from, to, .99));
	fflush(stdout);
}

/* -------------------------------------------------------------------- runs */

/* 0, or -errno. */
static int trace_to(const char *folder, const char *name)
{
	char path[4096];
	int fd, err;

	if (snprintf(path, sizeof path, "%s/%s.trace", folder, name) >= (int)sizeof path)
		return -ENAMETOOLONG;
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return -errno;
	err = goro_trace_start(fd);
	close(fd);
	return err;
}

static int run(const struct workload *w, const char *folder)
{
	struct figures before, after;
	int err = folder ? trace_to(folder, w->name) : 0;

	if (err < 0) {
		fprintf(stderr, "analysis: %s/%s.trace: %s\n", folder, w->name,
			strerror(-err));
		return 1;
	}
	figures_read(&before);
	w->start();
	goro_waitgroup_wait(&all);
	figures_read(&after);
	goro_trace_stop();
	print_figures(w->name, &before, &after);
	return 0;
}

static bool wanted(const char *name, char **names, int n)
{
	for (int i = 0; i < n; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return n == 0;
}

static bool known(const char *name)
{
	for (size_t i = 0; i < WORKLOADS; i++)
		if (strcmp(name, workloads[i].name) == 0)
			return true;
	return false;
}

static int start(int argc, char **argv)
{
	const char *folder = NULL;
	int option, status = 0;

	while ((option = getopt(argc, argv, "t:")) == 't')
		folder = optarg;
	for (int i = optind; i < argc; i++)
		if (!known(argv[i]))
			option = '?',
			fprintf(stderr, "analysis: there is no workload %s\n", argv[i]);
	if (option != -1) {
		fprintf(stderr, "usage: analysis [-t FOLDER] "
				"[compute|tasks|tree|io|blocking|mixed ...]\n");
		return 2;
	}
	calibrate();
	print_head();
	for (size_t i = 0; i < WORKLOADS && status == 0; i++)
		if (wanted(workloads[i].name, argv + optind, argc - optind))
			status = run(&workloads[i], folder);
	return status;
}
GORO_MAIN(start)

/*
 * netpoll_test.c - the poller and the scheduler: who is woken, how soon, at what cost.
 */
/* test: procs */
#include <goro.h>

#include <pthread.h>

#include "platform/cpus.h"
#include "deadlock.h"
#include "net.h"
#include "sched/netpoll.h"
#include "sched/runtime.h"

static void echo(int fd)
{
	char buf[64];
	ssize_t n;

	while ((n = goro_read(fd, buf, sizeof buf)) > 0)
		CHECK_EQ(goro_write(fd, buf, (size_t)n), n);
	goro_close(fd);
}

static int64_t trip(int fd)
{
	int64_t start = goro_now();
	char c = 'x';

	CHECK_EQ(goro_write(fd, &c, 1), 1);
	CHECK_EQ(goro_read(fd, &c, 1), 1);
	return goro_now() - start;
}

/* -------------------------------------------------------------- many, idle */

static void accept_all(int l, int n)
{
	for (int i = 0; i < n; i++) {
		int fd = goro_accept(l, NULL, NULL);

		CHECK(fd >= 0);
		CHECK_EQ(go(echo, fd), 0);
	}
}

static void busy(int fd, int trips, goro_waitgroup *wg)
{
	for (int i = 0; i < trips; i++)
		trip(fd);
	goro_waitgroup_done(wg);
}

GO_TEST_TIMEOUT(idle_connections_beside_busy_ones, 120)
{
	enum { BUSY = 100 };
	int n = (net_want_files(2 * (SCALED(10000) + BUSY) + 100) - 100) / 2, *fd;
	goro_waitgroup wg = { 0 };
	struct sockaddr_in a;
	int l = net_listen(&a);

	fd = malloc((size_t)n * sizeof *fd);
	go(accept_all, l, n);
	for (int i = 0; i < n; i++)
		fd[i] = net_dial(&a);
	goro_waitgroup_add(&wg, BUSY);
	for (int i = 0; i < BUSY; i++)
		go(busy, fd[i * (n / BUSY)], SCALED(100), &wg);
	goro_waitgroup_wait(&wg);
	for (int i = 0; i < n; i += 97)		/* none of the idle ones was forgotten */
		trip(fd[i]);
	for (int i = 0; i < n; i++)
		CHECK_EQ(goro_close(fd[i]), 0);
	CHECK_EQ(goro_close(l), 0);
	free(fd);
}

/* ---------------------------------------------------------- beside hogs */

static int hogs_over;

static void hog(goro_waitgroup *wg)
{
	while (!__atomic_load_n(&hogs_over, __ATOMIC_ACQUIRE))
		;
	goro_waitgroup_done(wg);
}

static int ascending(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static int64_t cpu_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * GORO_SECOND + t.tv_nsec;
}

/* Two goroutines talk over a socket while each P has two that never stop. Each trip
 * needs the poller twice, behind hogs who would otherwise run for 10 ms each. Time is
 * measured by what the hogs could do with it, so that other processes do not count. */
GO_TEST(trips_beside_hogs)
{
	enum { TRIPS = 60 };
	int procs = goro_gomaxprocs(0), hogs = 2 * procs;
	goro_waitgroup wg = { 0 };
	int64_t took[TRIPS];
	int fd[2];

	if (procs > 2)
		SKIP("the hogs would need too many CPUs");
	net_pair(fd);
	go(echo, fd[1]);
	trip(fd[0]);
	goro_waitgroup_add(&wg, hogs);
	for (int i = 0; i < hogs; i++)
		go(hog, &wg);
	goro_sleep(20 * GORO_MILLISECOND);
	for (int i = 0; i < TRIPS; i++) {
		int64_t start = cpu_time();

		trip(fd[0]);
		took[i] = (cpu_time() - start) / procs;
		goro_sleep(i % 5 * GORO_MILLISECOND);
	}
	__atomic_store_n(&hogs_over, 1, __ATOMIC_RELEASE);
	goro_waitgroup_wait(&wg);
	qsort(took, TRIPS, sizeof took[0], ascending);
	printf("median %.3f ms, 90 %% %.3f ms, longest %.3f ms\n", (double)took[TRIPS / 2] / 1e6,
	       (double)took[TRIPS * 9 / 10] / 1e6, (double)took[TRIPS - 1] / 1e6);
	CHECK(took[TRIPS / 2] < 8 * GORO_MILLISECOND);
	CHECK_EQ(goro_close(fd[0]), 0);
}

/* A P whose goroutine is in a blocking call, and no other: the event is seen. */
static void block_until_written(void *arg)
{
	char c;

	CHECK_EQ(read(*(int *)arg, &c, 1), 1);
}

static void blocker(int *fd, goro_waitgroup *wg)
{
	goro_blocking(block_until_written, fd);
	goro_waitgroup_done(wg);
}

static void answer(int from, int to)
{
	char c;

	CHECK_EQ(goro_read(from, &c, 1), 1);
	CHECK_EQ(goro_write(to, &c, 1), 1);
}

static void *write_from_outside(void *arg)
{
	usleep(100000);		/* everybody is asleep, sysmon too */
	CHECK_EQ(write((int)(intptr_t)arg, "x", 1), 1);
	return NULL;
}

GO_TEST(event_while_all_are_in_blocking_calls)
{
	goro_waitgroup wg = { 0 };
	int in[2], out[2], procs = goro_gomaxprocs(0);
	pthread_t t;

	if (procs > 4)
		SKIP("too many threads for nothing");
	CHECK_EQ(pipe(in), 0);
	for (int round = 0; round < 5; round++) {
		CHECK_EQ(pipe(out), 0);
		goro_waitgroup_add(&wg, procs);
		go(answer, in[0], out[1]);
		/* Each of the blockers waits, in the kernel, for what only answer
		 * writes. */
		for (int i = 1; i < procs; i++)
			go(answer, in[0], out[1]);
		for (int i = 0; i < procs; i++)
			go(blocker, &out[0], &wg);
		for (int i = 0; i < procs; i++) {
			CHECK_EQ(pthread_create(&t, NULL, write_from_outside,
			                        (void *)(intptr_t)in[1]), 0);
			pthread_detach(t);
		}
		goro_waitgroup_wait(&wg);
		close(out[0]);
		close(out[1]);
	}
}

/* ------------------------------------------------------------------- idle */

/* Voluntary context switches of all threads: an idle one has none. */
static uint64_t switches_of_process(void)
{
	uint64_t sum = 0;
	char path[64], line[128];

	for (int tid = getpid(), misses = 0; misses < 200; tid++) {
		unsigned long long n;
		FILE *f;

		snprintf(path, sizeof path, "/proc/self/task/%d/status", tid);
		f = fopen(path, "r");
		if (!f) {
			misses++;
			continue;
		}
		while (fgets(line, sizeof line, f))
			if (sscanf(line, "voluntary_ctxt_switches: %llu", &n) == 1)
				sum += n;
		fclose(f);
	}
	return sum;
}

static int idle_pipe[2];

static void *look_at_idle(void *arg)
{
	uint64_t before, after = 0;

	(void)arg;
	usleep(1500000);	/* sysmon lingers for a while */
	for (int i = 0; i < 5; i++) {
		before = switches_of_process();
		usleep(300000);
		after = switches_of_process() - before;
		if (after <= 2)		/* our own sleep, and reading /proc */
			break;
	}
	CHECK(after <= 2);
	CHECK_EQ(write(idle_pipe[1], "x", 1), 1);
	return NULL;
}

GO_TEST(an_idle_process_does_nothing)
{
	pthread_t t;
	char c;

	if (goro_gomaxprocs(0) > 4 || TOOL_TSAN)
		SKIP("the same with fewer; and the tool has a thread of its own");
	CHECK_EQ(pipe(idle_pipe), 0);
	CHECK_EQ(pthread_create(&t, NULL, look_at_idle, NULL), 0);
	CHECK_EQ(goro_read(idle_pipe[0], &c, 1), 1);
	pthread_join(t, NULL);
}

/* -------------------------------------------------------------- deadlocks */

static int fork_pipe[2];

/* Nothing in the process could write; another process does. */
static int wait_for_another_process(int argc, char **argv)
{
	char c;

	(void)argc, (void)argv;
	CHECK_EQ(goro_read(fork_pipe[0], &c, 1), 1);
	return 0;
}

static void run_waiting(void)
{
	CHECK_EQ(pipe(fork_pipe), 0);
	if (fork() == 0) {
		usleep(300000);
		_exit(write(fork_pipe[1], "x", 1) != 1);
	}
	exit(goro_run(wait_for_another_process, 0, NULL));
}

TEST(waiting_for_a_descriptor_is_no_deadlock)
{
	struct test_output o;

	test_run_child(run_waiting, &o);
	CHECK_EQ(o.status, 0);
}

/* Descriptors are open and known, but nobody waits for one. */
static int deadlock_after_io(int argc, char **argv)
{
	goro_chan *c = goro_chan_of(int, 0);
	int fd[2], x;

	(void)argc, (void)argv;
	net_pair(fd);
	go(echo, fd[1]);
	trip(fd[0]);
	CHECK_EQ(shutdown(fd[0], SHUT_WR), 0);
	CHECK_EQ(goro_read(fd[0], &x, 1), 0);
	goro_chan_recv(c, &x);
	return 0;
}

TEST(deadlock_beside_open_descriptors)
{
	struct test_output o;

	check_deadlock(deadlock_after_io, &o);
}

/* ----------------------------------------------------------- what is seen */

static void wait_here(int fd)
{
	char c;

	goro_read(fd, &c, 1);
}

GO_TEST(dump_says_io_wait)
{
	size_t before = net_waiting(), n;
	char *text;
	FILE *f = open_memstream(&text, &n);
	int fd[2];

	CHECK_EQ(pipe(fd), 0);
	go(wait_here, fd[0]);
	AWAIT(net_waiting() > before);
	goro_dump(f);
	fclose(f);
	CHECK_CONTAINS(text, "[IO wait]:");
	free(text);
	CHECK_EQ(goro_close(fd[0]), 0);
}

GO_TEST(wakeups_are_counted)
{
	struct goro_stats before, after;
	int fd[2];

	/* Not made by a call of goro's: reads are not put off (batch.h). */
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	go(echo, fd[1]);
	trip(fd[0]);
	goro_stats_read(&before);
	for (int i = 0; i < 100; i++)
		trip(fd[0]);
	goro_stats_read(&after);
	CHECK(after.netpoll_wakeups - before.netpoll_wakeups >= 50);
	CHECK_EQ(goro_close(fd[0]), 0);
}

/* .. for what others have to do. */
GO_TEST(who_spins_leaves_the_poller_to_who_looks_often)
{
	int64_t soon = goro_now() + 3600 * GORO_SECOND;
	struct m *mp;
	int fd[2];

	goro_gomaxprocs(1);	/* no P is idle: nobody waits in the poller */
	net_pair(fd);
	go(echo, fd[1]);
	trip(fd[0]);
	mp = rt_enter();
	mp->spinning = true;
	store_relaxed(&netpoll.looked_at, soon);
	CHECK(!netpoll_look_if_wanted(mp));
	CHECK_EQ(load_relaxed(&netpoll.looked_at), soon);
	mp->spinning = false;
	CHECK(!netpoll_look_if_wanted(mp));
	CHECK(load_relaxed(&netpoll.looked_at) != soon);
	rt_exit(mp);
	CHECK_EQ(goro_close(fd[0]), 0);
}

/* ------------------------------------------- more Ps than there are CPUs */

enum pace { QUICK, SLOW, OVER };
static enum pace pace;

static void keep_busy(goro_waitgroup *wg)
{
	for (enum pace p; (p = load_relaxed(&pace)) != OVER;)
		if (p == QUICK)
			goro_gosched();
	goro_waitgroup_done(wg);
}

/* Who waits in the poller is answered, whether those at work look there themselves or it
 * has to be one that waits there. */
GO_TEST(events_beside_the_quick_and_the_slow)
{
	int cpus = cpus_affinity(), fd[2];
	goro_waitgroup wg = { 0 };

	goro_gomaxprocs(cpus + 3);
	AWAIT(runtime_is_whole());
	net_pair(fd);
	go(echo, fd[1]);
	goro_waitgroup_add(&wg, cpus);
	for (int i = 0; i < cpus; i++)
		go(keep_busy, &wg);
	for (int i = 0; i < 3; i++) {
		store_relaxed(&pace, QUICK);
		AWAIT(load_relaxed(&monitor.brisk));
		for (int k = 0; k < 20; k++)
			trip(fd[0]);
		store_relaxed(&pace, SLOW);
		AWAIT(!load_relaxed(&monitor.brisk));
		for (int k = 0; k < 20; k++)
			trip(fd[0]);
	}
	store_relaxed(&pace, OVER);
	goro_waitgroup_wait(&wg);
}

/* ------------------------------------------------------------------ the sleep */

/* False: an idle M was in the poller. */
static bool sleep_after_a_wake(struct m *mp)
{
	struct netpoll_events events;
	uint32_t slept = load_seqcst(&netpoll.slept);

	if (load_seqcst(&netpoll.sleeper))
		return false;
	store_seqcst(&mp->park.word, 1);
	netpoll_sleep(&mp->park, 10 * GORO_SECOND, &events);
	netpoll_dispatch(mp, &events);
	return load_seqcst(&netpoll.slept) != slept;
}

static int slept_enough;

/* A plain thread, which has no P. */
static void *sleep_after_wakes(void *arg)
{
	for (int slept = 0; slept < 5;) {
		struct m *mp = rt_enter();

		slept += sleep_after_a_wake(mp);
		rt_exit(mp);
	}
	store_release(&slept_enough, 1);
	return arg;
}

/* The wake came before the thread was in the poller, out of which nobody calls it. The
 * only P is busy meanwhile, so that no idle M waits there. */
GO_TEST(who_was_woken_before_does_not_sleep_in_the_poller)
{
	int64_t start = goro_now();
	pthread_t thread;
	int fd[2];

	goro_gomaxprocs(1);
	net_pair(fd);
	go(echo, fd[1]);
	trip(fd[0]);
	CHECK_EQ(pthread_create(&thread, NULL, sleep_after_wakes, NULL), 0);
	SPIN_UNTIL(load_acquire(&slept_enough));
	CHECK(goro_now() - start < 10 * GORO_SECOND);
	pthread_join(thread, NULL);
}

/* ------------------------------------------------------------------ changes */

/* GOMAXPROCS changes while connections are busy. */
GO_TEST(procs_change_under_load)
{
	goro_waitgroup wg = { 0 };
	int fd[8][2], old = goro_gomaxprocs(0);

	goro_waitgroup_add(&wg, 8);
	for (int i = 0; i < 8; i++) {
		net_pair(fd[i]);
		go(echo, fd[i][1]);
		go(busy, fd[i][0], SCALED(1000), &wg);
	}
	for (int i = 0; i < 20; i++) {
		goro_gomaxprocs(1 + i % 5);
		goro_sleep(GORO_MILLISECOND);
	}
	goro_gomaxprocs(old);
	goro_waitgroup_wait(&wg);
	for (int i = 0; i < 8; i++)
		CHECK_EQ(goro_close(fd[i][0]), 0);
}

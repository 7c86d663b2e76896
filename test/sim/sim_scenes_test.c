/*
 * sim_scenes_test.c - the runtime under simulation: each scene with many seeds.
 *
 * A scene is a small program that checks its own result. Each test runs one scene with
 * SIM_SEEDS seeds (environment; default 10) from SIM_FIRST on. A seed that fails is made
 * small and printed with the command that repeats it. test/sim/run does so for all scenes
 * at once, and adds up what they write to SIM_SUM: scene, runs, different schedules,
 * choices, points, virtual ns.
 *
 * In the preset sim each atomic operation is a point. In other builds the scenes run with
 * the points that users get.
 */
#include <goro.h>

#include <fcntl.h>
#include <sys/socket.h>

#include "platform/sim.h"
#include "sim/sim.h"
#include "test.h"

/* Ends the run without a dump: the seed is made small by many runs that fail. */
#define HOLDS(cond)                                                                 \
	do {                                                                        \
		if (!(cond)) {                                                      \
			dprintf(2, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #cond); \
			_exit(1);                                                   \
		}                                                                   \
	} while (0)

/* ------------------------------------------------------------ trying seeds */

static uint64_t number_from(const char *name, uint64_t otherwise)
{
	const char *value = getenv(name);

	return value ? strtoull(value, NULL, 10) : otherwise;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t count_distinct(uint64_t *hash, uint64_t n)
{
	uint64_t distinct = 0;

	qsort(hash, n, sizeof *hash, by_value);
	for (uint64_t i = 0; i < n; i++)
		distinct += i == 0 || hash[i] != hash[i - 1];
	return distinct;
}

/* Whether the seed fails with these choices alone, quietly. */
static bool fails_within(uint64_t seed, void (*fn)(void *), uint64_t from, uint64_t until)
{
	struct sim_report report;
	int err = dup(2), null = open("/dev/null", O_WRONLY), result;
	char window[64];

	snprintf(window, sizeof window, "%llu:%llu", (unsigned long long)from, (unsigned long long)until);
	setenv("GORO_SIM_WINDOW", window, 1);
	dup2(null, 2);
	result = sim_run(seed, fn, NULL, &report);
	dup2(err, 2);
	close(err);
	close(null);
	unsetenv("GORO_SIM_WINDOW");
	return result != 0;
}

/* Halves the choices that are made, from both ends, as long as the run fails. */
static void make_small(uint64_t seed, void (*fn)(void *), uint64_t choices, const char *scene)
{
	uint64_t from = 0, until = choices;

	for (uint64_t step = choices / 2; step > 0; step /= 2)
		while (until >= step && fails_within(seed, fn, from, until - step))
			until -= step;
	for (uint64_t step = (until - from) / 2; step > 0; step /= 2)
		while (from + step <= until && fails_within(seed, fn, from + step, until))
			from += step;
	dprintf(2, "%s fails with seed %llu, of whose %llu choices these %llu are enough:\n"
	        "\tGORO_SIM_WINDOW=%llu:%llu GORO_SIM_LOG=log SIM_FIRST=%llu SIM_SEEDS=1 %s %s\n",
	        scene, (unsigned long long)seed, (unsigned long long)choices,
	        (unsigned long long)(until - from), (unsigned long long)from, (unsigned long long)until,
	        (unsigned long long)seed, program_invocation_name, scene);
}

static void write_sum(const char *scene, uint64_t n, uint64_t distinct, const struct sim_report *all)
{
	const char *path = getenv("SIM_SUM");
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0666) : -1;

	if (fd < 0)
		return;
	dprintf(fd, "%s %llu %llu %llu %llu %lld\n", scene, (unsigned long long)n,
	        (unsigned long long)distinct, (unsigned long long)all->choices,
	        (unsigned long long)all->points, (long long)all->now);
	close(fd);
}

static void try_seeds(const char *scene, void (*fn)(void *))
{
	uint64_t first = number_from("SIM_FIRST", 0), n = number_from("SIM_SEEDS", 10);
	uint64_t *hash = malloc(n * sizeof *hash);
	struct sim_report all = { 0 }, one;

	for (uint64_t i = 0; i < n; i++) {
		int result = sim_run(first + i, fn, NULL, &one);

		if (result == -ENOTSUP)
			SKIP("not under this tool");
		if (result != 0) {
			if (!getenv("GORO_SIM_WINDOW") && !getenv("SIM_QUIET"))
				make_small(first + i, fn, one.choices, scene);
			FAIL("%s: seed %llu: status %d after %llu runs", scene,
			     (unsigned long long)(first + i), result, (unsigned long long)(i + 1));
		}
		hash[i] = one.hash;
		all.choices += one.choices;
		all.points += one.points;
		all.now += one.now;
	}
	write_sum(scene, n, count_distinct(hash, n), &all);
	free(hash);
}

#define SCENE(name)                                     \
	static void name##_scene(void *arg);            \
	TEST_TIMEOUT(name, 3600)                        \
	{                                               \
		try_seeds(#name, name##_scene);         \
	}                                               \
	static void name##_scene(__attribute__((unused)) void *arg)

/* --------------------------------------------------------------- channels */

static void produce(goro_chan *c, int from, int n, goro_waitgroup *done)
{
	for (int i = from; i < from + n; i++)
		goro_chan_send(c, &i);
	goro_waitgroup_done(done);
}

static void consume(goro_chan *c, int *seen, goro_waitgroup *done)
{
	int x;

	while (goro_chan_recv(c, &x))
		HOLDS(__atomic_fetch_add(&seen[x], 1, __ATOMIC_RELAXED) == 0);
	goro_waitgroup_done(done);
}

static void channel_of(size_t capacity)
{
	goro_chan *c = goro_chan_of(int, capacity);
	goro_waitgroup sent = { 0 }, received = { 0 };
	static int seen[60];

	memset(seen, 0, sizeof seen);
	goro_waitgroup_add(&sent, 3);
	goro_waitgroup_add(&received, 2);
	for (int i = 0; i < 3; i++)
		go(produce, c, 20 * i, 20, &sent);
	for (int i = 0; i < 2; i++)
		go(consume, c, (int *)seen, &received);
	goro_waitgroup_wait(&sent);
	goro_chan_close(c);
	goro_waitgroup_wait(&received);
	goro_chan_unref(c);
	for (int i = 0; i < 60; i++)
		HOLDS(seen[i] == 1);
}

SCENE(channels)
{
	channel_of(0);
	channel_of(3);
}

static void both_ways(goro_chan *a, goro_chan *b, int *sum, goro_waitgroup *done)
{
	int x = 1, y;

	for (int i = 0; i < 15; i++) {
		switch (goro_select_until(goro_deadline_in(50 * GORO_MICROSECOND), GORO_SEND(a, &x),
		                          GORO_RECV(b, &y), GORO_RECV(a, &y))) {
		case 0: __atomic_fetch_add(sum, 1, __ATOMIC_RELAXED); break;
		case 1: case 2: __atomic_fetch_sub(sum, y, __ATOMIC_RELAXED); break;
		default: break;
		}
	}
	goro_waitgroup_done(done);
}

SCENE(selects)
{
	goro_chan *a = goro_chan_of(int, 0), *b = goro_chan_of(int, 1);
	goro_waitgroup done = { 0 };
	static int sum;
	int y;

	goro_waitgroup_add(&done, 4);
	for (int i = 0; i < 4; i++)
		go(both_ways, i & 1 ? a : b, i & 1 ? b : a, &sum, &done);
	goro_waitgroup_wait(&done);
	while (goro_chan_try_recv(a, &y) == GORO_RECV_OK || goro_chan_try_recv(b, &y) == GORO_RECV_OK)
		sum -= y;
	HOLDS(sum == 0);
}

/* ------------------------------------------------------------------- sync */

static struct {
	goro_mutex mutex;
	goro_rwmutex rw;
	goro_cond cond;
	goro_sema sema;
	goro_once once;
	int held, readers, writers, in_sema, turns, total, onces;
} sync_of;

static void do_once(void *arg)
{
	(void)arg;
	goro_gosched();
	sync_of.onces++;
}

static void use_sync(int me, goro_waitgroup *done)
{
	goro_once_do(&sync_of.once, do_once, NULL);
	HOLDS(sync_of.onces == 1);
	for (int i = 0; i < 6; i++) {
		goro_mutex_lock(&sync_of.mutex);
		HOLDS(sync_of.held++ == 0);
		if (i & 1)
			goro_gosched();
		sync_of.total++;
		HOLDS(--sync_of.held == 0);
		goro_mutex_unlock(&sync_of.mutex);

		goro_rwmutex_rlock(&sync_of.rw);
		__atomic_fetch_add(&sync_of.readers, 1, __ATOMIC_SEQ_CST);
		HOLDS(sync_of.writers == 0);
		goro_gosched();
		__atomic_fetch_sub(&sync_of.readers, 1, __ATOMIC_SEQ_CST);
		goro_rwmutex_runlock(&sync_of.rw);
		if (me & 1) {
			goro_rwmutex_lock(&sync_of.rw);
			HOLDS(sync_of.writers++ == 0 && sync_of.readers == 0);
			goro_gosched();
			sync_of.writers--;
			goro_rwmutex_unlock(&sync_of.rw);
		}

		HOLDS(goro_sema_acquire(&sync_of.sema, 2, GORO_FOREVER) == 0);
		HOLDS(__atomic_add_fetch(&sync_of.in_sema, 2, __ATOMIC_SEQ_CST) <= 4);
		goro_gosched();
		__atomic_fetch_sub(&sync_of.in_sema, 2, __ATOMIC_SEQ_CST);
		goro_sema_release(&sync_of.sema, 2);
	}
	goro_mutex_lock(&sync_of.mutex);
	while (sync_of.turns % 4 != me)
		goro_cond_wait(&sync_of.cond, &sync_of.mutex);
	sync_of.turns++;
	goro_cond_broadcast(&sync_of.cond);
	goro_mutex_unlock(&sync_of.mutex);
	goro_waitgroup_done(done);
}

SCENE(locks)
{
	goro_waitgroup done = { 0 };

	goro_sema_init(&sync_of.sema, 5);
	goro_waitgroup_add(&done, 4);
	for (int i = 0; i < 4; i++)
		go(use_sync, i, &done);
	goro_waitgroup_wait(&done);
	HOLDS(sync_of.total == 24 && sync_of.turns == 4);
}

/* ----------------------------------------------------------------- timers */

static int fired;

static void fire(void *arg)
{
	(void)arg;
	__atomic_fetch_add(&fired, 1, __ATOMIC_SEQ_CST);
}

static void sleep_some(int me, goro_waitgroup *done)
{
	for (int i = 0; i < 5; i++) {
		int64_t before = goro_now(), ns = (me * 7 + i * 3) % 11 * 20 * GORO_MICROSECOND;

		goro_sleep(ns);
		HOLDS(goro_now() - before >= ns);
	}
	goro_waitgroup_done(done);
}

/* A run that was not stopped in time has fired, or is about to. */
static void stop_and_reset(int *expected, goro_waitgroup *done)
{
	for (int i = 0; i < 8; i++) {
		goro_timer *t = goro_after_func(100 * GORO_MICROSECOND, fire, NULL);

		goro_sleep(i * 25 * GORO_MICROSECOND);
		if (i & 1) {
			*expected += !goro_timer_reset(t, 50 * GORO_MICROSECOND);
			goro_sleep(i * 10 * GORO_MICROSECOND);
		}
		*expected += !goro_timer_stop(t);
		goro_timer_free(t);
	}
	goro_waitgroup_done(done);
}

static void count_ticks(goro_waitgroup *done)
{
	int64_t before = goro_now();
	goro_ticker *t = goro_ticker_make(100 * GORO_MICROSECOND);

	for (int i = 0; i < 4; i++)
		HOLDS(goro_chan_recv(goro_ticker_chan(t), NULL));
	HOLDS(goro_now() - before >= 400 * GORO_MICROSECOND);
	goro_ticker_free(t);
	goro_waitgroup_done(done);
}

static void one_shot(goro_waitgroup *done)
{
	for (int i = 0; i < 6; i++) {
		goro_timer *t = goro_timer_make(i * 20 * GORO_MICROSECOND);

		if (i & 1)
			goro_sleep(60 * GORO_MICROSECOND);
		if (goro_timer_stop(t))
			HOLDS(goro_chan_try_recv(goro_timer_chan(t), NULL) == GORO_RECV_EMPTY);
		goro_timer_reset(t, 10 * GORO_MICROSECOND);
		HOLDS(goro_chan_recv(goro_timer_chan(t), NULL));
		HOLDS(goro_chan_try_recv(goro_timer_chan(t), NULL) == GORO_RECV_EMPTY);
		goro_timer_free(t);
	}
	goro_waitgroup_done(done);
}

SCENE(timers)
{
	goro_waitgroup done = { 0 };
	int expected = 0;

	goro_waitgroup_add(&done, 7);
	for (int i = 0; i < 4; i++)
		go(sleep_some, i, &done);
	go(stop_and_reset, &expected, &done);
	go(count_ticks, &done);
	go(one_shot, &done);
	goro_waitgroup_wait(&done);
	goro_sleep(GORO_SECOND);
	HOLDS(fired == expected);
}

/* ---------------------------------------------------------------- spawning */

static int leaves;

static void spawn(int depth, goro_waitgroup *done)
{
	if (depth == 0) {
		__atomic_fetch_add(&leaves, 1, __ATOMIC_RELAXED);
	} else {
		goro_waitgroup below = { 0 };

		goro_waitgroup_add(&below, 2);
		go(spawn, depth - 1, &below);
		go(spawn, depth - 1, &below);
		goro_waitgroup_wait(&below);
	}
	goro_waitgroup_done(done);
}

SCENE(spawns)
{
	goro_waitgroup done = { 0 };

	goro_waitgroup_add(&done, 1);
	spawn(6, &done);
	HOLDS(leaves == 64);
}

/* -------------------------------------------- preemption, calls, the world */

static void hog(int64_t ns, goro_waitgroup *done)
{
	sim_compute(ns);
	goro_waitgroup_done(done);
}

static void bound(int n, goro_waitgroup *done)
{
	goro_lock_os_thread();
	for (int i = 0; i < n; i++) {
		if (i % 3 == 0)
			sim_compute(300 * GORO_MICROSECOND);
		else if (i % 3 == 1)
			goro_gosched();
		else
			goro_sleep(100 * GORO_MICROSECOND);
	}
	goro_unlock_os_thread();
	goro_waitgroup_done(done);
}

SCENE(hogs)
{
	goro_waitgroup done = { 0 };

	goro_waitgroup_add(&done, 8);
	for (int i = 0; i < 3; i++)
		go(hog, 8 * GORO_MILLISECOND, &done);
	for (int i = 0; i < 3; i++)
		go(sleep_some, i, &done);
	for (int i = 0; i < 2; i++)
		go(bound, 6, &done);
	goro_waitgroup_wait(&done);
}

static void call(void *arg)
{
	sim_block((int64_t)(intptr_t)arg);
}

static void in_calls(int me, goro_waitgroup *done)
{
	for (int i = 0; i < 6; i++) {
		int64_t ns = (int64_t[]){ 5, 60, 900, 12000 }[(me + i) % 4] * GORO_MICROSECOND;

		switch ((me + i) % 3) {
		case 0: goro_blocking(call, (void *)(intptr_t)ns); break;
		case 1: call((void *)(intptr_t)ns); break;	/* not announced */
		case 2:
			goro_syscall_enter();
			sim_block(ns);
			goro_syscall_exit();
			break;
		}
		if (i & 1)
			goro_gosched();
	}
	goro_waitgroup_done(done);
}

SCENE(calls)
{
	goro_waitgroup done = { 0 };

	goro_waitgroup_add(&done, 10);
	for (int i = 0; i < 5; i++)
		go(in_calls, i, &done);
	for (int i = 0; i < 2; i++)
		go(bound, 6, &done);
	go(hog, 3 * GORO_MILLISECOND, &done);
	go(sleep_some, 1, &done);
	go(spawn, 3, &done);
	goro_waitgroup_wait(&done);
}

static void nothing(void)
{
}

/* Comes back from a call, starts a goroutine, and cannot be preempted for a while. */
static void stretch(int me, goro_waitgroup *done)
{
	for (int i = 0; i < 6; i++) {
		call((void *)(intptr_t)((me + i) % 3 * 50 * GORO_MICROSECOND + 1));
		goro_preempt_disable();
		go(nothing);
		sim_compute(3 * GORO_MILLISECOND);
		goro_preempt_enable();
		if (i & 1)
			goro_sleep(20 * GORO_MICROSECOND);
	}
	goro_waitgroup_done(done);
}

SCENE(stretches)
{
	goro_waitgroup done = { 0 };

	goro_waitgroup_add(&done, 3);
	for (int i = 0; i < 3; i++)
		go(stretch, i, &done);
	goro_waitgroup_wait(&done);
}

/* Threads that are woken for their own goroutine, beside goroutines that just came. */
SCENE(turns)
{
	goro_waitgroup done = { 0 };

	goro_waitgroup_add(&done, 8);
	for (int i = 0; i < 3; i++)
		go(hog, 2 * GORO_MILLISECOND, &done);
	for (int i = 0; i < 3; i++)
		go(sleep_some, i, &done);
	go(in_calls, 1, &done);
	go(bound, 9, &done);
	goro_waitgroup_wait(&done);
}

static void change_procs(goro_waitgroup *done)
{
	static const int procs[] = { 3, 1, 4, 2 };

	for (int i = 0; i < 4; i++) {
		goro_gomaxprocs(procs[i]);
		goro_sleep(70 * GORO_MICROSECOND);
	}
	goro_waitgroup_done(done);
}

SCENE(world)
{
	goro_waitgroup done = { 0 };

	goro_waitgroup_add(&done, 6);
	go(change_procs, &done);
	go(in_calls, 0, &done);
	go(bound, 4, &done);
	go(spawn, 4, &done);
	go(sleep_some, 2, &done);
	go(hog, 2 * GORO_MILLISECOND, &done);
	goro_waitgroup_wait(&done);
}

/* ---------------------------------------------------------------------- io */

static void write_all(int fd, int n, goro_waitgroup *done)
{
	char text[40];

	memset(text, 'x', sizeof text);
	for (int i = 0; i < n; i++) {
		HOLDS(goro_write_full(fd, text, (size_t)(i % 40) + 1) == i % 40 + 1);
		if (i % 7 == 0)
			goro_sleep(30 * GORO_MICROSECOND);
	}
	shutdown(fd, SHUT_WR);
	goro_waitgroup_done(done);
}

static void read_all(int fd, long expected, goro_waitgroup *done)
{
	char text[64];
	long sum = 0, n;

	for (;;) {
		goro_set_deadline(fd, goro_deadline_in(200 * GORO_MICROSECOND), 0);
		n = goro_read(fd, text, sizeof text);
		if (n == 0)
			break;
		HOLDS(n > 0 || n == -ETIMEDOUT);
		if (n > 0)
			sum += n;
	}
	HOLDS(sum == expected);
	goro_close(fd);
	goro_waitgroup_done(done);
}

static void wait_for_close(int fd, goro_waitgroup *done)
{
	char c;

	ssize_t r = goro_read(fd, &c, 1);

	HOLDS(r == -ECANCELED || r == -EBADF);		/* it waited, or had not begun */
	goro_waitgroup_done(done);
}

SCENE(sockets)
{
	goro_waitgroup done = { 0 };
	int pair[3][2], lone[2];

	for (int i = 0; i < 3; i++) {
		HOLDS(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair[i]) == 0);
		goro_waitgroup_add(&done, 2);
		go(read_all, pair[i][0], 16L * 17 / 2, &done);
		go(write_all, pair[i][1], 16, &done);
	}
	HOLDS(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, lone) == 0);
	goro_waitgroup_add(&done, 1);
	go(wait_for_close, lone[0], &done);
	goro_sleep(100 * GORO_MICROSECOND);
	goro_close(lone[0]);
	goro_waitgroup_wait(&done);
}

/* ---------------------------------------------------------- plain threads */

static goro_chan *to_plain, *from_plain;

static void *plain(void *arg)
{
	int x;

	(void)arg;
	while (goro_chan_recv(to_plain, &x)) {
		x *= 2;
		goro_chan_send(from_plain, &x);
	}
	return NULL;
}

SCENE(plain_threads)
{
	int sum = 0, x;

	to_plain = goro_chan_of(int, 1);
	from_plain = goro_chan_of(int, 0);
	for (int i = 0; i < 3; i++)
		HOLDS(sim->thread_make(plain, NULL) == 0);
	for (int i = 1; i <= 12; i++) {
		goro_chan_send(to_plain, &i);
		if (i > 3) {
			HOLDS(goro_chan_recv(from_plain, &x));
			sum += x;
		}
	}
	for (int i = 0; i < 3; i++) {
		HOLDS(goro_chan_recv(from_plain, &x));
		sum += x;
	}
	goro_chan_close(to_plain);
	HOLDS(sum == 12 * 13);
}

/* -------------------------------------------------------------------- the log */

/* A run is the same with and without its log, which is how a failure is looked at. */
TEST(log_changes_nothing)
{
	char path[] = "/tmp/goro-sim-XXXXXX";
	struct sim_report without, with;

	if (sim_run(5, channels_scene, NULL, &without) == -ENOTSUP)
		SKIP("not under this tool");
	close(mkstemp(path));
	setenv("GORO_SIM_LOG", path, 1);
	CHECK_EQ(sim_run(5, channels_scene, NULL, &with), 0);
	unlink(path);
	CHECK_EQ(without.hash, with.hash);
	CHECK_EQ(without.points, with.points);
}

/* ----------------------------------------------------- contexts and groups */

static int work_until_done(goro_ctx *ctx, void *arg)
{
	(void)arg;
	while (goro_select_until(goro_deadline_in(40 * GORO_MICROSECOND),
	                         GORO_RECV(goro_ctx_done(ctx), NULL)) != 0)
		goro_gosched();
	return goro_ctx_err(ctx);
}

static int fail_soon(goro_ctx *ctx, void *arg)
{
	(void)ctx;
	goro_sleep(150 * GORO_MICROSECOND);
	return (int)(intptr_t)arg;
}

SCENE(groups)
{
	goro_ctx *parent = goro_ctx_with_timeout(goro_ctx_background(), GORO_SECOND);
	goro_group *group = goro_group_make(parent, 0);

	for (int i = 0; i < 4; i++)
		HOLDS(goro_group_go(group, work_until_done, NULL) == 0);
	HOLDS(goro_group_go(group, fail_soon, (void *)(intptr_t)-EIO) == 0);
	HOLDS(goro_group_wait(group) == -EIO);
	HOLDS(goro_ctx_err(parent) == 0);
	goro_ctx_cancel(parent);
	HOLDS(goro_ctx_err(parent) == -ECANCELED);
	goro_ctx_unref(parent);
}

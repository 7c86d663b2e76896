/*
 * fairness_test.c - the processor is shared among goroutines that work for different
 * lengths of time between two waits. By the order of runs and by work done, not by the
 * clock.
 */
/* test: procs */
#include <goro.h>
#include <time.h>

#include "platform/atomic.h"
#include "await.h"
#include "test.h"

/* ------------------------------------------------- two pairs, heavy and light */

enum { HEAVY = 1000000, LIGHT = 1000, FACTOR = 20 };

struct pair {
	goro_chan *done, *wake;
	int limit;
	volatile int64_t count;
};

static goro_waitgroup taking_turns;

/* Go's TestPingPongHog, to the letter. */
static void take_turns(struct pair *p)
{
	bool yes = true;

	for (;;) {
		switch (goro_select(GORO_RECV(p->done, NULL), GORO_RECV(p->wake, NULL))) {
		case 0:
			goro_waitgroup_done(&taking_turns);
			return;
		case 1:
			for (int i = 0; i < p->limit; i++)
				p->count++;
			goro_chan_send(p->wake, &yes);
		}
	}
}

static void start_pair(struct pair *p, goro_chan *done, int limit)
{
	*p = (struct pair){ .done = done, .wake = goro_chan_of(bool, 0), .limit = limit };
	goro_waitgroup_add(&taking_turns, 2);
	go(take_turns, p);
	go(take_turns, p);
}

struct measured {
	double ratio;		/* heavy work done for each piece of light work */
	bool had_cpu;		/* the program had a CPU for most of the time */
};

static int64_t cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * GORO_SECOND + t.tv_nsec;
}

static struct measured measure_pairs(void)
{
	static struct pair heavy, light;
	goro_chan *done = goro_chan_of(bool, 0);
	int64_t began = goro_now(), cpu = cpu_now();
	struct measured m;
	bool yes = true;

	start_pair(&heavy, done, HEAVY);
	start_pair(&light, done, LIGHT);
	goro_chan_send(heavy.wake, &yes);
	goro_chan_send(light.wake, &yes);
	goro_sleep(100 * GORO_MILLISECOND);
	goro_chan_close(done);
	m.had_cpu = cpu_now() - cpu > (goro_now() - began) / 4 * 3;
	goro_chan_recv(heavy.wake, NULL);
	goro_chan_recv(light.wake, NULL);
	goro_waitgroup_wait(&taking_turns);
	goro_chan_unref(heavy.wake);
	goro_chan_unref(light.wake);
	goro_chan_unref(done);
	m.ratio = (double)heavy.count / (double)light.count;
	printf("heavy %ld, light %ld: %.2f%s\n", (long)heavy.count, (long)light.count, m.ratio,
	       m.had_cpu ? "" : ", short of CPU time");
	return m;
}

/* Slices are measured by the clock. On a busy machine the kernel may leave the program,
 * or one of its threads, without a CPU for most of the time: such a try may be
 * repeated. */
GO_TEST(a_light_pair_beside_a_heavy_one_has_its_share)
{
	for (int tries = 20; tries > 0; tries--) {
		struct measured m = measure_pairs();

		if (m.ratio <= FACTOR && m.ratio >= 1. / FACTOR)
			return;
		if (m.had_cpu)
			FAIL("heavy work is %.2f times the light work", m.ratio);
	}
	FAIL("never, and not once with a CPU for most of the time");
}

/* ------------------------------------------------------------------ timers */

static void send_until_done(goro_chan *c, goro_chan *done)
{
	bool yes = true;

	while (goro_select(GORO_SEND(c, &yes), GORO_RECV(done, NULL)) == 0)
		;
	goro_chan_unref(c);
	goro_chan_unref(done);
}

/* Go's TestTimerFairness. */
GO_TEST(a_timer_is_seen_by_who_always_finds_another_case_ready)
{
	goro_chan *c = goro_chan_of(bool, 0), *done = goro_chan_of(bool, 0);
	goro_timer *t;

	for (int i = 0; i < 2; i++)
		go(send_until_done, goro_chan_ref(c), goro_chan_ref(done));
	t = goro_timer_make(20 * GORO_MILLISECOND);
	while (goro_select(GORO_RECV(c, NULL), GORO_RECV(goro_timer_chan(t), NULL)) == 0)
		;
	goro_chan_close(done);
	AWAIT(goro_num_goroutine() == 1);
	goro_timer_free(t);
	goro_chan_unref(c);
	goro_chan_unref(done);
}

/* A system call in between, that returns at once. */
static void exchange_until_time(goro_chan *c, goro_chan *done)
{
	goro_timer *t = goro_timer_make(20 * GORO_MILLISECOND);
	bool yes = true;
	char none[1];

	do {
		goro_syscall_enter();
		CHECK(read(-1, none, 0) < 0);
		goro_syscall_exit();
	} while (goro_select(GORO_SEND(c, &yes), GORO_RECV(c, NULL), GORO_RECV(goro_timer_chan(t), NULL)) != 2);
	goro_chan_send(done, &yes);
	goro_timer_free(t);
	goro_chan_unref(c);
	goro_chan_unref(done);
}

/* Go's TestTimerFairness2. */
GO_TEST(timers_are_seen_by_a_pair_that_makes_system_calls)
{
	goro_chan *c = goro_chan_of(bool, 0), *done = goro_chan_of(bool, 0);

	for (int i = 0; i < 2; i++)
		go(exchange_until_time, goro_chan_ref(c), goro_chan_ref(done));
	for (int i = 0; i < 2; i++)
		goro_chan_recv(done, NULL);
	goro_chan_unref(c);
	goro_chan_unref(done);
}

/* --------------------------------------------------------- turns by spinning */

static uint32_t turn;

static void spin_for_turns(uint32_t first, uint32_t apart, int rounds, goro_waitgroup *wg)
{
	for (int i = 0; i < rounds; i++, first += apart) {
		while (load_relaxed(&turn) != first)
			;
		store_relaxed(&turn, first + 1);
	}
	goro_waitgroup_done(wg);
}

static void spin_in_turns(uint32_t n, int rounds)
{
	goro_waitgroup wg = { 0 };

	store_relaxed(&turn, 0);
	goro_waitgroup_add(&wg, (int)n);
	for (uint32_t i = 0; i < n; i++)
		go(spin_for_turns, i, n, rounds, &wg);
	goro_waitgroup_wait(&wg);
}

/* Go's TestPreemption: on one P each turn waits until the other is stopped. */
GO_TEST(two_that_spin_for_each_other_take_turns) { spin_in_turns(2, 3); }

/* Go's TestGoroutineParallelism. */
GO_TEST(four_that_spin_for_each_other_have_a_p_each)
{
	goro_gomaxprocs(4);
	spin_in_turns(4, 2);
}

/* ------------------------------------------------------------ system calls */

static bool stop;

static void wait_a_little(void *arg)
{
	usleep(*(useconds_t *)arg);
}

static void call_until_stopped(useconds_t us, goro_chan *c)
{
	bool yes = true;

	goro_chan_send(c, &yes);
	while (!load_relaxed(&stop))
		goro_blocking(wait_a_little, &us);
	goro_chan_send(c, &yes);
	goro_chan_unref(c);
}

/* Go's TestPreemptionAfterSyscall. */
static void call_for(useconds_t us)
{
	enum { CALLERS = 8 };
	goro_chan *c = goro_chan_of(bool, CALLERS);

	store_relaxed(&stop, false);
	for (int i = 0; i < CALLERS; i++)
		go(call_until_stopped, us, goro_chan_ref(c));
	for (int i = 0; i < CALLERS; i++)
		goro_chan_recv(c, NULL);
	store_relaxed(&stop, true);
	for (int i = 0; i < CALLERS; i++)
		goro_chan_recv(c, NULL);
	goro_chan_unref(c);
}

GO_TEST(those_who_make_one_short_call_after_the_other_hold_up_nobody)
{
	call_for(10);
	call_for(100);
	call_for(1000);
}

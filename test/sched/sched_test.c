/*
 * sched_test.c - goroutines run: all of them, on all Ps, in turn, and take their
 * errno and their rounding mode along.
 */
/* test: procs */
#include <fenv.h>
#include <goro.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "platform/atomic.h"
#include "await.h"
#include "platform/cpus.h"
#include "limit_memory.h"
#include "sched/linger.h"
#include "sched/runtime.h"
#include "test.h"

static int counter;

static void count_one(void)
{
	fetch_add_relaxed(&counter, 1);
}

/* ------------------------------------------------------------ slices */

static void give_back(goro_chan *to, goro_chan *fro)
{
	while (goro_chan_recv(to, NULL))
		goro_chan_send(fro, NULL);
}

/* The one that was made ready last runs next, and goes on with the slice. */
GO_TEST(a_pair_that_hands_over_to_each_other_shares_slices)
{
	goro_chan *to = goro_chan_make(0, 0), *fro = goro_chan_make(0, 0);
	const struct p_counts *count = &p_at(0)->count;
	uint64_t switches, inherited;

	goro_gomaxprocs(1);
	go(give_back, to, fro);
	switches = count->switches;
	inherited = count->inherited;
	for (int i = 0; i < 1000; i++) {
		goro_chan_send(to, NULL);
		goro_chan_recv(fro, NULL);
	}
	switches = count->switches - switches;
	inherited = count->inherited - inherited;
	CHECK(switches >= 1000);
	CHECK(inherited > switches / 4 * 3 && inherited <= switches);
	goro_chan_close(to);
}

/* -------------------------------------------------------------- all Ps run */

static void meet(int n)
{
	fetch_add_seqcst(&counter, 1);
	SPIN_UNTIL(load_seqcst(&counter) >= n);
}

/* Nobody leaves the meeting before all have come, and nobody yields in it: so
 * each needs a thread and a P of its own. */
GO_TEST(as_many_run_at_once_as_there_are_ps)
{
	int n = goro_gomaxprocs(0);

	for (int i = 1; i < n; i++)
		go(meet, n);
	meet(n);
}

static void meet_and_leave(int n, goro_waitgroup *wg)
{
	meet(n);
	goro_waitgroup_done(wg);
}

GO_TEST(all_ps_are_found_again_after_they_were_idle)
{
	int n = goro_gomaxprocs(0);

	for (int round = 0; round < 5; round++) {
		goro_waitgroup wg = { 0 };

		store_seqcst(&counter, 0);
		goro_waitgroup_add(&wg, n);
		for (int i = 0; i < n; i++)
			go(meet_and_leave, n, &wg);
		goro_waitgroup_wait(&wg);
		if (round % 2)
			usleep(20000);	/* long enough for threads to go to sleep */
	}
}

static int ended;

static void compute_until_ended(goro_waitgroup *wg)
{
	while (!load_relaxed(&ended))
		;
	goro_waitgroup_done(wg);
}

static uint64_t running(void)
{
	struct goro_stats s;

	goro_stats_read(&s);
	return s.running;
}

/* A P that there is no CPU for is not woken for short work, but for goroutines that
 * compute. */
GO_TEST(ps_beyond_the_cpus_are_for_those_who_compute)
{
	int cpus = cpus_affinity(), n = 3 * cpus;
	goro_waitgroup wg = { 0 };

	goro_gomaxprocs(cpus);
	CHECK_EQ(sched.unneeded_p, 0);
	goro_gomaxprocs(n + 1);
	CHECK_EQ(sched.unneeded_p, n + 1 - cpus);
	store_relaxed(&ended, 0);
	goro_waitgroup_add(&wg, n);
	for (int i = 0; i < n; i++)
		go(compute_until_ended, &wg);
	AWAIT(running() == (uint64_t)n + 1);
	store_relaxed(&ended, 1);
	goro_waitgroup_wait(&wg);
}

TEST(no_p_is_woken_that_there_is_no_cpu_for)
{
	sched.idle_p_n = sched.unneeded_p = 3;
	wake();
	CHECK_EQ(sched.spinning, 0);
	CHECK(!p_to_spare());
	sched.idle_p_n = 4;
	CHECK(p_to_spare());
}

static void *helper(void *arg)
{
	(void)arg;
	procs_help(false);
	return NULL;
}

/* A thread of the runtime may keep a CPU busy, too. When it ends, it wakes an M for
 * goroutines for which none was woken. */
/* No P beyond the CPUs is used for events while the busy Ps are quick to look
 * themselves. */
TEST(no_p_is_used_for_events_that_the_quick_see_to)
{
	sched.idle_p_n = sched.unneeded_p = 3;
	CHECK(p_for_events());
	monitor.brisk = true;
	CHECK(!p_for_events());
	sched.idle_p_n = 4;
	CHECK(p_for_events());
	monitor.brisk = false;
	sched.idle_p_n = 0;
	CHECK(!p_for_events());
}

GO_TEST(a_cpu_that_the_runtime_uses_is_left_to_it)
{
	int cpus = cpus_affinity(), n = goro_gomaxprocs(0);
	pthread_t thread;

	procs_help(true);
	CHECK_EQ(sched.unneeded_p, n + 1 - cpus < 0 ? 0 : n + 1 - cpus < n ? n + 1 - cpus : n - 1);
	goro_gomaxprocs(1);
	CHECK_EQ(sched.unneeded_p, 0);
	goro_gomaxprocs(2);
	CHECK_EQ(sched.unneeded_p, cpus > 2 ? 0 : 1);
	store_relaxed(&counter, 0);
	go(count_one);
	CHECK_EQ(pthread_create(&thread, NULL, helper, NULL), 0);
	SPIN_UNTIL(load_relaxed(&counter) == 1);
	pthread_join(thread, NULL);
	CHECK_EQ(sched.unneeded_p, cpus > 1 ? 0 : 1);
}

/* ---------------------------------------------------------------- yielding */

enum { YIELDERS = 5, YIELDS = 10000 };
static int yields[YIELDERS];
static int behind_at_end;	/* yields of the slowest when the first was done */

static void yielder(int i, goro_waitgroup *wg)
{
	for (; yields[i] < YIELDS; yields[i]++)
		goro_gosched();
	if (behind_at_end < 0)
		for (int k = 0; k < YIELDERS; k++)
			if (behind_at_end < 0 || yields[k] < behind_at_end)
				behind_at_end = yields[k];
	goro_waitgroup_done(wg);
}

/* One that is stopped, because its thread gets no CPU for a slice, misses some turns: not
 * every time. */
GO_TEST(on_one_p_yielding_goroutines_take_turns)
{
	int most = 0;

	goro_gomaxprocs(1);
	for (int try = 0; try < 20 && most < YIELDS * 9 / 10; try++) {
		goro_waitgroup wg = { 0 };

		memset(yields, 0, sizeof yields);
		behind_at_end = -1;
		goro_waitgroup_add(&wg, YIELDERS);
		for (int i = 0; i < YIELDERS; i++)
			go(yielder, i, &wg);
		goro_waitgroup_wait(&wg);
		if (behind_at_end > most)
			most = behind_at_end;
	}
	if (most < YIELDS * 9 / 10)
		FAIL("one yielded %d times while another did %d times", most, YIELDS);
}

/* Unless it is stopped as soon as it runs, since its thread gets no CPU. */
GO_TEST(gosched_lets_a_newly_started_goroutine_run)
{
	int stopped = 0;

	goro_gomaxprocs(1);
	for (int i = 1; i <= 1000; i++) {
		go(count_one);
		goro_gosched();
		if (load_relaxed(&counter) != i) {
			stopped++;
			AWAIT(load_relaxed(&counter) == i);
		}
	}
	CHECK(stopped < 10);
}

GO_TEST(gosched_alone_returns)
{
	for (int i = 0; i < 100000; i++)
		goro_gosched();
}

/* A yielding goroutine is queued before its stack is at rest. In a build with checks it
 * lingers in between, so that the other Ps, which are idle, take it: on the same stack
 * there would be two of them. */
static void yield_and_count(uint64_t *sum, goro_waitgroup *wg)
{
	for (int i = 0; i < SCALED(20000); i++) {
		volatile uint64_t on_its_stack = (uint64_t)i;

		if (i % 100 == 0)
			linger_round(i / 100);
		goro_gosched();
		*sum += on_its_stack;
	}
	goro_waitgroup_done(wg);
}

GO_TEST(one_that_yields_is_taken_up_when_it_is_at_rest)
{
	enum { N = 6 };
	static uint64_t sum[N];
	uint64_t n = SCALED(20000);
	goro_waitgroup wg = { 0 };

	goro_waitgroup_add(&wg, N);
	for (int i = 0; i < N; i++)
		go(yield_and_count, &sum[i], &wg);
	goro_waitgroup_wait(&wg);
	for (int i = 0; i < N; i++)
		CHECK_EQ(sum[i], n * (n - 1) / 2);
}

/* A goroutine comes back from a blocking call while an M is about to make its P idle, and
 * starts another one when no P is idle yet. That M has to look once more. In a build with
 * checks it lingers before it makes the P idle. The goroutine keeps its own P. */
static void take_some_time(void *arg)
{
	(void)arg;
	usleep(100);
}

static void do_nothing(void)
{
}

static void set_to(int *what, int i)
{
	store_release(what, i);
}

GO_TEST(one_started_just_before_a_p_goes_idle_runs)
{
	static int ran;

	goro_gomaxprocs(2);
	if (load_relaxed(&sched.unneeded_p) != 0)
		SKIP("needs two CPUs");
	for (int i = 1; i <= SCALED(1000); i++) {
		store_relaxed(&debug.linger, 200);
		go(do_nothing);
		goro_blocking(take_some_time, NULL);
		goro_preempt_disable();
		go(set_to, &ran, i);
		while (load_acquire(&ran) != i)
			cpu_relax();
		goro_preempt_enable();
	}
	store_relaxed(&debug.linger, 0);
}

/* ------------------------------------------------------- fan-out and fan-in */

static void produce(goro_chan *c, int from, int to)
{
	for (int i = from; i < to; i++)
		goro_chan_send(c, &i);
}

static void work(goro_chan *in, goro_chan *out)
{
	int n;

	while (goro_chan_recv(in, &n)) {
		int64_t square = (int64_t)n * n;

		goro_chan_send(out, &square);
	}
}

static int64_t fan(int producers, int each, int workers, size_t capacity)
{
	goro_chan *in = goro_chan_of(int, capacity), *out = goro_chan_of(int64_t, capacity);
	int64_t sum = 0, one;

	for (int i = 0; i < producers; i++)
		go(produce, in, i * each, (i + 1) * each);
	for (int i = 0; i < workers; i++)
		go(work, in, out);
	for (int i = 0; i < producers * each; i++) {
		CHECK(goro_chan_recv(out, &one));
		sum += one;
	}
	goro_chan_close(in);
	return sum;
}

GO_TEST(fan_out_and_fan_in_lose_nothing)
{
	enum { PRODUCERS = 20, EACH = 500, N = PRODUCERS * EACH };
	int64_t expected = (int64_t)(N - 1) * N * (2 * N - 1) / 6;

	CHECK_EQ(fan(PRODUCERS, EACH, 100, 0), expected);
	CHECK_EQ(fan(PRODUCERS, EACH, 3, 1), expected);
	CHECK_EQ(fan(PRODUCERS, EACH, 10, 100), expected);
}

/* ------------------------------------------------------------ many of them */

static void chain(int left, goro_chan *end)
{
	if (left == 0)
		goro_chan_close(end);
	else
		CHECK_EQ(go(chain, left - 1, end), 0);
}

GO_TEST(each_of_100000_starts_the_next)
{
	goro_chan *end = goro_chan_of(char, 0);

	go(chain, SCALED(100000), end);
	CHECK(!goro_chan_recv(end, NULL));
}

enum { ID_BITS = 1 << 22 };
static uint64_t id_seen[ID_BITS / 64];

static void note_id(void)
{
	uint64_t id = goro_id(), bit = UINT64_C(1) << id % 64;

	CHECK(id > 0 && id < ID_BITS);
	if (__atomic_fetch_or(&id_seen[id / 64], bit, __ATOMIC_RELAXED) & bit)
		FAIL("two goroutines have the id %llu", (unsigned long long)id);
	count_one();
}

static void start_many(int n)
{
	note_id();
	for (int i = 0; i < n; i++)
		CHECK_EQ(go(note_id), 0);
}

GO_TEST(ids_are_unique)
{
	enum { STARTERS = 100 };
	int each = SCALED(3000);

	note_id();
	for (int i = 0; i < STARTERS; i++)
		go(start_many, each);
	AWAIT(load_relaxed(&counter) == 1 + STARTERS * (each + 1));
}

GO_TEST(main_has_id_1)
{
	CHECK_EQ(goro_id(), 1);
}

TEST(a_plain_thread_has_id_0)
{
	CHECK_EQ(goro_id(), 0);
	goro_gosched();		/* now the runtime runs */
	CHECK_EQ(goro_id(), 0);
}

static void wait_for_close(goro_chan *c)
{
	count_one();
	goro_chan_recv(c, NULL);
}

GO_TEST(num_goroutine_counts_the_living)
{
	goro_chan *c = goro_chan_of(char, 0);
	size_t before = goro_num_goroutine();

	CHECK_EQ(before, 1);
	for (int i = 0; i < 1000; i++)
		go(wait_for_close, c);
	CHECK_EQ(goro_num_goroutine(), before + 1000);
	AWAIT(load_relaxed(&counter) == 1000);
	CHECK_EQ(goro_num_goroutine(), before + 1000);
	goro_chan_close(c);
	AWAIT(goro_num_goroutine() == before);
}

/* ----------------------------------------------------------------- starving */

static bool stop;

static void volley(goro_chan *in, goro_chan *out)
{
	int ball;

	while (goro_chan_recv(in, &ball) && !load_relaxed(&stop)) {
		ball++;
		goro_chan_send(out, &ball);
	}
	goro_chan_close(out);
}

static void yield_and_report(int n, goro_chan *done)
{
	for (int i = 0; i < n; i++)
		goro_gosched();
	goro_chan_send(done, &n);
}

GO_TEST(a_pair_that_wakes_each_other_does_not_starve_a_third)
{
	goro_chan *a = goro_chan_of(int, 0), *b = goro_chan_of(int, 0);
	goro_chan *done = goro_chan_of(int, 1);
	int ball = 0;

	goro_gomaxprocs(1);
	go(volley, a, b);
	go(volley, b, a);
	go(yield_and_report, 1000, done);
	goro_chan_send(a, &ball);
	CHECK(goro_chan_recv(done, NULL));
	store_relaxed(&stop, true);
}

static void start_another(void)
{
	if (!load_relaxed(&stop))
		go(start_another);
}

static void wake_then_yield(goro_chan *wake, int n, goro_waitgroup *wg)
{
	count_one();
	goro_chan_recv(wake, NULL);
	for (int i = 0; i < n; i++)
		goro_gosched();
	goro_waitgroup_done(wg);
}

/* The newest started goroutine runs first, and here there is always a newer. */
GO_TEST(those_who_keep_starting_others_do_not_starve_the_woken)
{
	goro_chan *wake = goro_chan_of(char, 0);
	goro_waitgroup wg = { 0 };

	goro_gomaxprocs(1);
	goro_waitgroup_add(&wg, 10);
	for (int i = 0; i < 10; i++)
		go(wake_then_yield, wake, 20, &wg);
	AWAIT(load_relaxed(&counter) == 10);
	for (int i = 0; i < 3; i++)
		go(start_another);
	goro_chan_close(wake);
	goro_waitgroup_wait(&wg);
	store_relaxed(&stop, true);
}

static void start_without_pause(void)
{
	while (!load_relaxed(&stop))
		go(count_one);
}

GO_TEST(one_that_starts_others_without_pause_gives_way)
{
	goro_waitgroup wg = { 0 };
	goro_chan *wake = goro_chan_of(char, 0);

	if (TOOL_TSAN)
		SKIP("there may be more of them than the sanitizer can follow");
	goro_gomaxprocs(1);
	goro_waitgroup_add(&wg, 1);
	go(wake_then_yield, wake, 5, &wg);
	AWAIT(load_relaxed(&counter) == 1);
	go(start_without_pause);
	goro_chan_close(wake);
	goro_waitgroup_wait(&wg);
	store_relaxed(&stop, true);
}

static void hold_for_a_while(void)
{
	for (int64_t end = goro_now() + 100 * GORO_MILLISECOND; goro_now() < end;)
		;
	store_relaxed(&stop, true);
}

/* A thread to run the others while one is stopped would be good to have. */
GO_TEST(a_spare_thread_that_cannot_be_had_is_done_without)
{
	struct rlimit limit;
	unsigned long pages;
	FILE *f;

	needs_memory_limit();
	goro_gomaxprocs(1);
	AWAIT(runtime_is_whole());
	f = fopen("/proc/self/statm", "r");
	if (!f || fscanf(f, "%lu", &pages) != 1)
		SKIP("cannot tell how much memory there is");
	fclose(f);
	limit.rlim_cur = limit.rlim_max = pages * (unsigned long)sysconf(_SC_PAGESIZE);
	CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
	go(hold_for_a_while);
	while (!load_relaxed(&stop))
		goro_gosched();
}

/* -------------------------------------------------------------------- errno */

static void keep_errno(int mine, goro_chan *c, goro_waitgroup *wg)
{
	int other;

	for (int i = 0; i < SCALED(1000); i++) {
		errno = mine;
		goro_gosched();
		CHECK_EQ(errno, mine);
		errno = -mine;
		if (mine % 2)
			goro_chan_send(c, &mine);
		else
			goro_chan_recv(c, &other);
		CHECK_EQ(errno, -mine);
	}
	goro_waitgroup_done(wg);
}

static int errno_main(int argc, char **argv)
{
	goro_chan *c = goro_chan_of(int, 0);
	goro_waitgroup wg = { 0 };

	(void)argc, (void)argv;
	goro_waitgroup_add(&wg, 64);
	for (int i = 1; i <= 64; i++)
		go(keep_errno, i, c, &wg);
	errno = 1234;
	goro_waitgroup_wait(&wg);
	CHECK_EQ(errno, 1234);
	return 0;
}

TEST(errno_belongs_to_the_goroutine)
{
	CHECK_EQ(goro_run(errno_main, 0, NULL), 0);
}

TEST(errno_belongs_to_the_goroutine_that_changes_its_thread)
{
	setenv("GORO_DEBUG", "migrate=1", 1);
	CHECK_EQ(goro_run(errno_main, 0, NULL), 0);
}

static void errno_is_zero(goro_waitgroup *wg)
{
	CHECK_EQ(errno, 0);
	errno = 99;
	goro_waitgroup_done(wg);
}

GO_TEST(errno_is_zero_in_a_new_goroutine)
{
	goro_waitgroup wg = { 0 };

	errno = 77;
	goro_waitgroup_add(&wg, 1000);
	for (int i = 0; i < 1000; i++)
		go(errno_is_zero, &wg);
	goro_waitgroup_wait(&wg);
	CHECK_EQ(errno, 77);
}

/* ---------------------------------------------------- an M stops spinning */

static int may_send, has_sent;

static void *send_when_told(void *c)
{
	while (!load_acquire(&may_send))
		sched_yield();
	goro_chan_send(c, NULL);
	store_release(&has_sent, 1);
	return NULL;
}

static void receive_one(goro_chan *c)
{
	goro_chan_recv(c, NULL);
}

static uint64_t threads_woken(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < 2; i++)
		sum += load_relaxed(&p_at(i)->count.thread_wakeups);
	return sum;
}

/* While an M spins, no M is woken for what a plain thread makes ready. The M wakes
 * another one when it stops spinning; here no P but its own is in use, so it needs no
 * membarrier. True: a goroutine was left in the queue. */
static bool stop_looking(goro_chan *c)
{
	bool left = false;
	uint64_t before;
	struct m *mp;
	pthread_t t;

	go(receive_one, c);
	store_relaxed(&may_send, 0);
	store_relaxed(&has_sent, 0);
	CHECK_EQ(pthread_create(&t, NULL, send_when_told, c), 0);
	goro_gosched();
	AWAIT(load_relaxed(&sched.idle_p_n) == 1);
	mp = rt_enter();
	if (spinning_begin_alone(mp)) {
		store_release(&may_send, 1);
		SPIN_UNTIL(load_acquire(&has_sent));
		before = threads_woken();
		spinning_end(mp);
		left = load_relaxed(&globq.queued) > 0;
		if (left)
			CHECK(threads_woken() > before);
	}
	rt_exit(mp);
	store_release(&may_send, 1);
	pthread_join(t, NULL);
	AWAIT(goro_num_goroutine() == 1);
	return left;
}

GO_TEST(who_stops_looking_wakes_another_for_what_came_meanwhile)
{
	goro_chan *c = goro_chan_make(0, 1);

	goro_gomaxprocs(2);
	AWAIT(runtime_is_whole());
	for (int left = 0; left < 5;)
		left += stop_looking(c);
}

/* --------------------------------------------------------- who goes first */

static int received;

static void receive_all(goro_chan *c)
{
	while (goro_chan_recv(c, NULL))
		fetch_add_relaxed(&received, 1);
	goro_chan_unref(c);
}

enum { SENDS = 60 };

/* Of SENDS sends while all other threads sleep. */
struct sends {
	int after;	/* when they were over the receiver had run, here or elsewhere */
	int switched;	/* they let it run here */
};

static struct sends send_from_idle(void)
{
	goro_chan *c = goro_chan_of(int, 1);
	struct sends sends = { 0, 0 };

	if (cpus_affinity() < 2)
		SKIP("no CPU for another thread");
	goro_gomaxprocs(2);
	AWAIT(runtime_is_whole());
	store_relaxed(&received, 0);
	go(receive_all, goro_chan_ref(c));
	for (int i = 0; i < SENDS; i++) {
		uint64_t *switches, before;

		goro_sleep(2 * GORO_MILLISECOND);
		switches = &m_self()->p->count.switches;
		before = load_relaxed(switches);
		goro_chan_send(c, &i);
		sends.after += load_relaxed(&received) > i;
		sends.switched += load_relaxed(switches) > before;
		AWAIT(load_relaxed(&received) > i);
	}
	goro_chan_close(c);
	goro_chan_unref(c);
	return sends;
}

GO_TEST(who_is_woken_from_idle_goes_first)
{
	/* On a busy machine other threads may be awake for long. */
	for (int tries = 5; send_from_idle().after <= SENDS / 2;)
		CHECK(--tries > 0);
}

GO_TEST(who_is_locked_to_its_thread_goes_on)
{
	goro_lock_os_thread();
	CHECK_EQ(send_from_idle().switched, 0);
	goro_unlock_os_thread();
}

GO_TEST(who_is_not_to_be_preempted_goes_on)
{
	goro_preempt_disable();
	CHECK_EQ(send_from_idle().switched, 0);
	goro_preempt_enable();
}

/* ---------------------------------------------------------------- rounding */

static double third(void)
{
	volatile double one = 1, three = 3;

	return one / three;
}

static void keep_rounding(int mode, goro_chan *c, goro_waitgroup *wg)
{
	double expected;

	CHECK_EQ(fegetround(), FE_TONEAREST);
	fesetround(mode);
	expected = third();
	for (int i = 0; i < SCALED(1000); i++) {
		goro_gosched();
		CHECK(third() == expected);
		if (mode == FE_UPWARD)
			goro_chan_send(c, &i);
		else
			goro_chan_recv(c, NULL);
		CHECK_EQ(fegetround(), mode);
		CHECK(third() == expected);
	}
	goro_waitgroup_done(wg);
}

GO_TEST(the_rounding_mode_belongs_to_the_goroutine)
{
	goro_chan *c = goro_chan_of(int, 0);
	goro_waitgroup wg = { 0 };
	double usual = third();

	goro_waitgroup_add(&wg, 20);
	for (int i = 0; i < 10; i++) {
		go(keep_rounding, FE_UPWARD, c, &wg);
		go(keep_rounding, FE_DOWNWARD, c, &wg);
	}
	goro_waitgroup_wait(&wg);
	CHECK_EQ(fegetround(), FE_TONEAREST);
	CHECK(third() == usual);
}

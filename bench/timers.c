/*
 * timers - sleepers, timeouts that do not happen, tickers.
 *
 * timers.sleep: 200,000 goroutines that are there already sleep once each, to
 * ends that are spread evenly over a second in no order; CPU time each, and how
 * late they wake (p50, p99), noted in the order of their ends: in that of their
 * numbers each note would be a miss of the caches, a tenth of what a sleep takes here.
 * timers.stop: a timer is made and stopped in time, beside 10,000 others; as for
 * every request with a timeout. timers.reset: one is put off again and again.
 * timers.tick: a thousand tickers of 10 ms with a goroutine each; CPU time per
 * tick. Not in rounds, like the sleepers: the time that it takes is given.
 */
#include "bench.h"

#define SLEEPERS   200000
#define LEAD_NS    (300 * GORO_MILLISECOND)     /* for all to fall asleep */
#define SPREAD_NS  (1 * GORO_SECOND)
#define STRIDE     7919                         /* a prime: in no order */

#define OTHERS     10000
#define CHANGES    10000                        /* per round */

#define TICKERS    1000
#define TICKS      50
#define PERIOD_NS  (10 * GORO_MILLISECOND)

/* ------------------------------------------------------------- sleepers */

static goro_waitgroup ready, gate, ended;
static int64_t first_end;
static int64_t late[SLEEPERS];

static void sleeper(uint64_t number)
{
	int64_t end, place = (int64_t)(number * STRIDE % SLEEPERS);

	goro_waitgroup_done(&ready);
	goro_waitgroup_wait(&gate);
	end = first_end + place * (SPREAD_NS / SLEEPERS);
	goro_sleep(end - goro_now());
	late[place] = goro_now() - end;
	goro_waitgroup_done(&ended);
}

static void sleepers(void)
{
	int64_t cpu;
	int early = 0;

	goro_waitgroup_add(&ready, SLEEPERS);
	goro_waitgroup_add(&gate, 1);
	goro_waitgroup_add(&ended, SLEEPERS);
	for (uint64_t i = 0; i < SLEEPERS; i++)
		BENCH_GO(sleeper, i);
	goro_waitgroup_wait(&ready);
	cpu = measure_cpu_ns();
	first_end = goro_now() + LEAD_NS;
	goro_waitgroup_done(&gate);
	goro_waitgroup_wait(&ended);
	cpu = measure_cpu_ns() - cpu;
	for (int i = 0; i < SLEEPERS; i++)
		early += late[i] < 0;
	bench_report("timers.sleep.cpu", (double)cpu / SLEEPERS, "ns",
	             "%d slept, %d early", SLEEPERS, early);
	bench_report_latency("timers.sleep", late, SLEEPERS,
	                     "%d slept, %d early", SLEEPERS, early);
}

/* ---------------------------------------------------------------- churn */

/* One of some that differ, so that they do not all have the same place. */
static int64_t timeout_ns(int i)
{
	return GORO_SECOND * (60 + i % 64);
}

static uint64_t stop_round(void)
{
	uint64_t in_time = 0;

	for (int i = 0; i < CHANGES; i++) {
		goro_timer *t = goro_timer_make(timeout_ns(i));

		in_time += goro_timer_stop(t);
		goro_timer_free(t);
	}
	return in_time;
}

static uint64_t reset_round(void)
{
	goro_timer *t = goro_timer_make(timeout_ns(0));
	uint64_t in_time = 0;

	for (int i = 0; i < CHANGES; i++)
		in_time += goro_timer_reset(t, timeout_ns(i));
	goro_timer_stop(t);
	goro_timer_free(t);
	return in_time;
}

static void nothing(void *arg)
{
	(void)arg;
}

/* The other timers have functions, since those with a channel that nobody waits
 * on could be left out of the heap. */
static void churn(void)
{
	static goro_timer *other[OTHERS];
	struct measurement m;

	for (int i = 0; i < OTHERS; i++)
		other[i] = goro_after_func(timeout_ns(i), nothing, NULL);
	m = measure(stop_round, CHANGES);
	bench_report("timers.stop", m.ns_per_op, "ns", "%" PRIu64, m.check);
	m = measure(reset_round, CHANGES);
	bench_report("timers.reset", m.ns_per_op, "ns", "%" PRIu64, m.check);
	for (int i = 0; i < OTHERS; i++) {
		goro_timer_stop(other[i]);
		goro_timer_free(other[i]);
	}
}

/* -------------------------------------------------------------- tickers */

static void ticked(uint64_t *ticks, goro_waitgroup *wg)
{
	goro_ticker *t = goro_ticker_make(PERIOD_NS);

	for (int i = 0; i < TICKS; i++) {
		goro_chan_recv(goro_ticker_chan(t), NULL);
		(*ticks)++;
	}
	goro_ticker_free(t);
	goro_waitgroup_done(wg);
}

static void tickers(void)
{
	static struct { _Alignas(BENCH_LINE) uint64_t ticks; } slot[TICKERS];
	goro_waitgroup wg = { 0 };
	uint64_t sum = 0;
	int64_t cpu = measure_cpu_ns();

	goro_waitgroup_add(&wg, TICKERS);
	for (int i = 0; i < TICKERS; i++)
		BENCH_GO(ticked, &slot[i].ticks, &wg);
	goro_waitgroup_wait(&wg);
	cpu = measure_cpu_ns() - cpu;
	for (int i = 0; i < TICKERS; i++)
		sum += slot[i].ticks;
	bench_report("timers.tick", (double)cpu / (TICKERS * TICKS), "ns",
	             "%" PRIu64, sum);
}

static int bench_main(int argc, char **argv)
{
	(void)argc, (void)argv;
	sleepers();
	churn();
	tickers();
	return 0;
}

GORO_MAIN(bench_main)

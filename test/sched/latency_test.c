/*
 * The histogram of times from ready to running: its layout is Go's, and what is
 * sampled stands for the rest.
 */
#include "sched/latency.h"

#include <goro.h>
#include <math.h>

#include "await.h"
#include "base/debug.h"
#include "test.h"

#define CHECK_TIME(a, b) CHECK(fabs((a) - (b)) <= 1e-12 * fabs(b))

/* Boundaries as metrics.Read of Go's runtime/metrics returns them. */
TEST(layout_is_gos)
{
	double bound[200];

	CHECK_EQ(goro_sched_latency(NULL, NULL, 0), 162);
	CHECK_EQ(goro_sched_latency(NULL, bound, 200), 162);
	CHECK(bound[0] == 0);
	CHECK_TIME(bound[1], 6.4e-08);
	CHECK_TIME(bound[2], 1.28e-07);
	CHECK_TIME(bound[3], 1.92e-07);
	CHECK_TIME(bound[4], 2.56e-07);
	CHECK_TIME(bound[5], 3.2e-07);
	CHECK_TIME(bound[8], 5.12e-07);
	CHECK_TIME(bound[9], 6.4e-07);
	CHECK_TIME(bound[159], 123145.302310912);
	CHECK_TIME(bound[160], 140737.48835532801);
	CHECK(isinf(bound[161]) && bound[161] > 0);
	for (int i = 1; i < 162; i++)
		CHECK(bound[i] > bound[i - 1]);
}

static int64_t end_ns(unsigned bucket)
{
	return llround(latency_upper_bound(bucket) * 1e9);
}

TEST(buckets_end_where_they_say)
{
	CHECK_EQ(latency_bucket(-1), 0);
	CHECK_EQ(latency_bucket(INT64_MIN), 0);
	CHECK_EQ(latency_bucket(0), 1);
	for (unsigned i = 0; i < LATENCY_BUCKETS - 1; i++) {
		CHECK_EQ(latency_bucket(end_ns(i) - 1), i);
		CHECK_EQ(latency_bucket(end_ns(i)), i + 1);
	}
	CHECK_EQ(latency_bucket(INT64_MAX), LATENCY_BUCKETS - 1);
}

TEST(no_more_is_filled_in_than_there_is_room)
{
	uint64_t count[3] = { 7, 7, 7 };
	double bound[3] = { 7, 7, 7 };

	goro_sched_latency(count, bound, 2);
	CHECK_EQ(count[1], 0);
	CHECK_EQ(count[2], 7);
	CHECK(bound[1] < 1 && bound[2] == 7);
}

static struct p *make_p(void)
{
	struct p *pp = calloc(1, sizeof *pp);

	pp->latency_in = 1;
	return pp;
}

static uint64_t counted(const struct p *pp)
{
	uint64_t n = 0;

	for (int i = 0; i < LATENCY_BUCKETS; i++)
		n += pp->latency.count[i];
	return n;
}

static struct g one;

/* Whether it is timed. */
static bool ready(struct p *pp)
{
	one.timed = false;
	g_set_runnable(pp, &one);
	return one.timed;
}

/* At full speed few are timed, and count for more. */
TEST(counts_are_an_eighth)
{
	struct p *pp = make_p();
	uint64_t n = SCALED(20000000), timed = 0;

	for (uint64_t i = 0; i < n; i++) {
		timed += ready(pp);
		latency_run(pp, &one);
	}
	CHECK(counted(pp) > n / 8 * 3 / 4);
	CHECK(counted(pp) < n / 8 * 5 / 4);
	CHECK(timed < n / 8 / 4);
	CHECK(timed > n / 8192 / 2);
}

/* Far enough apart, every 8th is timed and counts once. */
TEST(slow_ones_are_timed_as_in_go)
{
	struct p *pp = make_p();
	uint64_t timed = 0;

	for (int i = 0; i < 1000; i++) {
		pp->latency.last_at = 0;	/* long ago */
		timed += ready(pp);
		latency_run(pp, &one);
	}
	CHECK_EQ(counted(pp), timed);
	CHECK(timed > 80 && timed < 180);
}

/* Two that take turns are both timed. */
TEST(sampling_does_not_beat)
{
	struct p *pp = make_p();
	int timed[2] = { 0 };

	for (int i = 0; i < 1000000; i++)
		timed[i % 2] += ready(pp);
	CHECK(timed[0] > 0 && timed[1] > 0);
	CHECK(timed[0] < 3 * timed[1] && timed[1] < 3 * timed[0]);
}

TEST(a_wait_is_found_in_its_bucket)
{
	struct p *pp = make_p();
	uint64_t late = 0;

	CHECK(ready(pp));		/* the first always is timed */
	usleep(20000);
	latency_run(pp, &one);
	CHECK_EQ(counted(pp), 1);
	for (unsigned i = latency_bucket(20000000 - 16); i < LATENCY_BUCKETS; i++)
		late += pp->latency.count[i];
	CHECK_EQ(late, 1);
}

/* ------------------------------------------------------------- as a whole */

static double part_above(double seconds, uint64_t *sum)
{
	uint64_t count[LATENCY_BUCKETS], above = 0;
	double bound[LATENCY_BUCKETS];
	size_t n = goro_sched_latency(count, bound, LATENCY_BUCKETS);

	*sum = 0;
	for (size_t i = 0; i < n; i++) {
		*sum += count[i];
		above += bound[i] > seconds ? count[i] : 0;
	}
	return *sum ? (double)above / (double)*sum : 0;
}

static void yield_often(int n, goro_waitgroup *wg)
{
	for (int i = 0; i < n; i++)
		goro_gosched();
	goro_waitgroup_done(wg);
}

/* An eighth of all switches, and with two that yield to each other nobody waits. */
GO_TEST(switches_are_counted)
{
	goro_waitgroup wg = { 0 };
	uint64_t before, after;

	goro_gomaxprocs(1);
	part_above(0, &before);
	goro_waitgroup_add(&wg, 2);
	go(yield_often, SCALED(1000000), &wg);
	go(yield_often, SCALED(1000000), &wg);
	goro_waitgroup_wait(&wg);
	CHECK(part_above(1e-3, &after) < 0.2);
	CHECK(after - before > (uint64_t)SCALED(2000000) / 16);
	CHECK(after - before < (uint64_t)SCALED(2000000) / 4);
}

static void hold_for(int64_t ns, goro_waitgroup *wg)
{
	for (int64_t end = goro_now() + ns; goro_now() < end;)
		;
	goro_waitgroup_done(wg);
}

/* Twenty that each hold the P for a millisecond: most wait for several. */
GO_TEST(waits_are_seen)
{
	goro_waitgroup wg = { 0 };
	uint64_t sum;

	goro_gomaxprocs(1);
	for (int round = 0; round < 10; round++) {
		goro_waitgroup_add(&wg, 20);
		for (int i = 0; i < 20; i++)
			go(hold_for, GORO_MILLISECOND, &wg);
		goro_waitgroup_wait(&wg);
	}
	CHECK(part_above(1e-3, &sum) > 0.5);
	CHECK(sum > 0);
}

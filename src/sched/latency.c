/*
 * latency.c - how long goroutines wait from ready to running: a histogram for each P, in
 * the layout of Go's /sched/latencies:seconds.
 *
 * Layout
 *
 * Times are sorted by their highest set bit, and within that by the next two bits, so
 * that a bucket is a quarter of its power of two wide:
 *
 *	bucket 0         less than 0: clocks that disagree
 *	1 .. 4           below 256 ns, in steps of 64 ns
 *	5 .. 8           256 ns to 512 ns, in steps of 64 ns
 *	9 .. 12          512 ns to 1024 ns, in steps of 128 ns, and so on up to
 *	161              2^47 ns (39 hours) and more
 *
 * Sampling
 *
 * Timing a goroutine reads the clock twice, and a switch can take less time than one
 * reading. Go times every 8th goroutine. So does a P here, on average, as long as it
 * times no more than one in LATENCY_SAMPLE_NS. Otherwise it times every 16th, 32nd, ...,
 * and each counts as two, four, ... samples: the same counts on average, for at most
 * 1/400 of the time. The distance between samples is random: a fixed one would beat with
 * the program, and of two goroutines that wake each other in turn time the same one each
 * time.
 *
 * A stamp is the time, whose last four bits are replaced by the logarithm of the samples
 * that it counts as. The goroutine carries it to the P that it runs on.
 */
#include "sched/latency.h"

#include <goro.h>

#include "platform/os.h"
#include "sched/runtime.h"

#define PERIOD_LOG2   3		/* Go's: 1 in 8 */
#define WEIGHT_BITS   4
#define WEIGHT_MASK   ((UINT64_C(1) << WEIGHT_BITS) - 1)
#define WEIGHT_MAX    10	/* at least 1 in 8192 */
/* How far apart goroutines are timed on a P, at the least, on average. */
#define LATENCY_SAMPLE_NS 20000

/* In Go: timeHistMinBucketBits, timeHistMaxBucketBits, timeHistSubBucketBits. */
#define MIN_BITS      9
#define MAX_BITS      48
#define SUB_BITS      2
#define SUBS          (1u << SUB_BITS)
#define POWERS        (MAX_BITS - MIN_BITS + 1u)

_Static_assert(LATENCY_BUCKETS == POWERS * SUBS + 2, "latency: the layout of Go's histogram");
_Static_assert(WEIGHT_MAX <= WEIGHT_MASK, "latency: a weight fits in its bits");

/* ----------------------------------------------------------------- layout */

unsigned latency_bucket(int64_t ns)
{
	unsigned bits, power;

	if (ns < 0)
		return 0;
	bits = 64 - (unsigned)__builtin_clzll((uint64_t)ns | 1);
	power = bits < MIN_BITS ? 0 : bits - MIN_BITS + 1;
	if (bits < MIN_BITS)
		bits = MIN_BITS;
	if (power >= POWERS)
		return LATENCY_BUCKETS - 1;
	return 1 + power * SUBS + (unsigned)((uint64_t)ns >> (bits - 1 - SUB_BITS)) % SUBS;
}

/* Where bucket i, but for the first, begins. */
static uint64_t lower_bound_ns(unsigned i)
{
	unsigned power = (i - 1) / SUBS;
	uint64_t sub = (i - 1) % SUBS;

	if (power == 0)
		return sub << (MIN_BITS - 1 - SUB_BITS);
	return (SUBS | sub) << (power + MIN_BITS - 2 - SUB_BITS);
}

double latency_upper_bound(unsigned bucket)
{
	if (bucket >= LATENCY_BUCKETS - 1)
		return __builtin_inf();
	return (double)lower_bound_ns(bucket + 1) / 1e9;
}

/* --------------------------------------------------------------- sampling */

/* Samples half or twice as often, by how long ago the last sample was. */
static void adapt(struct latency *l, int64_t now)
{
	int64_t ago = now - l->last_at;

	if (ago < LATENCY_SAMPLE_NS && l->weight_log2 < WEIGHT_MAX)
		l->weight_log2++;
	else if (ago > 4 * LATENCY_SAMPLE_NS && l->weight_log2 > 0)
		l->weight_log2--;
	l->last_at = now;
}

/* How many goroutines to leave out: evenly from 0 to twice the period less 2. */
static uint32_t next_skip(struct latency *l)
{
	uint32_t choices = (2u << (PERIOD_LOG2 + l->weight_log2)) - 1;

	l->random = l->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((l->random >> 32) * choices >> 32);
}

/* The sample counts for the period that led to it, the next skip for that of adapt. */
__attribute__((noinline, cold)) void latency_stamp(struct p *pp, struct g *gp)
{
	struct latency *l = &pp->latency;
	int64_t now;

	check(pp->latency_in == 0 && !gp->timed);
	now = os_now();
	gp->wait_since = (int64_t)(((uint64_t)now & ~WEIGHT_MASK) | l->weight_log2);
	gp->timed = true;
	adapt(l, now);
	pp->latency_in = next_skip(l) + 1;
}

__attribute__((noinline, cold)) void latency_record(struct p *pp, struct g *gp)
{
	uint64_t stamp = (uint64_t)gp->wait_since;
	int64_t waited = os_now() - (int64_t)(stamp & ~WEIGHT_MASK);

	check(gp->timed && load_relaxed(&gp->status) == G_RUNNABLE);
	gp->timed = false;
	count_up(&pp->latency.count[latency_bucket(waited)], UINT64_C(1) << (stamp & WEIGHT_MASK));
}

/* ---------------------------------------------------------------- reading */

static uint64_t total(unsigned bucket)
{
	uint64_t sum = 0;

	/* acquire: the array; pairs with store_release in make_ps */
	for (int i = 0, n = load_acquire(&sched.all_p_n); i < n; i++)
		sum += load_relaxed(&p_at(i)->latency.count[bucket]);
	return sum;
}

size_t goro_sched_latency(uint64_t *counts, double *upper_bounds_s, size_t max)
{
	for (unsigned i = 0; i < LATENCY_BUCKETS && i < max; i++) {
		if (counts)
			counts[i] = total(i);
		if (upper_bounds_s)
			upper_bounds_s[i] = latency_upper_bound(i);
	}
	return LATENCY_BUCKETS;
}

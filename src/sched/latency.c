/*
 * latency.c - how long goroutines wait from ready to running: a histogram for
 * each P, in the layout of Go's /sched/latencies:seconds.
 *
 * Layout
 *
 * Times are sorted by their highest set bit, and within that by the next two
 * bits, so that a bucket is a quarter of its power of two wide:
 *
 *	bucket 0         less than 0: clocks that disagree
 *	1 .. 4           below 256 ns, in steps of 64 ns
 *	5 .. 8           256 ns to 512 ns, in steps of 64 ns
 *	9 .. 12          512 ns to 1024 ns, in steps of 128 ns, and so on up to
 *	161              2^47 ns (39 hours) and more
 *
 * Sampling
 *
 * Timing a goroutine takes two looks at the clock, of 25 ns each, and a switch
 * can take less than one of them. Go times every 8th. Here every 8th is timed
 * on average, as long as that is not more than one in LATENCY_SAMPLE_NS on this
 * P; otherwise every 16th, 32nd, ..., of which each counts twice, four times,
 * .... The counts are thus the same as Go's on average, and timing never takes
 * more than 1/400 of the time.
 *
 * The distance from one sample to the next is random, between 1 and twice the
 * mean. A fixed one would beat with the program: of two goroutines that wake
 * each other in turn, it would only ever time the same one.
 *
 * A stamp is the time with its last four bits replaced by the logarithm of what
 * it counts for: it is carried to whatever P the goroutine runs on, and 16 ns
 * are less than what the clock takes. A stamp of 0 is none: see trace.h.
 */
#include "latency.h"

#include <goro.h>

#include "os.h"
#include "runtime.h"
#include "trace.h"

#define PERIOD_LOG2   3		/* Go's: 1 in 8 */
#define WEIGHT_BITS   4
#define WEIGHT_MASK   ((UINT64_C(1) << WEIGHT_BITS) - 1)
#define WEIGHT_MAX    10	/* at least 1 in 8192 */

/* Go's names for the layout are timeHistMinBucketBits, timeHistMaxBucketBits
 * and timeHistSubBucketBits. */
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

/* Half as many or twice as many, by how long the last sample is ago. */
static void adapt(struct latency *l, int64_t now)
{
	int64_t ago = now - l->last_at;

	if (ago < LATENCY_SAMPLE_NS && l->weight_log2 < WEIGHT_MAX)
		l->weight_log2++;
	else if (ago > 4 * LATENCY_SAMPLE_NS && l->weight_log2 > 0)
		l->weight_log2--;
	l->last_at = now;
}

/* How many to leave out, evenly from 0 to twice the period less 2. */
static uint32_t next_skip(struct latency *l)
{
	uint32_t choices = (2u << (PERIOD_LOG2 + l->weight_log2)) - 1;

	l->random = l->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((l->random >> 32) * choices >> 32);
}

/* While tracing all come here, and few of them to be timed. */
static __attribute__((noinline, cold)) bool trace_only(struct p *pp, struct g *gp)
{
	trace_go_ready(pp->mp, gp);
	pp->latency_in = 1;
	return pp->latency.skip-- != 0;
}

/* The sample counts for the period that led to it, the next skip is of the
 * period that adapt chose. */
__attribute__((noinline, cold)) uint64_t latency_stamp(struct p *pp, struct g *gp)
{
	struct latency *l = &pp->latency;
	uint64_t stamp;
	int64_t now;

	if (trace_on() && trace_only(pp, gp))
		return 0;
	now = os_now();
	stamp = ((uint64_t)now & ~WEIGHT_MASK) | l->weight_log2;
	adapt(l, now);
	l->skip = next_skip(l);
	if (!trace_on())
		pp->latency_in = l->skip + 1;
	return stamp;
}

__attribute__((noinline, cold)) void latency_record(struct p *pp, struct g *gp)
{
	uint64_t stamp = (uint64_t)gp->wait_since;
	int64_t waited;

	if (trace_on())
		trace_go_start(pp->mp, gp);
	if (stamp == 0)
		return;
	waited = os_now() - (int64_t)(stamp & ~WEIGHT_MASK);
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

/*
 * blockers.c - goroutines that block unannounced, again and again.
 *
 * sysmon finds a thread asleep in a call that nobody announced, and takes its P. That
 * takes it a tenth of a millisecond or more, in which the P runs nothing. Where one
 * goroutine blocks, others that run the same function soon will: connections, requests,
 * jobs. So sysmon teaches: each P that it takes from a sleeping thread, but not from one
 * that waits for a lock, is a point for the goroutine's function. From BLOCKERS_KNOWN
 * points on, a goroutine of this function hands its P over when it enters user code, if
 * another goroutine waits: at its start, when it goes on after a wait, and when a call of
 * goro's has got it a P again. It runs on without a P, as one does that sysmon found
 * asleep, until its next call of goro's. So a thread that comes back from one call and
 * makes the next one needs no P in between, and no look of sysmon's.
 *
 * Then the thread tells whether it was worth while. If it has not slept when it next
 * needs a P, the P was handed over in vain, and a point is lost. So a function whose
 * goroutines block now and then hands over in vain at most once for each time that sysmon
 * finds one of them asleep, which is the more expensive of the two.
 *
 * A goroutine that computes without a P is stopped by sysmon (chase in retake.c).
 *
 * The table is small, and a hash of the function's address its only key. Where two
 * functions meet in one entry the points are of both.
 *
 * Rejected: the place of the call for a key, which sysmon could read in /proc. It is
 * known when the thread sleeps, which is too late: nothing runs before the call.
 */
#include "sched/blockers.h"

#include "base/debug.h"
#include "platform/os.h"
#include "sched/runq.h"
#include "sched/runtime.h"

#define BLOCKERS_KNOWN 3
#define BLOCKERS_MOST  6
#define BLOCKERS_FNS   256	/* a power of two */

static uint8_t points[BLOCKERS_FNS];	/* atomic; what is lost in a race is one point */
uint64_t blockers_foreseen;

static uint8_t *points_of(void (*fn)(void))
{
	uint64_t hash = (uintptr_t)fn * UINT64_C(0x9e3779b97f4a7c15);

	return &points[hash >> 56 & (BLOCKERS_FNS - 1)];
}

static bool is_known(const struct g *gp)
{
	return load_relaxed(points_of(gp->fn)) >= BLOCKERS_KNOWN;
}

void blockers_saw(void (*fn)(void))
{
	uint8_t *at = points_of(fn), n = load_relaxed(at);

	if (debug.noblockers)
		return;
	if (n < BLOCKERS_MOST)
		store_relaxed(at, n + 1);
	if (n + 1 >= BLOCKERS_KNOWN && !(load_relaxed(&sched.program) & PROGRAM_BLOCKS))
		fetch_or_acqrel(&sched.program, PROGRAM_BLOCKS);
}

void blockers_begin_slow(struct m *mp, const struct g *gp)
{
	if (is_known(gp))
		fetch_or_acqrel(&mp->attn, ATTN_BLOCKER);
}

/* Whether a goroutine waits for the P that mp has, or had. */
static bool somebody_waits(const struct m *mp)
{
	const struct p *pp = load_relaxed(&mp->p);

	return pp && (globq_length() != 0 || !runq_empty(pp));
}

bool blockers_leave_slow(struct m *mp)
{
	struct g *gp = mp->curg;

	fetch_and_acqrel(&mp->attn, ~(uint32_t)ATTN_BLOCKER);
	/* The M may have begun another goroutine since. */
	if (mp->is_foreign || !is_known(gp) || gp->preempt_off != 0 || !somebody_waits(mp))
		return false;
	fetch_add_relaxed(&blockers_foreseen, 1);
	m_hand_over(mp);
	mp->sleeps_before = os_thread_sleeps() + 1;
	return true;
}

void blockers_return_slow(struct m *mp)
{
	uint8_t *at = points_of(mp->curg->fn), n = load_relaxed(at);
	uint64_t before = mp->sleeps_before;

	mp->sleeps_before = 0;
	if (os_thread_sleeps() + 1 == before && n > 0)
		store_relaxed(at, n - 1);
}

/*
 * profile_block.c - where goroutines waited, and which unlocks made them wait.
 *
 * The block profile has the stacks of goroutines that waited for a channel, a lock, a
 * condition or a group, with the length of each wait. The mutex profile has the stacks of
 * goroutines that unlocked what others waited for, with the length of those waits. The
 * first shows which goroutines are held up, the second which hold locks for too long.
 * Both are Go's, as in runtime.SetBlockProfileRate and SetMutexProfileFraction:
 *
 *	block, rate r	a wait of r ns or more is counted. A wait of d < r ns is
 *			counted with probability d/r, and then stands for r/d such
 *			waits, of r ns in all.
 *	mutex, rate r	an unlock is counted with probability 1/r, and then stands for r.
 *
 * An unlock is charged with the wait of the goroutine that gets the lock, and of all that
 * go on waiting. The next unlock's charge begins where this one ends (sema.c).
 *
 * Unlike in Go the waiter measures its wait, which so includes the time from ready to
 * running. Rejected: Go's way, in which the waker notes the time. The waker would pay for
 * it even while no profile is on.
 *
 * The goroutine itself walks and counts its stack, in state RUNTIME: it calls no malloc,
 * uses a table of bounded size, and takes one lock.
 */
#include "sync/wait_profile.h"

#include <goro.h>

#include "base/hook.h"
#include "observe/backtrace.h"
#include "profile/profile.h"
#include "sched/runtime.h"

/* Room for some ten thousand different stacks. */
#define TABLE_BYTES_MAX (16 << 20)

static int64_t block_rate;	/* ns; 0: off */
static int mutex_fraction;	/* 0: off */

static struct events {
	struct lock lock;
	struct profile_table table;
} blocked = { LOCK_INIT(RANK_LEAF), { .records.bytes_max = TABLE_BYTES_MAX } },
  charged = { LOCK_INIT(RANK_LEAF), { .records.bytes_max = TABLE_BYTES_MAX } };

/* ------------------------------------------------------------------ events */

static __attribute__((noinline)) void count(struct events *e, double events, int64_t ns)
{
	struct backtrace bt;
	struct profile_key key = { .pc = bt.pc, .from = FRAMES_RUNTIME };

	backtrace_here(&bt);
	key.n = bt.n;
	lock_acquire(&e->lock);
	profile_table_add(&e->table, &key, events, ns);
	lock_release(&e->lock);
}

static void count_block(struct m *mp, int64_t since)
{
	int64_t ns = os_now() - since, rate = load_relaxed(&block_rate);

	if (ns <= 0)
		ns = 1;
	if (rate <= 0 || (ns < rate && (int64_t)(m_random(mp) % (uint64_t)rate) > ns))
		return;
	if (ns < rate)
		count(&blocked, (double)rate / (double)ns, rate);
	else
		count(&blocked, 1, ns);
}

static void count_mutex(struct m *mp, int64_t ns)
{
	int fraction = load_relaxed(&mutex_fraction);

	if (ns < 0)
		ns = 0;
	if (fraction <= 0 || m_random(mp) % (uint64_t)fraction != 0)
		return;
	if (__builtin_mul_overflow(ns, fraction, &ns))
		ns = INT64_MAX;
	count(&charged, fraction, ns);
}

static void fill_wait_profile(void)
{
	wait_profile.block = count_block;
	wait_profile.mutex = count_mutex;
}
AT_LOAD(fill_wait_profile);

/* ---------------------------------------------------------------- settings */

/* Under the lock, wait_profile.wanted and the rates change together. */
static void settings_end(struct m *mp, struct events *e, uint32_t bit, bool on)
{
	if (on)
		fetch_or_acqrel(&wait_profile.wanted, bit);
	else
		fetch_and_acqrel(&wait_profile.wanted, ~bit);
	rt_unlock_exit(mp, &e->lock);
}

void goro_profile_block_rate(int64_t ns)
{
	struct m *mp = rt_enter_lock(&blocked.lock);

	store_relaxed(&block_rate, ns > 0 ? ns : 0);
	settings_end(mp, &blocked, PROFILE_BLOCK, ns > 0);
}

int goro_profile_mutex_fraction(int rate)
{
	struct m *mp;
	int old;

	if (rate < 0)
		return load_relaxed(&mutex_fraction);
	mp = rt_enter_lock(&charged.lock);
	old = load_relaxed(&mutex_fraction);
	store_relaxed(&mutex_fraction, rate);
	settings_end(mp, &charged, PROFILE_MUTEX, rate > 0);
	return old;
}

/* ---------------------------------------------------------------- profiles */

static void take(struct events *e, struct profile_table *now)
{
	struct m *mp = rt_enter_lock(&e->lock);

	profile_table_copy(now, &e->table);
	rt_unlock_exit(mp, &e->lock);
}

void profile_block_take(struct profile_table *now)
{
	take(&blocked, now);
}

void profile_mutex_take(struct profile_table *now)
{
	take(&charged, now);
}

/*
 * profile_block.c - where goroutines waited, and who made them wait.
 *
 * The block profile has the stacks of those who waited for a channel, a lock, a
 * condition or a group, with how long it was until they went on. The mutex profile has
 * the stacks of those who unlocked what others waited for, with how long these did: it
 * shows who holds locks for too long, the other who suffers. Both are Go's, as
 * runtime.SetBlockProfileRate and SetMutexProfileFraction say:
 *
 *	block, rate r	waits of r ns and more are all counted, shorter ones with a
 *			chance of their length in r. One of length d that is counted
 *			stands for r/d like it, and so for r ns together.
 *	mutex, 1/r	one in r unlocks is counted, for r of them.
 *
 * An unlock is charged with the wait of whoever gets the lock and of all who go on
 * waiting; the next one begins where it ended (sema.c).
 *
 * A difference to Go: how long a wait took is measured by who waited, so it includes the
 * time until it was its turn to run. (Go's wakers note the time for it, which costs the
 * waker even then when nobody looks.)
 *
 * The stack is walked and counted by the goroutine itself, in state RUNTIME: no malloc,
 * a table of bounded size, one lock.
 */
#include "profile_hooks.h"

#include <goro.h>

#include "backtrace.h"
#include "profile.h"
#include "runtime.h"

/* Some ten thousand stacks. */
#define TABLE_BYTES_MAX (16 << 20)

uint32_t profile_wanted;

static int64_t block_rate;	/* ns; 0: off */
static int mutex_fraction;	/* 0: off */

static struct events {
	struct lock lock;
	struct profile_table table;
} blocked = { LOCK_INIT(RANK_LEAF), { .bytes_max = TABLE_BYTES_MAX } },
  charged = { LOCK_INIT(RANK_LEAF), { .bytes_max = TABLE_BYTES_MAX } };

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

void profile_block_count(struct m *mp, int64_t since)
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

void profile_mutex_count(struct m *mp, int64_t ns)
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

/* ---------------------------------------------------------------- settings */

/* The lock keeps profile_wanted and the rates in step. */
static struct m *settings_begin(struct events *e)
{
	struct m *mp = rt_enter();

	lock_acquire(&e->lock);
	return mp;
}

static void settings_end(struct m *mp, struct events *e, uint32_t bit, bool on)
{
	if (on)
		fetch_or_acqrel(&profile_wanted, bit);
	else
		fetch_and_acqrel(&profile_wanted, ~bit);
	lock_release(&e->lock);
	rt_exit(mp);
}

void goro_profile_block_rate(int64_t ns)
{
	struct m *mp = settings_begin(&blocked);

	store_relaxed(&block_rate, ns > 0 ? ns : 0);
	settings_end(mp, &blocked, PROFILE_BLOCK, ns > 0);
}

int goro_profile_mutex_fraction(int rate)
{
	struct m *mp;
	int old;

	if (rate < 0)
		return load_relaxed(&mutex_fraction);
	mp = settings_begin(&charged);
	old = load_relaxed(&mutex_fraction);
	store_relaxed(&mutex_fraction, rate);
	settings_end(mp, &charged, PROFILE_MUTEX, rate > 0);
	return old;
}

/* ---------------------------------------------------------------- profiles */

static void take(struct events *e, struct profile_table *now)
{
	struct m *mp = rt_enter();

	*now = (struct profile_table){ .bytes_max = 0 };
	lock_acquire(&e->lock);
	profile_table_copy(now, &e->table);
	lock_release(&e->lock);
	rt_exit(mp);
}

void profile_block_take(struct profile_table *now)
{
	take(&blocked, now);
}

void profile_mutex_take(struct profile_table *now)
{
	take(&charged, now);
}

static int encode(struct events *e, struct bytes *out)
{
	static const struct pprof_kind kind = {
		.type = { { "contentions", "count" }, { "delay", "nanoseconds" } }, .types = 2,
		.period_type = { "contentions", "count" }, .period = 1,
	};
	struct profile_table now;
	int error;

	take(e, &now);
	error = profile_of_table(&kind, &now, out);
	profile_table_free(&now);
	return error;
}

int profile_block(struct bytes *out)
{
	return encode(&blocked, out);
}

int profile_mutex(struct bytes *out)
{
	return encode(&charged, out);
}

/*
 * metrics.c - goro_stats_read: what the runtime is doing, in numbers.
 *
 * The totals are sums of counters that each P's owner keeps for itself, so that
 * counting costs a plain addition. Of the goroutines, those in queues are
 * counted by the queues' lengths, those that run or are in a blocking call by a
 * walk over the threads, and the others wait: goroutines themselves are not
 * looked at, of which there may be a million.
 *
 * Nobody is stopped for it. Each number was right at some moment during the
 * call, not all of them at the same one.
 */
#include <goro.h>

#include "evacuate.h"
#include "g.h"
#include "runq.h"
#include "runtime.h"
#include "stack.h"

#define COUNTS (sizeof(struct p_counts) / sizeof(uint64_t))
_Static_assert(sizeof(struct p_counts) % sizeof(uint64_t) == 0, "p_counts: all uint64_t");

/* Adds up those of all Ps that ever were, one P after the other: what is counted
 * on two (created here, ended there) is out by what moved in between. */
static struct p_counts counts_sum(void)
{
	struct p_counts sum = { 0 };
	uint64_t *to = (uint64_t *)&sum;

	/* acquire: the array; pairs with store_release in make_ps */
	for (int i = 0, n = load_acquire(&sched.all_p_n); i < n; i++) {
		const uint64_t *from = (const uint64_t *)&p_at(i)->count;

		for (size_t k = 0; k < COUNTS; k++)
			to[k] += load_relaxed(&from[k]);
	}
	return sum;
}

/* Exact while no goroutine runs. */
bool anybody_waits_for_io(void)
{
	struct p_counts c = counts_sum();

	return c.io_parks + load_seqcst(&sched.io_parks) !=
	       c.io_returns + load_seqcst(&sched.io_returns);
}

static uint64_t difference(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static void read_totals(struct goro_stats *s)
{
	struct p_counts c = counts_sum();

	s->goroutines_created = c.created + load_relaxed(&sched.foreign_created);
	s->goroutines_live = difference(s->goroutines_created, c.ended);
	s->context_switches = c.switches;
	s->parks = c.parks;
	s->steals = c.steals;
	s->stolen = c.stolen;
	s->preemptions = c.preemptions;
	s->syscall_handoffs = c.handoffs;
	s->netpoll_wakeups = c.netpoll_wakeups + load_relaxed(&sched.netpoll_wakeups);
	s->thread_wakeups = c.thread_wakeups;
}

static void read_sched(struct goro_stats *s)
{
	lock_acquire(&sched.lock);
	s->gomaxprocs = (uint64_t)sched.gomaxprocs;
	s->idle_procs = (uint64_t)load_relaxed(&sched.idle_p_n);
	s->threads = (uint64_t)(sched.m_n + sched.runtime_threads + evacuate_threads());
	s->idle_threads = (uint64_t)sched.idle_m_n;
	s->spinning_threads = (uint64_t)load_relaxed(&sched.spinning);
	s->runnable = globq_length();
	lock_release(&sched.lock);
}

static TOOL_RACY void read_procs(struct goro_stats *s)
{
	size_t stack = stack_class_bytes(stack_default_class);

	/* acquire: the array; pairs with store_release in make_ps */
	for (int i = 0, n = load_acquire(&sched.all_p_n); i < n; i++) {
		const struct p *pp = p_at(i);

		s->runnable += runq_length(pp);
		s->timers += timers_count(&pp->timers);
		s->stack_bytes_cached += peek(&pp->gfree_n) * stack;
	}
	s->stack_bytes_cached += g_pool_cached_bytes();
	s->stack_bytes_reserved = stack_bytes_reserved();
	s->stacks_evacuated = evacuate_stacks();
	s->stack_bytes_evacuated = evacuate_bytes();
}

/* A goroutine whose P was taken from it is in a call that blocks, announced or
 * not. */
static TOOL_RACY void read_thread(struct goro_stats *s, const struct m *mp)
{
	const struct g *gp = peek(&mp->curg);

	if (!gp || peek(&mp->is_foreign) || peek(&mp->tid) == 0)
		return;
	if (peek(&gp->status) == G_SYSCALL || (peek(&mp->attn) & ATTN_TAKEN))
		s->in_syscall++;
	else if (peek(&gp->status) == G_RUNNING)
		s->running++;
}

static void read_threads(struct goro_stats *s)
{
	/* acquire: pairs with store_release in m_alloc */
	for (const struct m *mp = load_acquire(&sched.all_m); mp; mp = mp->all_link)
		read_thread(s, mp);
}

void goro_stats_read(struct goro_stats *out)
{
	struct goro_stats s = { 0 };
	struct m *mp = rt_enter();

	read_sched(&s);
	read_threads(&s);
	read_procs(&s);
	read_totals(&s);
	s.waiting = difference(s.goroutines_live, s.running + s.runnable + s.in_syscall);
	rt_exit(mp);
	*out = s;
}

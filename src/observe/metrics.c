/*
 * metrics.c - goro_stats_read: what the runtime is doing, in numbers.
 *
 * The totals are sums of counters that each P's owner keeps, so that counting costs a
 * plain addition. There may be a million goroutines, so they are not walked. The queues'
 * lengths count those that are runnable, a walk over the threads counts those that run or
 * are in a blocking call, and the others wait.
 *
 * The world is not stopped. Each number was right at some moment of the call.
 */
#include <goro.h>

#include "observe/backtrace.h"
#include "reclaim/evacuate.h"
#include "sched/g.h"
#include "sched/runq.h"
#include "sched/runtime.h"
#include "stack/stack.h"

#define COUNTS (sizeof(struct p_counts) / sizeof(uint64_t))
_Static_assert(sizeof(struct p_counts) % sizeof(uint64_t) == 0, "p_counts: all uint64_t");

/* Adds up all Ps that ever were, one after the other. A difference of two sums (created,
 * ended) is out by what happened in between. */
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

static uint64_t difference(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static void read_totals(struct goro_stats *s)
{
	struct p_counts c = counts_sum();

	s->goroutines_created = c.created + load_relaxed(&sched.plain.created);
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

void metrics_sched(struct goro_stats *s)
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

/* A goroutine whose P was taken is in a blocking call, announced or not. */
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

void goro_stats_read(struct goro_stats *out)
{
	struct goro_stats s = { 0 };
	struct m *mp = rt_enter();

	metrics_sched(&s);
	/* acquire: pairs with store_release in m_alloc */
	for (const struct m *each = load_acquire(&sched.all_m); each; each = each->all_link)
		read_thread(&s, each);
	read_procs(&s);
	read_totals(&s);
	s.waiting = difference(s.goroutines_live, s.running + s.runnable + s.in_syscall);
	rt_exit(mp);
	*out = s;
}

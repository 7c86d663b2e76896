/*
 * schedtrace.c - GORO_DEBUG=schedtrace=ms[,scheddetail=1]: every ms milliseconds a line
 * about the scheduler, in the format of Go 1.25's GODEBUG=schedtrace, for tools that read
 * Go's. With scheddetail every P, M and G follows on a line of its own.
 *
 * sysmon calls it, so it formats into a buffer of its own and writes with a raw system
 * call, and takes no libc lock.
 *
 * It reads everything but the counts of metrics_sched without a lock. That is safe,
 * since Ps and Ms are never freed and a G's memory stays mapped, but it is no snapshot:
 * one line may say that M2 runs G7, and the next that G7 waits. Nothing is printed under
 * the lock, unlike in Go, so that a slow reader of stderr blocks sysmon and not the
 * program.
 */
#include <goro.h>
#include <unistd.h>

#include "base/debug.h"
#include "observe/backtrace.h"
#include "base/print.h"
#include "preempt/preempt.h"
#include "sched/runq.h"
#include "sched/runtime.h"
#include "stack/stack.h"

static const char *truth(bool v)
{
	return v ? "true" : "false";
}

/* id < 0: nil. */
static void print_id(struct printer *pr, const char *name, int64_t id)
{
	if (id >= 0)
		print_format(pr, "%s%ld", name, id);
	else
		print_format(pr, "%snil", name);
}

static TOOL_RACY int64_t m_id(const struct m *mp)
{
	return mp ? peek(&mp->id) : -1;
}

static TOOL_RACY int64_t g_id(const struct g *gp)
{
	return gp && !peek(&gp->is_foreign) ? (int64_t)peek(&gp->id) : -1;
}

/* ------------------------------------------------------- Go's status numbers */

static int go_g_status(uint32_t status)
{
	static const uint8_t number[] = {
		[G_DEAD] = 6, [G_RUNNABLE] = 1, [G_RUNNING] = 2, [G_SYSCALL] = 3,
		[G_WAITING] = 4,
	};

	return status < sizeof number ? number[status] : 0;
}

static TOOL_RACY bool in_syscall(const struct m *mp)
{
	const struct g *gp = mp ? peek(&mp->curg) : NULL;

	return gp && peek(&gp->status) == G_SYSCALL;
}

static int go_p_status(const struct p *pp)
{
	switch (load_relaxed(&pp->status)) {
	case P_IDLE:
		return 0;
	case P_RUNNING:
		return in_syscall(load_relaxed(&pp->mp)) ? 2 : 1;
	case P_STOPPED:
		return 3;
	default:
		return 4;
	}
}

/* ---------------------------------------------------------------- the line */

/* Ps that the stop of the world still waits for. */
static int stop_wait(int procs)
{
	int n = 0;

	for (int i = 0; load_relaxed(&sched.stopping) && i < procs; i++)
		n += load_relaxed(&p_at(i)->status) == P_RUNNING;
	return n;
}

static void print_counts(struct printer *pr, const struct goro_stats *s, int64_t ms)
{
	print_format(pr, "SCHED %ldms: gomaxprocs=%d idleprocs=%d threads=%d spinningthreads=%d"
	             " needspinning=%d idlethreads=%d runqueue=%d", ms, (int)s->gomaxprocs,
	             (int)s->idle_procs, (int)s->threads, (int)s->spinning_threads,
	             (int)load_relaxed(&sched.need_spinning), (int)s->idle_threads,
	             (int)s->runnable);
}

/* " [ 0 0 ] schedticks=[ 12 7 ]" ends the line. */
static void print_queues(struct printer *pr, int procs)
{
	print_str(pr, " [ ");
	for (int i = 0; i < procs; i++)
		print_format(pr, "%d ", (int)runq_length(p_at(i)));
	print_str(pr, "] schedticks=[ ");
	for (int i = 0; i < procs; i++)
		print_format(pr, "%ld ", (long)(uint32_t)p_slices(p_at(i)));
	print_str(pr, "]\n");
}

/* Ends the line. In goro, gcwaiting means any stop of the world. */
static TOOL_RACY void print_waits(struct printer *pr, int procs)
{
	print_format(pr, " gcwaiting=%s nmidlelocked=%d stopwait=%d sysmonwait=%s\n",
	             truth(load_relaxed(&sched.stopping)), peek(&sched.idle_m_locked),
	             stop_wait(procs), truth(peek(&monitor.asleep)));
}

/* --------------------------------------------------------------- the detail */

static TOOL_RACY void print_p(struct printer *pr, const struct p *pp)
{
	print_format(pr, "  P%d: status=%d schedtick=%ld syscalltick=%ld", pp->id, go_p_status(pp),
	             (long)(uint32_t)p_slices(pp), (long)(uint32_t)load_relaxed(&pp->count.handoffs));
	print_id(pr, " m=", m_id(load_relaxed(&pp->mp)));
	print_format(pr, " runqsize=%d gfreecnt=%ld timerslen=%ld\n", (int)runq_length(pp),
	             (long)peek(&pp->gfree_n), (long)timers_count(&pp->timers));
}

/* Asleep until another thread wakes it: an idle M, or a plain thread that is parked. */
static TOOL_RACY bool m_blocked(const struct m *mp)
{
	const struct g *gp = peek(&mp->curg);

	if (gp)
		return peek(&mp->is_foreign) && peek(&gp->status) == G_WAITING;
	return !peek(&mp->p);
}

/* Fields that only Go's Ms have are printed with their values at rest. */
static TOOL_RACY void print_m(struct printer *pr, const struct m *mp)
{
	const struct p *pp = peek(&mp->p);

	if (peek(&mp->tid) == 0)
		return;		/* its thread has ended, or has not begun */
	print_id(pr, "  M", m_id(mp));
	print_id(pr, ": p=", pp ? pp->id : -1);
	print_id(pr, " curg=", g_id(peek(&mp->curg)));
	print_format(pr, " mallocing=0 throwing=0 preemptoff= locks=0 dying=0 spinning=%s blocked=%s",
	             truth(peek(&mp->spinning)), truth(m_blocked(mp)));
	print_id(pr, " lockedg=", g_id(peek(&mp->locked_g)));
	print_str(pr, "\n");
}

static TOOL_RACY void print_g(struct g *gp, void *arg)
{
	struct printer *pr = arg;
	uint32_t status = peek(&gp->status);

	if (peek(&gp->id) == 0)
		return;		/* a stack that no goroutine has used yet */
	print_format(pr, "  G%ld: status=%d(%s)", g_id(gp), go_g_status(status),
	             status == G_WAITING ? wait_reason_text(peek(&gp->wait_reason)) : "");
	print_id(pr, " m=", m_id(peek(&gp->mp)));
	print_id(pr, " lockedm=", m_id(peek(&gp->locked_m)));
	print_str(pr, "\n");
}

static void print_detail(struct printer *pr, int procs)
{
	print_waits(pr, procs);
	for (int i = 0; i < procs; i++)
		print_p(pr, p_at(i));
	/* acquire: pairs with store_release in m_alloc */
	for (struct m *mp = load_acquire(&sched.all_m); mp; mp = mp->all_link)
		print_m(pr, mp);
	stack_each(print_g, pr);
}

/* sysmon: prints if it is time. As in Go, the first line comes at once, with time 0. */
static void schedtrace_tick(void)
{
	static int64_t started_at, last_at;
	struct goro_stats s = { 0 };
	struct printer pr;
	int64_t now;

	if (debug.schedtrace <= 0)
		return;
	now = os_now();
	if (last_at && now - last_at < debug.schedtrace * INT64_C(1000000))
		return;
	last_at = now;
	if (!started_at)
		started_at = now;
	metrics_sched(&s);
	pr = print_to_fd(STDERR_FILENO);
	print_counts(&pr, &s, (now - started_at) / 1000000);
	if (debug.scheddetail > 0)
		print_detail(&pr, (int)s.gomaxprocs);
	else
		print_queues(&pr, (int)s.gomaxprocs);
	print_flush(&pr);
}

HOOK(at_tick, 0, schedtrace_tick);

/*
 * schedtrace.c - GORO_DEBUG=schedtrace=ms[,scheddetail=1]: a line about the
 * scheduler every so often, in the format of Go 1.25's GODEBUG=schedtrace, so
 * that what reads those lines reads these. With scheddetail every P, M and G
 * follows on a line of its own.
 *
 * Called by sysmon, so it formats into a buffer of its own and writes with a
 * raw system call: no libc lock is taken.
 *
 * What is printed is looked at while it changes. That is safe, since Ps and Ms
 * are never freed and a G's memory stays mapped; it is not a snapshot: one line
 * may say that M2 runs G7, and the next that G7 waits. The counts of the first
 * line are of one moment, under sched.lock. Go holds the lock while it prints;
 * here it is released first, so that a reader of stderr who is slow holds up
 * sysmon and not the program.
 */
#include "schedtrace.h"

#include <unistd.h>

#include "debug.h"
#include "evacuate.h"
#include "print.h"
#include "runq.h"
#include "runtime.h"
#include "stack.h"

bool schedtrace_on(void)
{
	return debug.schedtrace > 0;
}

static void print_field(struct printer *pr, const char *name, int64_t v)
{
	print_str(pr, name);
	print_int(pr, v);
}

static void print_bool(struct printer *pr, const char *name, bool v)
{
	print_str(pr, name);
	print_str(pr, v ? "true" : "false");
}

/* id < 0: nil. */
static void print_id(struct printer *pr, const char *name, int64_t id)
{
	if (id >= 0) {
		print_field(pr, name, id);
	} else {
		print_str(pr, name);
		print_str(pr, "nil");
	}
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
		[G_DEAD] = 6, [G_RUNNABLE] = 1, [G_RUNNABLE_TIMED] = 1, [G_RUNNING] = 2, [G_SYSCALL] = 3,
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

struct counts {
	int procs, idle_p, m, runtime_threads, spinning, idle_m, idle_m_locked;
	uint32_t need_spinning;
	size_t runq;
	bool stopping, sysmon_asleep;
	struct p **all_p;
};

static struct counts take_counts(void)
{
	struct counts c;

	lock_acquire(&sched.lock);
	c = (struct counts){
		.procs = sched.gomaxprocs,
		.idle_p = load_relaxed(&sched.idle_p_n),
		.m = sched.m_n,
		.runtime_threads = sched.runtime_threads,
		.spinning = load_relaxed(&sched.spinning),
		.need_spinning = load_relaxed(&sched.need_spinning),
		.idle_m = sched.idle_m_n,
		.idle_m_locked = sched.idle_m_locked,
		.runq = globq_length(),
		.stopping = load_relaxed(&sched.stopping),
		.sysmon_asleep = sched.sysmon_asleep,
		.all_p = sched.all_p,
	};
	lock_release(&sched.lock);
	return c;
}

/* Ps that who stops the world still waits for. */
static int stop_wait(const struct counts *c)
{
	int n = 0;

	for (int i = 0; c->stopping && i < c->procs; i++)
		n += load_relaxed(&c->all_p[i]->status) == P_RUNNING;
	return n;
}

/* SCHED 0ms: gomaxprocs=2 idleprocs=1 threads=4 spinningthreads=1
 * needspinning=0 idlethreads=0 runqueue=0 */
static void print_counts(struct printer *pr, const struct counts *c, int64_t ms)
{
	print_field(pr, "SCHED ", ms);
	print_field(pr, "ms: gomaxprocs=", c->procs);
	print_field(pr, " idleprocs=", c->idle_p);
	print_field(pr, " threads=", c->m + c->runtime_threads + evacuate_threads());
	print_field(pr, " spinningthreads=", c->spinning);
	print_field(pr, " needspinning=", c->need_spinning);
	print_field(pr, " idlethreads=", c->idle_m);
	print_field(pr, " runqueue=", (int64_t)c->runq);
}

/* .. [ 0 0 ] schedticks=[ 12 7 ] */
static void print_queues(struct printer *pr, const struct counts *c)
{
	print_str(pr, " [ ");
	for (int i = 0; i < c->procs; i++) {
		print_int(pr, (int64_t)runq_length(c->all_p[i]));
		print_str(pr, " ");
	}
	print_str(pr, "] schedticks=[ ");
	for (int i = 0; i < c->procs; i++) {
		print_int(pr, (uint32_t)p_slices(c->all_p[i]));
		print_str(pr, " ");
	}
	print_str(pr, "]\n");
}

/* .. gcwaiting=false nmidlelocked=0 stopwait=0 sysmonwait=false; what waits
 * there for the collector waits here for any stop of the world. */
static void print_waits(struct printer *pr, const struct counts *c)
{
	print_bool(pr, " gcwaiting=", c->stopping);
	print_field(pr, " nmidlelocked=", c->idle_m_locked);
	print_field(pr, " stopwait=", stop_wait(c));
	print_bool(pr, " sysmonwait=", c->sysmon_asleep);
	print_str(pr, "\n");
}

/* --------------------------------------------------------------- the detail */

static TOOL_RACY void print_p(struct printer *pr, const struct p *pp)
{
	print_field(pr, "  P", pp->id);
	print_field(pr, ": status=", go_p_status(pp));
	print_field(pr, " schedtick=", (uint32_t)p_slices(pp));
	print_field(pr, " syscalltick=", (uint32_t)load_relaxed(&pp->count.handoffs));
	print_id(pr, " m=", m_id(load_relaxed(&pp->mp)));
	print_field(pr, " runqsize=", (int64_t)runq_length(pp));
	print_field(pr, " gfreecnt=", peek(&pp->gfree_n));
	print_field(pr, " timerslen=", timers_count(&pp->timers));
	print_str(pr, "\n");
}

/* Asleep until somebody has work for it: an idle M, or a plain thread parked in
 * a call of ours. */
static TOOL_RACY bool m_blocked(const struct m *mp)
{
	const struct g *gp = peek(&mp->curg);

	if (gp)
		return peek(&mp->is_foreign) && peek(&gp->status) == G_WAITING;
	return !peek(&mp->p);
}

/* What Go's Ms have and ours have no use for is printed as it is at rest. */
static TOOL_RACY void print_m(struct printer *pr, const struct m *mp)
{
	const struct p *pp = peek(&mp->p);

	if (peek(&mp->tid) == 0)
		return;		/* its thread has ended, or has not begun */
	print_field(pr, "  M", m_id(mp));
	print_id(pr, ": p=", pp ? pp->id : -1);
	print_id(pr, " curg=", g_id(peek(&mp->curg)));
	print_str(pr, " mallocing=0 throwing=0 preemptoff= locks=0 dying=0");
	print_bool(pr, " spinning=", peek(&mp->spinning));
	print_bool(pr, " blocked=", m_blocked(mp));
	print_id(pr, " lockedg=", g_id(peek(&mp->locked_g)));
	print_str(pr, "\n");
}

static TOOL_RACY void print_g(struct g *gp, void *arg)
{
	struct printer *pr = arg;
	uint32_t status = peek(&gp->status);

	if (peek(&gp->id) == 0)
		return;		/* a stack that no goroutine has used yet */
	print_field(pr, "  G", g_id(gp));
	print_field(pr, ": status=", go_g_status(status));
	print_str(pr, "(");
	if (status == G_WAITING)
		print_str(pr, wait_reason_text(peek(&gp->wait_reason)));
	print_str(pr, ")");
	print_id(pr, " m=", m_id(peek(&gp->mp)));
	print_id(pr, " lockedm=", m_id(peek(&gp->locked_m)));
	print_str(pr, "\n");
}

static void print_detail(struct printer *pr, const struct counts *c)
{
	print_waits(pr, c);
	for (int i = 0; i < c->procs; i++)
		print_p(pr, c->all_p[i]);
	/* acquire: pairs with store_release in m_alloc */
	for (struct m *mp = load_acquire(&sched.all_m); mp; mp = mp->all_link)
		print_m(pr, mp);
	stack_each(print_g, pr);
}

/* As in Go, the first line comes at once, and its time is 0. */
void schedtrace_tick(int64_t now)
{
	static int64_t started_at, last_at;	/* sysmon's */
	struct printer pr;
	struct counts c;

	if (!schedtrace_on() || (last_at && now - last_at < debug.schedtrace * INT64_C(1000000)))
		return;
	last_at = now;
	if (!started_at)
		started_at = now;
	c = take_counts();
	pr = print_to_fd(STDERR_FILENO);
	print_counts(&pr, &c, (now - started_at) / 1000000);
	if (debug.scheddetail > 0)
		print_detail(&pr, &c);
	else
		print_queues(&pr, &c);
	print_flush(&pr);
}

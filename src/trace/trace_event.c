/*
 * trace_event.c - what the trace tells, and how it stays consistent.
 *
 * Go's reader (internal/trace/order.go) follows the state of every goroutine, P and
 * thread through the events, and gives up at the first that does not fit. Each thread's
 * events come in their order. Between threads there is no order but this: becoming
 * runnable, running, and being taken or given up of a P are numbered, each goroutine's
 * and each P's on its own, and the reader waits for the next number. The numbers lie
 * in the G and in the P, and belong to whoever owns those.
 *
 * Generations
 *
 * A trace is a row of generations, each with its own strings and stacks, and its own
 * numbers. A goroutine that is told of for the first time in a generation is introduced
 * by its status, by whoever tells of it; a P likewise. (Go tells the status of all
 * goroutines in each. The reader remembers them, so those that wait all the time need
 * not be told again; a million of them would hold the world up for long.) Only the first
 * generation tells of all there are: goroutines that come later without having been
 * created are an error.
 *
 * A generation changes while the world is stopped and by a thread that has no P itself.
 * At that moment every P is idle, and no goroutine runs as the trace has it:
 *
 * Without a P
 *
 * A goroutine whose P is taken in user code, because it sleeps in the kernel or because
 * the world stops, goes on and does not know. The trace tells it as a blocking call,
 * which begins when the P is taken and ends at the next entry into the runtime. Whoever
 * took the P tells, in the place of the thread: that is why both hold sched.lock.
 *
 * Plain threads
 *
 * Most events need a goroutine and a P, which a plain thread has not. When it creates a
 * goroutine, or tells of a task, it is told to be a goroutine itself, in a blocking call
 * that it comes back from for a moment, on a P of its own kind (OUTSIDE_P).
 */
#include <string.h>

#include "os.h"
#include "runtime.h"
#include "stack.h"
#include "trace_impl.h"

/* The P on which plain threads appear: beyond all others. */
#define OUTSIDE_P GOMAXPROCS_MAX
static struct p_trace outside;		/* sched.lock */

enum { GO_RUNNABLE = 1, GO_RUNNING, GO_SYSCALL, GO_WAITING };
enum { PROC_RUNNING = 1, PROC_IDLE };

static void put(struct m *mp, enum trace_ev ev, unsigned n, uint64_t a, uint64_t b, uint64_t c,
                uint64_t d)
{
	const uint64_t arg[] = { a, b, c, d };
	struct trace_buf *buf = trace_buf_room(mp, 1);
	int64_t now = os_now();
	uint8_t *p;

	if (unlikely(!buf))
		return;
	if (unlikely(now < buf->last))
		now = buf->last;
	p = buf->data + buf->used;
	*p++ = (uint8_t)ev;
	p = trace_put_number(p, (uint64_t)(now - buf->last));
	for (unsigned i = 0; i < n; i++)
		p = trace_put_number(p, arg[i]);
	buf->last = now;
	buf->used = (uint32_t)(p - buf->data);
}
#define put0(mp, ev)          put(mp, ev, 0, 0, 0, 0, 0)
#define put1(mp, ev, a)       put(mp, ev, 1, a, 0, 0, 0)
#define put2(mp, ev, a, b)    put(mp, ev, 2, a, b, 0, 0)
#define put3(mp, ev, a, b, c) put(mp, ev, 3, a, b, c, 0)

/* ------------------------------------------------------------ introductions */

/* A goroutine that this generation has not heard of is in this state. */
static void introduce_g(struct m *mp, uint64_t id, struct g_trace *t, uint64_t status)
{
	if (likely(t->gen == trace.gen))
		return;
	t->gen = trace.gen;
	t->seq = 0;
	put3(mp, EV_GO_STATUS, id, status == GO_SYSCALL ? (uint64_t)mp->id : TRACE_NO_THREAD, status);
}

/* A P that nobody runs. */
static void introduce_p(struct m *mp, int id, struct p_trace *t)
{
	if (likely(t->gen == trace.gen))
		return;
	t->gen = trace.gen;
	t->seq = 0;
	put2(mp, EV_PROC_STATUS, (uint64_t)id, PROC_IDLE);
}

/* --------------------------------------------------------------- goroutines */

static uint64_t block_reason(enum wait_reason why)
{
	switch (why) {
	case WAIT_CHAN_RECV: return TEXT_CHAN_RECV;
	case WAIT_CHAN_SEND: return TEXT_CHAN_SEND;
	case WAIT_CHAN_RECV_NIL:
	case WAIT_CHAN_SEND_NIL:
	case WAIT_SELECT_NO_CASES: return TEXT_FOREVER;
	case WAIT_SELECT: return TEXT_SELECT;
	case WAIT_SEMACQUIRE:
	case WAIT_MUTEX_LOCK:
	case WAIT_RWMUTEX_RLOCK:
	case WAIT_RWMUTEX_LOCK:
	case WAIT_WAITGROUP_WAIT: return TEXT_SYNC;
	case WAIT_COND_WAIT: return TEXT_COND;
	case WAIT_SLEEP: return TEXT_SLEEP;
	case WAIT_IO: return TEXT_NETWORK;
	default: return TEXT_UNSPECIFIED;
	}
}

static void created(struct m *mp, struct g *gp)
{
	gp->trace = (struct g_trace){ .gen = trace.gen };
	put3(mp, EV_GO_CREATE, gp->id, trace_stack_start(gp), trace_stack_here(mp));
}

static void unblocked(struct m *mp, struct g *gp)
{
	introduce_g(mp, gp->id, &gp->trace, GO_WAITING);
	put3(mp, EV_GO_UNBLOCK, gp->id, ++gp->trace.seq, trace_stack_here(mp));
}

static void stopped(struct m *mp)
{
	uint64_t why = mp->trace.preempted ? TEXT_PREEMPTED : TEXT_GOSCHED;

	mp->trace.preempted = false;
	put2(mp, EV_GO_STOP, why, trace_stack_here(mp));
}

void trace_go_ready(struct m *mp, struct g *gp)
{
	switch (load_relaxed(&gp->status)) {
	case G_DEAD: created(mp, gp); break;
	case G_WAITING: unblocked(mp, gp); break;
	case G_RUNNING: stopped(mp); break;
	default: throw("trace_go_ready: it is ready");
	}
}

/* Its name once in a trace, when it runs. */
static void tell_name(struct m *mp, struct g *gp)
{
	gp->trace.named_in = trace.gen;
	put1(mp, EV_GO_LABEL, trace_string(gp->name, strlen(gp->name)));
}

void trace_go_start(struct m *mp, struct g *gp)
{
	introduce_g(mp, gp->id, &gp->trace, GO_RUNNABLE);
	put2(mp, EV_GO_START, gp->id, ++gp->trace.seq);
	if (unlikely(gp->name[0]) && gp->trace.named_in < trace.first_gen)
		tell_name(mp, gp);
}

void trace_go_block(struct m *mp, struct g *gp)
{
	put2(mp, EV_GO_BLOCK, block_reason(gp->wait_reason), trace_stack_here(mp));
}

void trace_go_end(struct m *mp)
{
	put0(mp, EV_GO_DESTROY);
}

void trace_go_named(struct m *mp)
{
	tell_name(mp, mp->curg);
}

/* ---------------------------------------------------------------------- Ps */

void trace_p_start(struct m *mp, struct p *pp)
{
	introduce_p(mp, pp->id, &pp->trace);
	put2(mp, EV_PROC_START, (uint64_t)pp->id, ++pp->trace.seq);
}

void trace_p_stop(struct m *mp)
{
	put0(mp, EV_PROC_STOP);
}

void trace_call_begin(struct m *mp)
{
	struct p_trace *t = &mp->p->trace;

	t->m = mp->id;
	mp->trace.in_call = true;
	put2(mp, EV_GO_SYSCALL_BEGIN, ++t->seq, trace_stack_here(mp));
}

void trace_call_end(struct m *mp)
{
	mp->trace.in_call = false;
	put0(mp, EV_GO_SYSCALL_END);
}

void trace_p_stolen(struct p *pp)
{
	put3(m_self(), EV_PROC_STEAL, (uint64_t)pp->id, ++pp->trace.seq, (uint64_t)pp->trace.m);
}

void trace_p_taken(struct m *mp, struct p *pp, const uintptr_t *pcs, size_t n)
{
	mp->trace.in_call = true;
	put2(mp, EV_GO_SYSCALL_BEGIN, ++pp->trace.seq, trace_stack_pcs(pcs, n));
	put0(mp, EV_PROC_STOP);
}

/* ------------------------------------------------------- back from without */

static void back(struct m *mp, uint64_t id, struct g_trace *t)
{
	introduce_g(mp, id, t, GO_SYSCALL);
	put0(mp, EV_GO_SYSCALL_END_BLOCKED);
}

void trace_go_back(struct m *mp, struct g *gp)
{
	if (!trace_on())
		return;
	if (load_relaxed(&gp->status) == G_RUNNABLE) {
		gp->wait_since = 0;
		store_relaxed(&gp->status, G_RUNNABLE_TIMED);
	}
	if (mp->trace.in_call) {
		mp->trace.in_call = false;
		back(mp, gp->id, &gp->trace);
	}
}

void trace_go_back_unlocked(struct m *mp, struct g *gp)
{
	lock_acquire(&sched.lock);
	trace_go_back(mp, gp);
	lock_release(&sched.lock);
}

/* What is told at once must be taken back at once: it is in one buffer. */
#define GIVEN_EVENTS 6

struct trace_undo trace_p_given(struct m *mp, struct p *pp)
{
	struct g *gp = mp->curg;
	struct trace_undo undo = { .g = gp->trace, .p = pp->trace };
	struct trace_buf *buf = trace_buf_room(mp, GIVEN_EVENTS);

	check(mp->trace.in_call);
	if (!buf)
		return undo;
	undo.written = true;
	undo.used = buf->used;
	undo.last = buf->last;
	mp->trace.in_call = false;
	back(mp, gp->id, &gp->trace);
	trace_p_start(mp, pp);
	put2(mp, EV_GO_START, gp->id, ++gp->trace.seq);
	return undo;
}

void trace_p_given_undo(struct m *mp, struct p *pp, const struct trace_undo *undo)
{
	if (!undo->written)
		return;
	mp->curg->trace = undo->g;
	pp->trace = undo->p;
	mp->trace.in_call = true;
	mp->trace.buf->used = undo->used;
	mp->trace.buf->last = undo->last;
}

uint32_t trace_ready_outside(struct m *mp, struct g *gp)
{
	if (!trace_on())
		return G_RUNNABLE;
	unblocked(mp, gp);
	gp->wait_since = 0;
	return G_RUNNABLE_TIMED;
}

/* ------------------------------------------------------------ plain threads */

/* sched.lock held, here and below. */
static void thread_comes_in(struct m *mp)
{
	struct g_trace *t = &mp->trace.of_g;

	if (t->named_in < trace.first_gen) {
		*t = (struct g_trace){ .gen = trace.gen, .named_in = trace.gen };
		mp->trace.g = fetch_add_relaxed(&sched.id_next, 1) + 1;
		put1(mp, EV_GO_CREATE_SYSCALL, mp->trace.g);
	}
	back(mp, mp->trace.g, t);
	introduce_p(mp, OUTSIDE_P, &outside);
	put2(mp, EV_PROC_START, OUTSIDE_P, ++outside.seq);
	put2(mp, EV_GO_START, mp->trace.g, ++t->seq);
}

static void thread_goes_out(struct m *mp)
{
	put2(mp, EV_GO_SYSCALL_BEGIN, ++outside.seq, trace_stack_here(mp));
	put0(mp, EV_PROC_STOP);
}

void trace_thread_end(struct m *mp)
{
	lock_acquire(&sched.lock);
	if (trace_on() && mp->trace.of_g.named_in >= trace.first_gen) {
		introduce_g(mp, mp->trace.g, &mp->trace.of_g, GO_SYSCALL);
		put0(mp, EV_GO_DESTROY_SYSCALL);
	}
	mp->trace.of_g.named_in = 0;
	lock_release(&sched.lock);
}

uint32_t trace_create_outside(struct m *mp, struct g *gp)
{
	if (!trace_on())
		return G_RUNNABLE;
	thread_comes_in(mp);
	created(mp, gp);
	thread_goes_out(mp);
	gp->wait_since = 0;
	return G_RUNNABLE_TIMED;
}

void trace_event_user(struct m *mp, enum trace_ev ev, unsigned n, uint64_t a, uint64_t b, uint64_t c)
{
	const uint64_t stack = trace_stack_here(mp);
	uint64_t arg[] = { a, b, c, 0 };

	arg[n - 1] = stack;
	if (!mp->p)
		thread_comes_in(mp);
	put(mp, ev, n, arg[0], arg[1], arg[2], arg[3]);
	if (!mp->p)
		thread_goes_out(mp);
}

void trace_procs(struct m *mp, int procs)
{
	if (mp->p) {
		trace_event_user(mp, EV_PROCS_CHANGE, 2, (uint64_t)procs, 0, 0);
		return;
	}
	lock_acquire(&sched.lock);
	if (trace_on())
		trace_event_user(mp, EV_PROCS_CHANGE, 2, (uint64_t)procs, 0, 0);
	lock_release(&sched.lock);
}

/* By a goroutine, from after the last stop is over to before the next can be: so both
 * are in one generation. */
void trace_world_stop(struct m *mp, const char *why)
{
	put2(mp, EV_STW_BEGIN, trace_string(why, strlen(why)), trace_stack_here(mp));
}

void trace_world_start(struct m *mp)
{
	put0(mp, EV_STW_END);
}

/* ------------------------------------------------------------ the beginning */

/* Gives a goroutine its first status. Those that are runnable are marked, so that
 * whoever runs them tells. */
static void begin_g(struct g *gp, void *arg)
{
	struct m *mp = arg, *on;
	uint64_t thread = TRACE_NO_THREAD, status = GO_RUNNABLE;

	switch (load_acquire(&gp->status)) {
	case G_DEAD:
		return;
	case G_RUNNABLE:
		gp->wait_since = 0;
		store_relaxed(&gp->status, G_RUNNABLE_TIMED);
		break;
	case G_RUNNABLE_TIMED:
		break;
	case G_WAITING:
		status = GO_WAITING;
		break;
	default:
		on = load_acquire(&gp->mp);
		on->trace.in_call = true;
		thread = (uint64_t)on->id;
		status = GO_SYSCALL;
	}
	gp->trace.gen = trace.gen;
	gp->trace.seq = 0;
	put(mp, EV_GO_STATUS_STACK, 4, gp->id, thread, status,
	    status == GO_SYSCALL ? trace_stack_start(gp) : trace_stack_of(gp));
}

void trace_event_begin(struct m *mp)
{
	int64_t end;

	for (struct m *each = load_acquire(&sched.all_m); each; each = each->all_link)
		each->trace.in_call = each->trace.preempted = false;
	for (int i = 0; i < sched.all_p_n; i++) {
		p_at(i)->latency_in = 1;
		if (i < sched.gomaxprocs)
			introduce_p(mp, i, &p_at(i)->trace);
	}
	stack_each(begin_g, mp);
	/* What others tell is later than what is told here, by the clock, too. */
	for (end = os_now(); os_now() <= end;)
		;
}

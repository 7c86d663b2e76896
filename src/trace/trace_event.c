/*
 * trace_event.c - a trace's events, and how they stay consistent.
 *
 * Go's reader (internal/trace/order.go) follows the state of every goroutine, P and
 * thread through the events, and gives up at the first event that does not fit. The
 * events of one thread are in order. Between threads only numbers give an order: a
 * goroutine's events of becoming runnable and running are numbered, and so are a P's of
 * being taken and given up. The reader waits for the next number of each. The numbers lie
 * in the G and in the P; the owner of the G or P counts them.
 *
 * Generations
 *
 * A trace is a row of generations, each with its own strings, stacks and numbers. Before
 * a goroutine's or a P's first event in a generation, the thread that writes that event
 * writes its status. Only the first generation lists all goroutines: to the reader, a
 * goroutine that appears later without having been created is an error.
 *
 * Rejected: the status of all goroutines in every generation, as Go does. A million that
 * only wait, which the reader remembers, would keep the world stopped for long.
 *
 * The writer, which has no P, changes the generation with the world stopped. At that
 * moment every P is idle, and in the trace no goroutine runs:
 *
 * Without a P
 *
 * A P may be taken from a goroutine in user code, because the goroutine sleeps in the
 * kernel or because the world stops. The goroutine goes on without knowing. In the trace
 * this is a blocking call, which begins when the P is taken and ends when the goroutine
 * next enters the runtime. The thread that takes the P writes its beginning into the
 * buffer of the goroutine's thread: so both threads hold sched.lock when they write it.
 *
 * Plain threads
 *
 * Most events need a goroutine and a P; a plain thread has neither. In the trace, a plain
 * thread is a goroutine in a blocking call. To create a goroutine or to write an event of
 * the program's, it returns from that call for a moment, on a P that stands for all plain
 * threads (OUTSIDE_P).
 */
#include <string.h>

#include "base/hook.h"
#include "platform/os.h"
#include "observe/backtrace.h"
#include "sched/runtime.h"
#include "stack/stack.h"
#include "trace/trace.h"

/* The P on which plain threads appear: its number is above that of any real P. */
#define OUTSIDE_P GOMAXPROCS_MAX
static struct p_trace outside;		/* under sched.lock */

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
	check(buf->used <= TRACE_BUF_ROOM);
}
#define put0(mp, ev)          put(mp, ev, 0, 0, 0, 0, 0)
#define put1(mp, ev, a)       put(mp, ev, 1, a, 0, 0, 0)
#define put2(mp, ev, a, b)    put(mp, ev, 2, a, b, 0, 0)
#define put3(mp, ev, a, b, c) put(mp, ev, 3, a, b, c, 0)

/* ------------------------------------------------------------ introductions */

/* Writes the status of a goroutine that has no event yet in this generation. */
static void introduce_g(struct m *mp, uint64_t id, struct g_trace *t, uint64_t status)
{
	if (likely(t->gen == trace.gen))
		return;
	t->gen = trace.gen;
	t->seq = 0;
	put3(mp, EV_GO_STATUS, id, status == GO_SYSCALL ? (uint64_t)mp->id : TRACE_NO_THREAD, status);
}

/* The same of an idle P. */
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
	static const uint8_t text[WAIT_REASON_COUNT] = {
		[WAIT_CHAN_RECV] = TEXT_CHAN_RECV, [WAIT_CHAN_SEND] = TEXT_CHAN_SEND,
		[WAIT_CHAN_RECV_NIL] = TEXT_FOREVER, [WAIT_CHAN_SEND_NIL] = TEXT_FOREVER,
		[WAIT_SELECT_NO_CASES] = TEXT_FOREVER, [WAIT_SELECT] = TEXT_SELECT,
		[WAIT_SEMACQUIRE] = TEXT_SYNC, [WAIT_MUTEX_LOCK] = TEXT_SYNC,
		[WAIT_RWMUTEX_RLOCK] = TEXT_SYNC, [WAIT_RWMUTEX_LOCK] = TEXT_SYNC,
		[WAIT_WAITGROUP_WAIT] = TEXT_SYNC, [WAIT_COND_WAIT] = TEXT_COND,
		[WAIT_SLEEP] = TEXT_SLEEP, [WAIT_IO] = TEXT_NETWORK,
	};

	return text[why] ? text[why] : TEXT_UNSPECIFIED;
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

static void go_ready(struct m *mp, struct g *gp)
{
	switch (load_relaxed(&gp->status)) {
	case G_DEAD: created(mp, gp); break;
	case G_WAITING: unblocked(mp, gp); break;
	case G_RUNNING: stopped(mp); break;
	default: throw("trace_go_ready: it is ready");
	}
}

/* Written once in a trace, while the goroutine runs. */
static void tell_name(struct m *mp, struct g *gp)
{
	gp->trace.named_in = trace.gen;
	put1(mp, EV_GO_LABEL, trace_string(gp->name));
}

static void go_start(struct m *mp, struct g *gp)
{
	introduce_g(mp, gp->id, &gp->trace, GO_RUNNABLE);
	put2(mp, EV_GO_START, gp->id, ++gp->trace.seq);
	if (unlikely(gp->name[0]) && gp->trace.named_in < trace.first_gen)
		tell_name(mp, gp);
}

static void go_block(struct m *mp, struct g *gp)
{
	put2(mp, EV_GO_BLOCK, block_reason(gp->wait_reason), trace_stack_here(mp));
}

static void go_end(struct m *mp)
{
	put0(mp, EV_GO_DESTROY);
}

static void go_named(struct m *mp)
{
	tell_name(mp, mp->curg);
}

/* ---------------------------------------------------------------------- Ps */

static void p_start(struct m *mp, struct p *pp)
{
	introduce_p(mp, pp->id, &pp->trace);
	put2(mp, EV_PROC_START, (uint64_t)pp->id, ++pp->trace.seq);
}

static void p_stop(struct m *mp)
{
	put0(mp, EV_PROC_STOP);
}

static void call_begin(struct m *mp)
{
	struct p_trace *t = &mp->p->trace;

	t->m = mp->id;
	mp->trace.in_call = true;
	put2(mp, EV_GO_SYSCALL_BEGIN, ++t->seq, trace_stack_here(mp));
}

static void call_end(struct m *mp)
{
	mp->trace.in_call = false;
	put0(mp, EV_GO_SYSCALL_END);
}

static void p_stolen(struct p *pp)
{
	put3(m_self(), EV_PROC_STEAL, (uint64_t)pp->id, ++pp->trace.seq, (uint64_t)pp->trace.m);
}

static size_t asleep_in(struct m *of, uintptr_t *pcs)
{
	struct backtrace bt = { .n = 0 };

	_Static_assert(BACKTRACE_MAX <= TRACE_CALLS_MAX, "asleep_in: there is room");
	backtrace_asleep(&bt, of, load_relaxed(&of->curg));
	memcpy(pcs, bt.pc, bt.n * sizeof *pcs);
	return bt.n;
}

static void p_taken(struct m *mp, struct p *pp, const uintptr_t *pcs, size_t n)
{
	check(lock_is_held(&sched.lock) && !mp->trace.in_call);
	mp->trace.in_call = true;
	put2(mp, EV_GO_SYSCALL_BEGIN, ++pp->trace.seq, trace_stack_pcs(pcs, n));
	put0(mp, EV_PROC_STOP);
}

/* -------------------------------------------------------- back without a P */

static void back(struct m *mp, uint64_t id, struct g_trace *t)
{
	introduce_g(mp, id, t, GO_SYSCALL);
	put0(mp, EV_GO_SYSCALL_END_BLOCKED);
}

static void go_back(struct m *mp, struct g *gp)
{
	if (mp->trace.in_call) {
		mp->trace.in_call = false;
		back(mp, gp->id, &gp->trace);
	}
}

/* p_given writes this number of events at most. They go into one buffer, so that
 * p_given_undo can take them back. */
#define GIVEN_EVENTS 6

static struct trace_undo p_given(struct m *mp, struct p *pp)
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
	p_start(mp, pp);
	put2(mp, EV_GO_START, gp->id, ++gp->trace.seq);
	return undo;
}

static void p_given_undo(struct m *mp, struct p *pp, const struct trace_undo *undo)
{
	check(mp->trace.buf->used >= undo->used);
	mp->curg->trace = undo->g;
	pp->trace = undo->p;
	mp->trace.in_call = true;
	mp->trace.buf->used = undo->used;
	mp->trace.buf->last = undo->last;
}

/* ------------------------------------------------------------ plain threads */

static void thread_comes_in(struct m *mp)
{
	struct g_trace *t = &mp->trace.of_g;

	check(lock_is_held(&sched.lock) && !mp->p);
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
	check(lock_is_held(&sched.lock) && outside.gen == trace.gen);
	put2(mp, EV_GO_SYSCALL_BEGIN, ++outside.seq, trace_stack_here(mp));
	put0(mp, EV_PROC_STOP);
}

static void thread_end(struct m *mp)
{
	lock_acquire(&sched.lock);
	if (trace_on() && mp->trace.of_g.named_in >= trace.first_gen) {
		introduce_g(mp, mp->trace.g, &mp->trace.of_g, GO_SYSCALL);
		put0(mp, EV_GO_DESTROY_SYSCALL);
	}
	mp->trace.of_g.named_in = 0;
	lock_release(&sched.lock);
}

static void create_outside(struct m *mp, struct g *gp)
{
	thread_comes_in(mp);
	created(mp, gp);
	thread_goes_out(mp);
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

static void procs(struct m *mp, int procs)
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

/* A goroutine stops the world for itself: no other stop, and so no change of generation,
 * comes between world_stop and world_start. */
static void world_stops(struct m *mp, const char *why)
{
	put2(mp, EV_STW_BEGIN, trace_string(why), trace_stack_here(mp));
}

static void world_starts(struct m *mp)
{
	put0(mp, EV_STW_END);
}

/* ------------------------------------------------------------ the beginning */

/* Writes a goroutine's first status in the trace. */
static void begin_g(struct g *gp, void *arg)
{
	struct m *mp = arg, *on;
	uint64_t thread = TRACE_NO_THREAD, status = GO_RUNNABLE;

	switch (load_acquire(&gp->status)) {
	case G_DEAD:
		return;
	case G_RUNNABLE:
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

	check(lock_is_held(&sched.lock) && load_relaxed(&sched.stopping) && !mp->p);
	for (struct m *each = load_acquire(&sched.all_m); each; each = each->all_link)
		each->trace.in_call = each->trace.preempted = false;
	for (int i = 0; i < sched.gomaxprocs; i++)
		introduce_p(mp, i, &p_at(i)->trace);
	stack_each(begin_g, mp);
	/* Other threads' events must have later times than these. */
	for (end = os_now(); os_now() <= end;)
		;
}

/* ---------------------------------------------------------------- the hooks */

static void fill_hooks(void)
{
	trace_hook = (struct trace_hook){
		.go_ready = go_ready,
		.go_start = go_start,
		.go_block = go_block,
		.go_end = go_end,
		.go_named = go_named,
		.p_start = p_start,
		.p_stop = p_stop,
		.call_begin = call_begin,
		.call_end = call_end,
		.p_stolen = p_stolen,
		.p_taken = p_taken,
		.asleep_in = asleep_in,
		.go_back = go_back,
		.p_given = p_given,
		.p_given_undo = p_given_undo,
		.ready_outside = unblocked,
		.thread_end = thread_end,
		.create_outside = create_outside,
		.procs = procs,
		.world_stop = world_stops,
		.world_start = world_starts,
	};
}
AT_LOAD(fill_hooks);

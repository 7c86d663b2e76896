/*
 * sim.c - deterministic simulation: threads, choices, time.
 *
 * A simulated process has one thread of the kernel. Each thread that the runtime makes is
 * a fiber: a stack and a context, switched to like a goroutine. At a point (below) the
 * running fiber may be set aside and another one goes on. Which one, and whether, is
 * drawn from the seed, like everything else that the kernel or the machine would decide:
 *
 *	- which thread runs, at every point;
 *	- how long a thread has no CPU ("stall"), and how late a woken one comes;
 *	- which of the threads at a futex is woken, and which waits end for nothing;
 *	- when a goroutine is asked to give way, besides what sysmon decides;
 *	- how many Ps and CPUs there are, how long a time slice is, and a step.
 *
 * sysmon, the spawner, the poller and preemption are the real ones. They see a kernel
 * that is slow here and quick there, as the seed says. So every schedule is one that the
 * runtime could have on a real machine whose memory is sequentially consistent. What only
 * weaker orders show is for test/models.
 *
 * Points
 *
 * In builds with GORO_SIM_POINTS each operation of atomic.h is a point. In all builds the
 * calls of os.h are, and each entry to the runtime and each exit. Between two points a
 * fiber runs alone: user code, system calls, libc. A choice is drawn once in `every`
 * points, on average.
 *
 * Time
 *
 * The clock stands while code runs, except that each point takes point_ns. When all
 * fibers sleep it jumps to the next time at which one is to wake. At that moment nothing
 * can run, and sim_check looks whether that is right: if a goroutine is runnable and a P
 * idle, a wake was lost, though sysmon might have mended it later.
 *
 * Signals
 *
 * SIG_PREEMPT for a fiber runs its handler on the fiber, when that passes its next point,
 * or at once if it sleeps in user code.
 *
 * Rejected:
 *	- Ms that stay threads of the kernel and pass a baton. A turn costs two futex
 *	  calls, 5 to 10 us: two hundred times as much as a switch of contexts. In the
 *	  same time a hundredth of the seeds could be tried.
 *	- One P and one M, and a choice of the next goroutine alone. Finds faults of
 *	  programs, not of the runtime: nothing is stolen, handed over or taken.
 *	- ptrace, or single steps. Reaches orders of single instructions, at microseconds
 *	  for each. The runtime's threads share words through atomic.h alone.
 */
#define _GNU_SOURCE
#include "sim/sim.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/config.h"
#include "platform/context.h"
#include "base/lock.h"
#include "base/mem.h"
#include "platform/os.h"
#include "platform/sys.h"
#include "base/throw.h"
#include "sched/cxx.h"
#include "sched/types.h"

#define FIBERS_MAX 1024
#if GORO_CHECKS
#define HELD_BYTES lock_held_size()
#else
#define HELD_BYTES 1
#endif
#define NEVER      INT64_MAX

/* Where the clock begins. */
#define CLOCK_BEGIN (INT64_C(1000) * 1000000000)

/* A fiber that is never chosen against gives way after this many choices that are not
 * drawn: outside the window it would spin for ever. */
#define FAIR_CHOICES 2000

/* A run with more choices does not come to an end. */
#define CHOICES_MAX 20000000

/* A wait for descriptors of other processes, if nothing else is left. */
#define REAL_WAIT_S 10

enum fiber_state { FIBER_FREE, FIBER_RUNNABLE, FIBER_FUTEX, FIBER_SLEEP, FIBER_POLL };

struct fiber {
	struct context context;		/* valid while it does not execute */
	enum fiber_state state;
	int id;
	uint32_t priority;		/* of strategy PRIORITIES */
	int64_t until;			/* asleep: when it wakes by itself */
	int64_t stalled;		/* runnable: not before this time */
	int result;			/* of the wait */
	uint32_t *word;			/* the futex */
	struct pollfd *poll;
	size_t npoll;
	bool in_user;			/* sleeps in user code: signals end the sleep */
	bool in_handler;
	bool signalled;			/* info is valid */
	siginfo_t info;
	ucontext_t interrupted;
	int64_t cpu;
	void *(*fn)(void *);
	void *arg;
	char *stack;			/* NULL: the kernel's thread */
	/* What is kept per thread. */
	struct m *mp;
	int saved_errno;
	struct cxx_state cxx;
	struct lock_held *held;
};

/* How the next thread is chosen: evenly, or the one of the highest priority, where
 * priorities change now and then. The second reaches orders in which one thread is left
 * behind for long. */
enum strategy { EVENLY, PRIORITIES };

static struct {
	struct fiber *all[FIBERS_MAX];
	int n;
	struct fiber *self;
	bool turns;			/* threads take turns */
	bool busy;			/* within the simulation itself */
	bool over;			/* the process ends: nothing is chosen any more */
	int64_t now;
	uint64_t random;
	uint64_t passed;		/* choices that were not drawn in a row */
	struct sim_window window;
	struct sim_report *report;

	/* Drawn from the seed at the beginning. */
	enum strategy strategy;
	uint32_t every;			/* points for a choice, on average */
	uint32_t stall_in;		/* of so many choices one is a stall */
	uint32_t late_in;		/* of so many wakes one is late */
	uint32_t give_way_in;		/* of so many borders one asks to give way */
	int64_t point_ns;
#if GORO_SIM_POINTS
	int granted;			/* points until the next choice */
#endif
} s;

static __thread bool is_simulated;

/* ----------------------------------------------------------------- chance */

static uint64_t draw_any(void)
{
	uint64_t z = (s.random += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static uint32_t draw(uint32_t below)
{
	return (uint32_t)((draw_any() >> 32) * below >> 32);
}

/* Mostly short, sometimes long: between 1 us and 1 us << doublings. */
static int64_t draw_ns(uint32_t doublings)
{
	int64_t ns = INT64_C(1000) << draw(doublings);

	return ns + draw((uint32_t)ns);
}

/* Counts a choice. False: it is outside the window, and not to be made. */
static bool is_made(void)
{
	uint64_t i = s.report->choices++;

	if (i == CHOICES_MAX) {
		s.over = true;
		fatal_nobody("sim: the run does not end");
	}
	return i >= s.window.from && i < s.window.until;
}

static void record(enum sim_kind kind, int64_t value)
{
	uint64_t h = s.report->hash;

	h = (h ^ (unsigned)kind) * UINT64_C(0x100000001b3);
	h = (h ^ (unsigned)s.self->id) * UINT64_C(0x100000001b3);
	s.report->hash = (h ^ (uint64_t)value) * UINT64_C(0x100000001b3);
	s.report->now = s.now;
	sim_log(kind, s.now, s.self->id, value);
}

/* --------------------------------------------------------------- switching */

static void switch_to(struct fiber *to)
{
	struct fiber *from = s.self;

	if (to == from)
		return;
	from->mp = goro_tls_m;
	from->saved_errno = errno;
	if (from->mp)
		from->cxx = cxx_get(from->mp);
#if GORO_CHECKS
	lock_held_swap(to->held, from->held);
#endif
	goro_tls_m = to->mp;
	if (to->mp)
		cxx_set(to->mp, to->cxx);
	s.self = to;
	context_switch(&from->context, &to->context, NULL);
	errno = from->saved_errno;
}

static bool is_ready(const struct fiber *f)
{
	return f->state == FIBER_RUNNABLE && f->stalled <= s.now;
}

static void make_ready(struct fiber *f, int result)
{
	f->state = FIBER_RUNNABLE;
	f->result = result;
	f->stalled = draw(s.late_in) == 0 ? s.now + draw_ns(12) : 0;
}

static int poll_really(struct pollfd *p, size_t n, int seconds)
{
	struct timespec t = { seconds, 0 };

	return (int)sys5(SYS_ppoll, p, n, &t, NULL, _NSIG / 8);
}

/* Wakes whose time is up, or whose descriptors are ready. */
static void wake_due(bool polls)
{
	for (int i = 0; i < s.n; i++) {
		struct fiber *f = s.all[i];
		int r;

		if (f->state == FIBER_POLL && polls && (r = poll_really(f->poll, f->npoll, 0)) != 0)
			make_ready(f, r);
		else if (f->state > FIBER_RUNNABLE && f->until <= s.now)
			make_ready(f, f->state == FIBER_FUTEX ? -ETIMEDOUT : 0);
	}
}

/* One of those that are ready, or NULL. */
static struct fiber *draw_ready(bool drawn)
{
	struct fiber *best = NULL;
	int n = 0, at;

	for (int i = 0; i < s.n; i++)
		n += is_ready(s.all[i]);
	if (n == 0)
		return NULL;
	if (!drawn) {			/* the next one in turn */
		for (int i = 1; i <= s.n; i++)
			if (is_ready(s.all[(s.self->id + i) % s.n]))
				return s.all[(s.self->id + i) % s.n];
	}
	if (s.strategy == PRIORITIES) {
		for (int i = 0; i < s.n; i++)
			if (is_ready(s.all[i]) && (!best || s.all[i]->priority > best->priority))
				best = s.all[i];
		return best;
	}
	at = (int)draw((uint32_t)n);
	for (int i = 0;; i++)
		if (is_ready(s.all[i]) && at-- == 0)
			return s.all[i];
}

/* Nothing but a descriptor can end this: perhaps another process will. */
static bool wait_really(void)
{
	for (int i = 0; i < s.n; i++)
		if (s.all[i]->state == FIBER_POLL &&
		    poll_really(s.all[i]->poll, s.all[i]->npoll, REAL_WAIT_S) != 0)
			return true;
	return false;
}

/* Whether a thread is in the midst of what it does in the runtime. */
static bool is_held_up(const struct fiber *f)
{
	const struct m *mp = f == s.self ? goro_tls_m : f->mp;

	return f->state == FIBER_RUNNABLE &&
	       (!mp || __atomic_load_n(&mp->state, __ATOMIC_RELAXED) == M_RUNTIME);
}

/* Looks whether anything is wrong. asleep: all threads sleep. */
static void look(bool asleep)
{
	bool held_up = false;
	const char *wrong;

	for (int i = 0; i < s.n; i++)
		held_up |= is_held_up(s.all[i]);
	wrong = sim_check(s.now, asleep, held_up);
	if (wrong) {
		s.over = true;
		fatal_nobody("sim: %s", wrong);
	}
}

/* No thread is ready: time goes on to where one is. */
static void jump(void)
{
	int64_t next = NEVER;
	bool asleep = true;

	for (int i = 0; i < s.n; i++) {
		const struct fiber *f = s.all[i];
		int64_t at = f->state == FIBER_RUNNABLE ? f->stalled : f->state ? f->until : NEVER;

		asleep &= f->state != FIBER_RUNNABLE && !(f->state == FIBER_SLEEP && f->in_user);
		if (at < next)
			next = at;
	}
	look(asleep);
	if (next != NEVER) {
		s.now = next;
	} else if (!wait_really()) {
		s.over = true;
		fatal_nobody("sim: all threads sleep, and nothing will wake them");
	}
	record(SIM_TIME, s.now);
}

/* Goes on with a thread that is ready; perhaps with this one. */
static void go_on(enum sim_kind kind, bool drawn)
{
	struct fiber *to;

	look(false);
	wake_due(!drawn || draw(4) == 0);
	while (!(to = draw_ready(drawn))) {
		wake_due(true);
		if ((to = draw_ready(drawn)))
			break;
		jump();
		wake_due(true);
	}
	record(kind, to->id);
	switch_to(to);
}

/* The handler is given the context in which its caller goes on: where, and on which
 * stack. (Not by getcontext, which musl has not.) */
static void fill_context(ucontext_t *uc, void **frame, void *pc)
{
	memset(uc, 0, sizeof *uc);
#if defined(__x86_64__)
	uc->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)pc;
	uc->uc_mcontext.gregs[REG_RBP] = (greg_t)(uintptr_t)frame[0];
	uc->uc_mcontext.gregs[REG_RSP] = (greg_t)(uintptr_t)(frame + 2);
#else
	uc->uc_mcontext.pc = (uintptr_t)pc;
	uc->uc_mcontext.regs[29] = (uintptr_t)frame[0];
	uc->uc_mcontext.sp = (uintptr_t)frame;
#endif
}

static __attribute__((noinline)) void handle(struct fiber *self, void *handler)
{
	void (*fn)(int, siginfo_t *, void *) = (void (*)(int, siginfo_t *, void *))handler;

	fill_context(&self->interrupted, __builtin_frame_address(0), __builtin_return_address(0));
	fn(self->info.si_signo, &self->info, &self->interrupted);
}

/* Runs the handler of a signal that came for this thread. */
static void take_signal(void)
{
	struct fiber *self = s.self;

	while (self->signalled && !self->in_handler && !s.over) {
		struct os_action action;

		os_action_get(self->info.si_signo, &action);
		self->signalled = false;
		self->in_handler = true;
		s.busy = false;
		handle(self, action.fn);
		s.busy = true;
		self->in_handler = false;
	}
}

static bool enter(void)
{
	if (!is_simulated)
		fatal("sim: a thread of the program's own uses goro; only one thread can be simulated");
	if (!s.turns || s.busy || s.over)
		return false;
	s.busy = true;
	return true;
}

static void leave(void)
{
	take_signal();
	s.busy = false;
}

static void advance(int64_t ns)
{
	s.now += ns;
	s.self->cpu += ns;
}

/* A choice where nothing has to happen. */
static void choose(enum sim_kind kind)
{
	if (!is_made()) {
		if (kind == SIM_YIELD || ++s.passed >= FAIR_CHOICES) {
			s.passed = 0;
			go_on(kind, false);
		}
		return;
	}
	if (draw(s.stall_in) == 0) {
		s.self->stalled = s.now + draw_ns(15);
		kind = SIM_STALL;
	} else if (s.strategy == PRIORITIES && draw(kind == SIM_YIELD ? 2 : 16) == 0) {
		s.self->priority = draw(UINT32_MAX);
	}
	go_on(kind, true);
}

/* ------------------------------------------------------------------ points */

static void point(void)
{
	if (!enter())
		return;
	s.report->points++;
	advance(s.point_ns);
	if (draw(s.every) == 0)
		choose(SIM_POINT_PASSED);
	leave();
}

#if GORO_SIM_POINTS
static void grant(void)
{
	s.granted = sim_points_left = (int)draw(2 * s.every);
}

static void points_due(void)
{
	if (!is_simulated || !enter()) {
		sim_points_left = 1000;
		return;
	}
	s.report->points += (unsigned)s.granted + 1;
	advance(s.point_ns * (s.granted + 1));
	choose(SIM_POINT_PASSED);
	leave();
	grant();
}
#endif

/* Where the simulation itself is busy, in its choices or in a dump, nothing waits. */
static int wait_in_vain(int64_t ns)
{
	s.now += ns < 0 ? 1000000 : ns;
	return -ETIMEDOUT;
}

static int wait_for(enum fiber_state state, enum sim_kind kind, int64_t ns)
{
	struct fiber *self = s.self;

	self->state = state;
	self->until = ns < 0 ? NEVER : s.now + ns;
	go_on(kind, is_made());
	return self->result;
}

/* -------------------------------------------------- in place of the kernel */

static int64_t sim_now(void)
{
	point();
	return s.now;
}

static void sim_sleep(int64_t ns)
{
	if (!enter()) {
		wait_in_vain(ns);
		return;
	}
	wait_for(FIBER_SLEEP, SIM_SLEEP, ns);
	leave();
}

static void sim_yield(void)
{
	if (!enter())
		return;
	advance(s.point_ns);
	choose(SIM_YIELD);
	leave();
}

static int sim_futex_wait(uint32_t *word, uint32_t value, int64_t ns)
{
	int r;

	if (__atomic_load_n(word, __ATOMIC_SEQ_CST) != value)
		return -EAGAIN;
	if (!enter())
		return wait_in_vain(ns);
	if (is_made() && draw(64) == 0) {
		record(SIM_SPURIOUS, 0);
		leave();
		return -EINTR;
	}
	s.self->word = word;
	r = wait_for(FIBER_FUTEX, SIM_WAIT, ns);
	leave();
	return r;
}

static struct fiber *draw_waiter(const uint32_t *word)
{
	uint32_t n = 0, at;

	for (int i = 0; i < s.n; i++)
		n += s.all[i]->state == FIBER_FUTEX && s.all[i]->word == word;
	if (n == 0)
		return NULL;
	at = is_made() ? draw(n) : 0;
	for (int i = 0;; i++)
		if (s.all[i]->state == FIBER_FUTEX && s.all[i]->word == word && at-- == 0)
			return s.all[i];
}

static int sim_futex_wake(uint32_t *word, int n)
{
	bool entered = enter();
	struct fiber *f;
	int woken = 0;

	while (woken < n && (f = draw_waiter(word))) {
		make_ready(f, 0);
		record(SIM_WAKE, f->id);
		woken++;
	}
	if (entered)
		leave();
	point();
	return woken;
}

static int sim_poll(struct pollfd *p, size_t n, int64_t ns)
{
	int r;

	if (ns == 0 || !enter())
		return poll_really(p, n, 0);
	s.self->poll = p;
	s.self->npoll = n;
	r = wait_for(FIBER_POLL, SIM_POLL, ns);
	leave();
	return r;
}

static int tid_of(const struct fiber *f)
{
	return (int)sys0(SYS_getpid) + f->id;
}

static struct fiber *fiber_of(int tid)
{
	int id = tid - (int)sys0(SYS_getpid);

	return id >= 0 && id < s.n && s.all[id]->state != FIBER_FREE ? s.all[id] : NULL;
}

static int sim_tid(void)
{
	return is_simulated ? tid_of(s.self) : (int)sys0(SYS_gettid);
}

/* Threads move between the CPUs seldom: this one never. */
static int sim_cpu(void)
{
	return s.self->id % s.report->cpus;
}

static int sim_threads(void)
{
	int n = 0;

	for (int i = 0; i < s.n; i++)
		n += s.all[i]->state != FIBER_FREE;
	return n;
}

static int64_t sim_thread_cpu(int tid)
{
	struct fiber *f = tid == 0 ? s.self : fiber_of(tid);

	point();
	return f ? f->cpu : 0;
}

static int64_t sim_process_cpu(void)
{
	return s.now;
}

static bool sim_thread_is_asleep(int tid)
{
	struct fiber *f = fiber_of(tid);

	point();
	return f && f->state != FIBER_RUNNABLE;
}

static void sim_signal(int tid, int sig, const siginfo_t *info)
{
	struct fiber *f = fiber_of(tid);

	(void)sig;
	if (!f || s.over)
		return;
	f->info = *info;
	f->signalled = true;
	if (f->state == FIBER_SLEEP && f->in_user)
		make_ready(f, -EINTR);
	record(SIM_SIGNAL, f->id);
	point();
}

static bool sim_thread_stack(char **lo, char **hi)
{
	if (!s.self->stack)
		return false;
	*lo = s.self->stack;
	*hi = *lo + M_STACK_BYTES;
	return true;
}

static int sim_cpus(void)
{
	return s.report->cpus;
}

static int sim_procs(void)
{
	return s.report->procs;
}

static void sim_border(void)
{
	struct m *mp = m_self();

	point();
	if (!s.turns || s.busy || s.over || mp->is_foreign || draw(s.give_way_in) != 0 || !is_made())
		return;
	record(SIM_GIVE_WAY, 0);
	__atomic_fetch_or(&mp->attn, ATTN_YIELD, __ATOMIC_SEQ_CST);
}

/* ----------------------------------------------------------------- threads */

static struct fiber *fiber_new(void)
{
	struct fiber *f;

	for (int i = 0; i < s.n; i++)
		if (s.all[i]->state == FIBER_FREE)
			return s.all[i];
	if (s.n == FIBERS_MAX || !(f = mem_alloc(sizeof *f)) ||
	    !(f->held = mem_alloc(HELD_BYTES)))
		return NULL;
	f->id = s.n;
	f->priority = draw(UINT32_MAX);
	return s.all[s.n++] = f;
}

/* Where a fiber begins, without a return address. */
static _Noreturn void fiber_start(void)
{
	struct fiber *self = s.self;

	s.busy = false;
	self->fn(self->arg);
	s.busy = true;
	self->state = FIBER_FREE;
	goro_tls_m = NULL;
	go_on(SIM_END, is_made());
	__builtin_unreachable();
}

static int sim_thread_make(void *(*fn)(void *), void *arg)
{
	struct fiber *f = fiber_new();
	char *top;

	if (!f || (!f->stack && !(f->stack = os_map(M_STACK_BYTES))))
		return EAGAIN;
	top = f->stack + M_STACK_BYTES - 64;
	context_make(&f->context, top);
#if defined(__x86_64__)
	f->context.sp = top - sizeof(void *);	/* as after a call */
#endif
	f->context.pc = (void *)fiber_start;
	f->fn = fn;
	f->arg = arg;
	f->mp = NULL;
	f->signalled = f->in_handler = f->in_user = false;
	f->saved_errno = 0;
	memset(&f->cxx, 0, sizeof f->cxx);
	memset(f->held, 0, HELD_BYTES);
	make_ready(f, 0);
	record(SIM_MAKE, f->id);
	point();
	return 0;
}

/* --------------------------------------------------------------- user code */

void sim_compute(int64_t ns)
{
	int64_t end = s.self->cpu + ns;

	if (!sim)
		return;
	while (s.self->cpu < end && !s.over) {
		if (enter()) {
			advance(1000 + draw((uint32_t)(ns / 32)));
			choose(SIM_POINT_PASSED);
			leave();
		}
	}
}

void sim_block(int64_t ns)
{
	struct fiber *self = s.self;
	int64_t end = s.now + ns;

	if (!sim)
		return;
	while (s.now < end && enter()) {
		self->in_user = true;
		wait_for(FIBER_SLEEP, SIM_SLEEP, end - s.now);
		self->in_user = false;
		leave();
	}
}

/* --------------------------------------------------------------- beginning */

static const struct sim_os kernel = {
	.now = sim_now, .sleep = sim_sleep, .yield = sim_yield,
	.futex_wait = sim_futex_wait, .futex_wake = sim_futex_wake,
	.membarrier = point, .poll = sim_poll,
	.tid = sim_tid, .cpu = sim_cpu, .threads = sim_threads,
	.thread_cpu = sim_thread_cpu, .process_cpu = sim_process_cpu,
	.thread_is_asleep = sim_thread_is_asleep, .signal = sim_signal,
	.thread_make = sim_thread_make, .thread_stack = sim_thread_stack,
	.cpus = sim_cpus, .procs = sim_procs, .border = sim_border,
};

/* The machine, drawn from the seed. */
static void draw_machine(void)
{
	static const int procs[] = { 1, 2, 2, 3, 4, 4 };
	static const int64_t point_ns[] = { 5, 20, 100, 500 };
	static const int slice_us[] = { 0, 0, 50, 200, 1000 };
	uint32_t shift = GORO_SIM_POINTS ? 2 + draw(7) : draw(4);

	s.report->procs = procs[draw(6)];
	s.report->cpus = draw(4) == 0 ? 1 + (int)draw(4) : s.report->procs;
	s.report->slice_us = slice_us[draw(5)];
	s.strategy = draw(3) == 0 ? PRIORITIES : EVENLY;
	s.every = 1u << shift;
	s.stall_in = 8u << draw(6);
	s.late_in = 2u << draw(5);
	s.give_way_in = 4u << draw(8);
	s.point_ns = point_ns[draw(4)];
}

void sim_begin(uint64_t seed, struct sim_window window, struct sim_report *report)
{
	s.random = seed;
	s.window = window;
	s.report = report;
	s.now = CLOCK_BEGIN + draw(1000000000);	/* what Ms draw depends on it */
	is_simulated = true;
	draw_machine();
	s.self = fiber_new();
	if (!s.self)
		fatal("sim: out of memory");
	s.self->state = FIBER_RUNNABLE;
	sim = &kernel;
}

void sim_take_turns(void)
{
	s.turns = true;
#if GORO_SIM_POINTS
	sim_point_due = points_due;
	grant();
#endif
}

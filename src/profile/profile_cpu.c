/*
 * profile_cpu.c - where the CPU time goes.
 *
 * As in Go on Linux, every thread of the process has a timer on its own CPU time, which
 * sends SIGPROF to that thread after each period that it has run. The handler takes a
 * sample and counts it (profile_sample.c). A thread that sleeps uses no CPU time and gets
 * no signal, so no sleeping system call is interrupted. If the signal hits a call on its
 * way to sleep that the kernel does not restart, the handler does, as in preempt.c.
 *
 * The collector is a thread of the runtime's, made with the first profile. It looks for
 * new threads: ten times a second, and at once when a thread becomes an M. So plain
 * threads that never call goro are profiled, too, except those that block SIGPROF.
 *
 * To start or stop a profile, a thread asks the collector and waits for its answer. So
 * threads and timers have one owner. The collector is no M, so it may take long. The
 * thread that stops a profile encodes and writes it.
 *
 *	state		may be changed
 *	OFF, ON		by any thread, to BUSY
 *	BUSY		by the thread that set it, to ON or OFF
 *
 * The program's own SIGPROF (setitimer's, or another profiler's) goes to its own handler.
 * Once installed, the runtime's handler stays: a signal of its timers may still be
 * pending in a thread that blocks it, and by default would end the process.
 *
 * Rejected: setitimer(ITIMER_PROF). It is one timer for the process, its signal often
 * goes to a thread that did not use the time, and the program may use it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <goro.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/config.h"
#include "platform/os.h"
#include "platform/own_fd.h"
#include "preempt/preempt.h"
#include "profile/profile.h"
#include "profile/profile_sample.h"
#include "sched/deadlock.h"
#include "sched/init.h"
#include "sched/runtime.h"
#include "preempt/sigchain.h"
#include "io/signal_notify.h"

#define HZ_DEFAULT 100
#define HZ_MAX 1000000		/* as Go's */

#define THREADS_LOOK_NS 100000000

enum state { OFF, BUSY, ON };
static uint32_t state;		/* enum state */

/* Set in state BUSY, constant while ON. */
static struct {
	int fd;
	bool own;		/* GORO_CPUPROFILE's: the program does not know fd */
	int64_t period;
	int64_t began_wall, began;
	pid_t pid;
} profile;

/* Shared with the collector. */
static struct note collector_note;
static uint32_t collectors;	/* 1 once the collector runs */
static uint32_t wanted;		/* 1: threads are to have timers */
static struct note done;	/* the collector has done what was wanted */

/* The collector's; once it has ended a profile, the stopping thread's. */
static struct sampled {
	int tid;		/* 0: free */
	int timer;
	uint32_t seen;		/* the last look that found the thread */
} sampled[THREADS_MAX];

static struct {
	bool untimed;		/* some thread could not get a timer */
	int slots;		/* of sampled, in use now or earlier */
	int cursor;		/* where slot_of begins its search */
	uint32_t look;		/* the number of the last look at the threads */
} c;

static int profile_threads(void)
{
	return (int)load_relaxed(&collectors);
}

DEADLOCK_WITNESS(profile, .threads = profile_threads);

/* -------------------------------------------------------------- the handler */

static void on_prof(int sig, siginfo_t *info, void *uc);
static void on_prof_direct(int sig, siginfo_t *info, void *uc);

static struct sigchain chain = { .sig = SIGPROF, .ours = on_prof };

/* As in preempt.c, but for plain threads, too. */
TOOL_RACY static void undo_interrupt(void *uc)
{
	const struct m *mp = m_self();

	if (!mp || load_relaxed(&mp->state) != M_RUNTIME)
		preempt_restart(mp, uc);
}

/* The signal is blocked until the handler returns; then it ends the process. */
static void default_action(void)
{
	os_action_set(SIGPROF, &(struct os_action){ .fn = SIG_DFL });
	os_tgkill(os_tid(), SIGPROF);
}

static void on_prof(int sig, siginfo_t *info, void *uc)
{
	int *errno_at = goro_errno();
	int saved = *errno_at;

	if (sample_on_signal(info, uc))
		undo_interrupt(uc);
	else if (!preempt_taken(sig, info) && !sigchain_give(&chain, info, uc) && sigchain_is_default(&chain))
		default_action();
	*errno_at = saved;
}

/* As on_preempt_direct: no instrumented code may run where TSan was interrupted. */
TOOL_RACY static void on_prof_direct(int sig, siginfo_t *info, void *uc)
{
	uintptr_t pc = REGS_UCONTEXT_PC(uc);

	if (!tool_is_inside(pc) && !preempt_is_delicate(pc))
		on_prof(sig, info, uc);
	else if (!sample_lose(info))
		on_prof(sig, info, uc);
	else if (preempt_is_delicate(pc))
		undo_interrupt(uc);
}

/* In a forked child SIGPROF is the program's alone. */
static void profile_cpu_forked(void)
{
	sigchain_remove(&chain);
}

HOOK(at_forked, FORKED_OTHER, profile_cpu_forked);

static void take_over(const struct os_action *program)
{
	if (tool_init())
		chain.direct = on_prof_direct;
	if (!chain.program || program)
		sigchain_install(&chain, program);
	else
		sigchain_renew(&chain);
}

/* ------------------------------------------------------------------ threads */

static struct sampled *slot_of(int tid)
{
	for (int i = 0; i < c.slots; i++) {
		struct sampled *s = &sampled[(c.cursor + i) % c.slots];

		if (s->tid == tid) {
			c.cursor = (int)(s - sampled) + 1;	/* the usual order */
			return s;
		}
	}
	return NULL;
}

static struct sampled *slot_free(void)
{
	for (int i = 0; i < c.slots; i++)
		if (sampled[i].tid == 0)
			return &sampled[i];
	return c.slots < THREADS_MAX ? &sampled[c.slots++] : NULL;
}

/* The first signal comes after a random part of a period: threads are not in step. */
static int64_t first_of(int tid)
{
	uint64_t random = (uint64_t)(os_now() ^ tid) * UINT64_C(0x9e3779b97f4a7c15) >> 32;

	return 1 + (int64_t)(random % (uint64_t)profile.period);
}

static void thread_begin(int tid)
{
	struct sampled *s = slot_free();
	int timer;

	if (!s) {
		c.untimed = true;
		return;
	}
	timer = os_cpu_timer_make(tid, SIGPROF, &samples, first_of(tid), profile.period);
	if (timer >= 0)
		*s = (struct sampled){ .tid = tid, .timer = timer, .seen = c.look };
	else	/* ESRCH and EINVAL mean that the thread has ended. */
		c.untimed |= timer != -ESRCH && timer != -EINVAL;
}

static void thread_seen(int tid, void *arg)
{
	struct sampled *s = slot_of(tid);

	if (s)
		s->seen = c.look;
	else if (tid != *(const int *)arg)
		thread_begin(tid);
}

static void thread_end(struct sampled *s)
{
	os_cpu_timer_end(s->timer);
	s->tid = 0;
}

/* Makes timers for new threads, and ends those of threads that are gone. */
static void look_at_threads(void)
{
	int self = os_tid();

	c.look++;
	if (os_thread_each(thread_seen, &self) < 0)
		return;
	for (int i = 0; i < c.slots; i++)
		if (sampled[i].tid && sampled[i].seen != c.look)
			thread_end(&sampled[i]);
}

/* ------------------------------------------------------------ the collector */

static void begin(void)
{
	c.untimed = false;
	sampling_begin(profile.period);
	look_at_threads();
}

static void end(void)
{
	sampling_end();
	for (int i = 0; i < c.slots; i++)
		if (sampled[i].tid)
			thread_end(&sampled[i]);
	c.slots = c.cursor = 0;
}

static void *collector_thread(void *arg)
{
	uint32_t on = 0;

	(void)arg;
	os_thread_name("goro-profile");
	for (;;) {
		/* acquire: profile; pairs with store_release in ask */
		if (on != load_acquire(&wanted)) {
			on = !on;
			on ? begin() : end();
			note_wake(&done);
		} else if (on) {
			sigchain_renew(&chain);
			look_at_threads();
		}
		if (on)
			note_sleep_for(&collector_note, THREADS_LOOK_NS);
		else
			note_sleep(&collector_note);
	}
	return NULL;
}

/* Has the collector begin or end, and waits. A thread that is no M stays none. */
static void ask(bool on)
{
	bool announce = m_self() != NULL;

	check(load_relaxed(&state) == BUSY && load_relaxed(&wanted) != on);
	/* release: pairs with load_acquire in collector_thread */
	store_release(&wanted, on);
	note_wake(&collector_note);
	if (announce)
		goro_syscall_enter();
	note_sleep(&done);
	if (announce)
		goro_syscall_exit();
}

static int collector_start(void)
{
	int error;

	check(load_relaxed(&state) == BUSY);
	if (load_relaxed(&collectors))
		return 0;
	error = m_thread_make_quiet(collector_thread, NULL);
	if (error)
		return -error;
	/* Counted once it exists: see messenger_start in signal.c. */
	store_relaxed(&collectors, 1);
	return 0;
}

/* Asks the collector to give a new M's thread a timer. */
static void profile_cpu_thread(void)
{
	if (load_relaxed(&wanted))
		note_wake(&collector_note);
}

HOOK(at_thread, 0, profile_cpu_thread);

/* ------------------------------------------------------------ start and stop */

static bool state_take(enum state from)
{
	uint32_t old = from;

	return cas_acqrel(&state, &old, BUSY);
}

/* release: what was done in BUSY; pairs with cas_acqrel in state_take */
static void state_leave(enum state to)
{
	store_release(&state, to);
}

/* The runtime has been started. */
static int start(int fd, int hz)
{
	int error;

	if (!state_take(OFF))
		return -EBUSY;
	error = collector_start();
	if (error) {
		state_leave(OFF);
		return error;
	}
	signal_share(SIGPROF, take_over);
	profile.fd = fd;
	profile.own = own_fd_is(fd, OWN_FD_PROFILE);
	profile.period = GORO_SECOND / hz;
	profile.began_wall = profile_wall_now();
	profile.began = os_now();
	profile.pid = getpid();
	ask(true);
	state_leave(ON);
	return 0;
}

int goro_profile_cpu_start(int fd, int hz)
{
	if (hz < 0 || hz > HZ_MAX)
		return -EINVAL;
	if (fcntl(fd, F_GETFD) < 0)
		return -EBADF;
	runtime_init();
	return start(fd, hz ? hz : HZ_DEFAULT);
}

/* The collector has ended the profile, so c and samples are the caller's. */
static int encode(struct bytes *out)
{
	const struct pprof_kind kind = {
		.type = { { "samples", "count" }, { "cpu", "nanoseconds" } }, .types = 2,
		.period_type = { "cpu", "nanoseconds" }, .period = profile.period,
	};
	int64_t lost = (int64_t)(samples.lost + samples.table.lost);
	struct pprof b;

	check(load_relaxed(&state) == BUSY && !load_relaxed(&wanted));
	pprof_begin(&b, &kind);
	pprof_time(&b, profile.began_wall, os_now() - profile.began);
	profile_add_table(&b, &samples.table);
	pprof_sample_named(&b, "lost_samples", (const int64_t[]){ lost, lost * profile.period });
	if (samples.lost)
		pprof_comment(&b, "some samples are lost: threads waited too long to count them");
	if (samples.table.lost)
		pprof_comment(&b, "some samples are lost: too many different stacks");
	if (c.untimed)
		pprof_comment(&b, "some threads could not be given a timer, and are not in here");
	return pprof_end(&b, out);
}

/* Stops a profile; *fd is where it was to be written to. */
static int stop(struct bytes *out, int *fd)
{
	int error;

	if (!state_take(ON))
		return -EINVAL;
	ask(false);
	error = encode(out);
	profile_table_free(&samples.table);
	*fd = profile.own && !own_fd_is(profile.fd, OWN_FD_PROFILE) ? -1 : profile.fd;
	state_leave(OFF);
	return error;
}

void goro_profile_cpu_stop(void)
{
	struct bytes bytes;
	int fd;

	if (stop(&bytes, &fd) == 0)
		profile_send(&bytes, fd);
}

int profile_cpu_begin(void)
{
	runtime_init();
	return start(-1, HZ_DEFAULT);
}

int profile_cpu_end(struct bytes *out)
{
	int fd;

	return stop(out, &fd);
}

/* ------------------------------------------------------------- GORO_CPUPROFILE */

/* A forked child has neither timers nor samples, and the file is its parent's. */
static void at_exit(void)
{
	if (load_relaxed(&state) == ON && profile.pid == getpid())
		goro_profile_cpu_stop();
}

/* A profile of the whole run, if GORO_CPUPROFILE names a file for it. */
static void profile_cpu_from_environment(void)
{
	int fd = own_fd_take(environment_open("GORO_CPUPROFILE"), OWN_FD_PROFILE), error;

	if (fd < 0)
		return;
	error = start(fd, HZ_DEFAULT);
	if (error) {
		environment_complain("GORO_CPUPROFILE", strerror(-error));
		close(fd);
		return;
	}
	atexit(at_exit);
}

HOOK(at_started, 0, profile_cpu_from_environment);

/*
 * profile_cpu.c - where the CPU time goes.
 *
 * Every thread of the process has a timer on its own CPU time, whose signal (SIGPROF)
 * comes to that thread, after each period of time that it has run: as in Go, which does
 * the same on Linux. Its handler takes a sample (profile_sample.c). A thread that sleeps
 * uses no CPU time and gets no signal, so no call of the program's is interrupted that is
 * asleep. One may be hit on its way to sleep; what the kernel does not restart by itself
 * is restarted as preempt.c does it.
 *
 * The collector is a thread of the runtime's, made with the first profile. It empties the
 * rings ten times a second into a table of stacks; it also looks for threads that have
 * come: at once when one becomes an M, at the next round when the number of threads has
 * changed, and once a second in any case. So a plain thread that has never called us is
 * seen too. Only one that blocks SIGPROF is not.
 *
 * Who starts and who stops a profile asks the collector and waits for its answer, so that
 * threads, timers and table have one owner, and it is no M: it may take as long as it
 * likes. The profile is made and written by who stops it.
 *
 *	state		who may change it
 *	OFF		anybody, to BUSY
 *	BUSY		who made it so: to ON or OFF
 *	ON		anybody, to BUSY
 *
 * The program's own SIGPROF (setitimer, or another profiler's timers) goes to its own
 * handler, as if we were not there. Our handler stays for good once it is installed: a
 * signal of ours may still be on its way to a thread that has it blocked, and by default it would
 * end the process.
 *
 * Rejected: setitimer(ITIMER_PROF), one timer for the process. Its signal goes to
 * any thread, often not the one that used the time, and there is but one: the program's.
 */
#define _GNU_SOURCE
#include "profile_cpu.h"

#include <errno.h>
#include <fcntl.h>
#include <goro.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "environment.h"
#include "os.h"
#include "own_fd.h"
#include "preempt.h"
#include "profile.h"
#include "profile_sample.h"
#include "runtime.h"
#include "sigchain.h"
#include "signal_notify.h"
#include "text.h"

#define HZ_DEFAULT 100
#define HZ_MAX 1000000		/* as Go's */

#define COLLECT_NS 100000000
#define ROUNDS_BETWEEN_LOOKS 10

/* Different stacks: some hundred thousand. */
#define TABLE_BYTES_MAX (64 << 20)

enum state { OFF, BUSY, ON };
static uint32_t state;		/* enum state */

uint32_t profile_cpu_on;

/* Set by who starts one, constant while it is ON. */
static struct {
	int fd;
	bool own;		/* GORO_CPUPROFILE's, which the program does not know */
	int64_t period;
	int64_t began_wall, began;
	pid_t pid;
} profile;

/* Between it and the collector. */
static struct note collector_note;
static uint32_t collectors;	/* 1 once it runs */
static uint32_t asked, answered;	/* how often it was told to begin or to end */
static uint32_t wanted;		/* that it is to collect */

/* The collector's; everybody's who finds it done. */
static struct {
	struct profile_table table;
	uint64_t lost;		/* periods that there was no room for in a ring */
	uint64_t untimed;	/* threads that there was no timer for */
	int slots;		/* of sampled, in use or once so */
	int cursor;		/* where the next is looked for */
	uint32_t look;		/* the number of the last look at the threads .. */
	int threads;		/* .. how many there were .. */
	int rounds;		/* .. and how long ago that is */
} c = { .table.bytes_max = TABLE_BYTES_MAX };

int profile_threads(void)
{
	return (int)load_relaxed(&collectors);
}

/* -------------------------------------------------------------- the handler */

static void on_prof(int sig, siginfo_t *info, void *uc);
static void on_prof_direct(int sig, siginfo_t *info, void *uc);

static struct sigchain chain = { .sig = SIGPROF, .ours = on_prof };

/* As preempt.c; a plain thread's calls are restarted, too. */
TOOL_RACY static void undo_interrupt(void *uc)
{
	const struct m *mp = m_self();

	if (!mp || load_relaxed(&mp->state) != M_RUNTIME)
		preempt_restart(mp, uc);
}

/* Blocked until we return, when it ends the process. */
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
	else if (!signal_take(sig) && !sigchain_give(&chain, info, uc) && sigchain_is_default(&chain))
		default_action();
	*errno_at = saved;
}

/* As on_preempt_direct: nothing that TSan sees may run where TSan was interrupted. */
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

void profile_cpu_forked(void)
{
	sigchain_remove(&chain);
}

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
			c.cursor = (int)(s - sampled) + 1;	/* they come in the same order */
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

/* The first signal after a part of a period, so that threads started together are not
 * in step. */
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
		c.untimed++;
		return;
	}
	sampled_skip(s);
	s->stack_lo = s->stack_hi = 0;
	s->stack_looks = 0;
	s->seen = c.look;
	/* release: the slot is prepared; pairs with load_acquire in is_current */
	store_release(&s->tid, tid);
	timer = os_cpu_timer_make(tid, SIGPROF, s, first_of(tid), profile.period);
	if (timer >= 0) {
		s->timer = timer;
		return;
	}
	store_relaxed(&s->tid, 0);
	c.untimed += timer != -ESRCH && timer != -EINVAL;	/* they mean that it is gone */
}

static void thread_seen(int tid, void *arg)
{
	struct sampled *s = slot_of(tid);

	if (s)
		s->seen = c.look;
	else if (tid != *(const int *)arg)
		thread_begin(tid);
}

static void add_sample(const struct sample *x)
{
	struct profile_key key = { .pc = x->bt.pc, .n = x->bt.n, .name = x->name, .id = x->goroutine };

	/* Short-lived goroutines, each with a record of its own, are not to fill it. */
	if (c.table.bytes > TABLE_BYTES_MAX / 2)
		key.id = 0;
	profile_table_add(&c.table, &key, x->times, x->times * profile.period);
}

static void collect_from(struct sampled *s)
{
	struct sample sample;

	while (sampled_take(s, &sample))
		add_sample(&sample);
}

static void thread_end(struct sampled *s)
{
	os_cpu_timer_end(s->timer);
	collect_from(s);
	c.lost += load_relaxed(&s->lost);
	store_relaxed(&s->tid, 0);
}

/* Those that have come get timers, those that are gone lose theirs. */
static void look_at_threads(void)
{
	int self = os_tid();

	c.look++;
	c.rounds = 0;
	c.untimed = 0;
	c.threads = os_threads();
	if (os_thread_each(thread_seen, &self) < 0)
		return;
	for (int i = 0; i < c.slots; i++)
		if (sampled[i].tid && sampled[i].seen != c.look)
			thread_end(&sampled[i]);
}

/* ------------------------------------------------------------ the collector */

static void collect(void)
{
	for (int i = 0; i < c.slots; i++)
		if (sampled[i].tid)
			collect_from(&sampled[i]);
}

static void begin(void)
{
	profile_table_free(&c.table);
	c.lost = 0;
	sampling_switch(true);
	look_at_threads();
	store_relaxed(&profile_cpu_on, 1);
}

static void end(void)
{
	store_relaxed(&profile_cpu_on, 0);
	sampling_switch(false);
	for (int i = 0; i < c.slots; i++)
		if (sampled[i].tid)
			thread_end(&sampled[i]);
	sampled_give_back(c.slots);
	c.slots = c.cursor = 0;
}

/* woken: a thread has come. */
static void go_on(bool woken)
{
	collect();
	sigchain_renew(&chain);
	if (woken || ++c.rounds >= ROUNDS_BETWEEN_LOOKS || os_threads() != c.threads)
		look_at_threads();
}

static void answer(uint32_t number)
{
	/* release: what was done; pairs with load_acquire in ask */
	store_release(&answered, number);
	os_futex_wake(&answered, 1);
}

static void *collector_thread(void *arg)
{
	bool on = false, woken = true;

	(void)arg;
	os_thread_name("goro-profile");
	for (;;) {
		/* acquire: wanted; pairs with store_release in ask */
		uint32_t number = load_acquire(&asked);

		if (number != answered) {
			on = load_relaxed(&wanted);
			on ? begin() : end();
			answer(number);
		} else if (on) {
			go_on(woken);
		}
		if (on)
			woken = note_sleep_for(&collector_note, COLLECT_NS);
		else
			note_sleep(&collector_note);
	}
	return NULL;
}

/* In state BUSY. Has the collector begin or end, and waits until it has. A thread that is
 * no M yet need not become one for that. */
static void ask(bool on)
{
	bool announce = m_self() != NULL;
	uint32_t number = asked + 1, done;

	store_relaxed(&wanted, on);
	/* release: pairs with load_acquire in collector_thread */
	store_release(&asked, number);
	note_wake(&collector_note);
	if (announce)
		goro_syscall_enter();
	/* acquire: pairs with store_release in answer */
	while ((done = load_acquire(&answered)) != number)
		os_futex_wait(&answered, done, -1);
	if (announce)
		goro_syscall_exit();
}

/* In state BUSY. */
static int collector_start(void)
{
	int error;

	if (load_relaxed(&collectors))
		return 0;
	if (!sampled_init())
		return -ENOMEM;
	error = m_thread_make_quiet(collector_thread, NULL);
	if (error)
		return -error;
	/* Counted when it is there: see messenger_start in signal.c. */
	store_relaxed(&collectors, 1);
	return 0;
}

void profile_cpu_thread(void)
{
	note_wake(&collector_note);
}

/* ------------------------------------------------------------ start and stop */

static int64_t wall_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * GORO_SECOND + now.tv_nsec;
}

static bool state_take(enum state from)
{
	uint32_t old = from;

	return cas_acqrel(&state, &old, BUSY);
}

/* release: all that was done in BUSY; pairs with cas_acqrel in state_take */
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
	profile.own = false;
	profile.period = GORO_SECOND / hz;
	profile.began_wall = wall_now();
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

static void add_comment(struct pprof *b, uint64_t n, const char *what)
{
	char buf[128];
	struct text t = text_make(buf, sizeof buf);

	if (n == 0)
		return;
	text_add_decimal(&t, n > UINT32_MAX ? UINT32_MAX : (unsigned)n);
	text_add(&t, what);
	pprof_comment(b, buf);
}

/* The collector is done: what it has is ours. */
static int encode(struct bytes *out)
{
	const struct pprof_kind kind = {
		.type = { { "samples", "count" }, { "cpu", "nanoseconds" } }, .types = 2,
		.period_type = { "cpu", "nanoseconds" }, .period = profile.period,
	};
	int64_t lost = (int64_t)(c.lost + c.table.lost);
	struct pprof b;

	pprof_begin(&b, &kind);
	pprof_time(&b, profile.began_wall, os_now() - profile.began);
	profile_add_table(&b, &c.table);
	pprof_sample_named(&b, "lost_samples", (const int64_t[]){ lost, lost * profile.period });
	add_comment(&b, c.lost, " samples lost: they came faster than they were collected");
	add_comment(&b, c.table.lost, " samples lost: too many different stacks");
	add_comment(&b, c.untimed, " threads could not be given a timer, and are not in here");
	return pprof_end(&b, out);
}

void goro_profile_cpu_stop(void)
{
	struct bytes bytes;
	int error, fd;

	if (!state_take(ON))
		return;
	ask(false);
	error = encode(&bytes);
	profile_table_free(&c.table);
	fd = profile.fd;
	if (!error && (!profile.own || own_fd_is(fd, OWN_FD_PROFILE)))
		profile_send(&bytes, fd);
	state_leave(OFF);
}

/* ------------------------------------------------------------- GORO_CPUPROFILE */

/* A child that fork made has neither timers nor samples; the file is its parent's. */
static void at_exit(void)
{
	if (load_relaxed(&state) == ON && profile.pid == getpid())
		goro_profile_cpu_stop();
}

void profile_cpu_from_environment(void)
{
	int fd = own_fd_take(environment_open("GORO_CPUPROFILE"), OWN_FD_PROFILE), error;

	if (fd < 0)
		return;
	error = start(fd, HZ_DEFAULT);
	profile.own = true;
	if (error) {
		environment_complain("GORO_CPUPROFILE", strerror(-error));
		close(fd);
		return;
	}
	atexit(at_exit);
}

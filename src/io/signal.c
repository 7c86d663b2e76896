/*
 * signal.c - signals as values on channels, as Go's os/signal.
 *
 * A subscription is a channel and a set of signals. While any subscription wants a
 * signal, its handler is ours: it counts the signal as pending and wakes the messenger, a
 * thread made with the first subscription, which sends the signal's number on the
 * channels of all that want it. A channel without room misses the signal: the messenger
 * never waits. It is no M with a P, so that it works when every P is busy. While a signal
 * is subscribed to there is no deadlock: the signal may come any time.
 *
 * The messenger blocks all signals but those that are wanted. These it takes itself if
 * every other thread blocks them, as in a program that blocks a signal before it starts
 * anything else and means to wait for it.
 *
 * Stopping
 *
 * A signal that comes while the last subscription to it is stopped is either delivered
 * before the stop returns, or does what it would have done without any subscription (such
 * as to end the process). It is not lost in between.
 *
 *	handler                         stop
 *	handlers++                      wanted &= ~signal
 *	read wanted                     put back the old action
 *	 yes: pending++                 wait for handlers == 0
 *	 no: send it again              deliver what is pending
 *	handlers--                      take the channel off the list
 *
 * Both sides store before they load, sequentially consistently. A handler that finds its
 * signal not wanted any more was overtaken by a stop, whose thread takes no signals
 * meanwhile. So when the signal comes again it meets the old action, or soon will.
 *
 * Signals of our own
 *
 * The runtime has handlers for the signals that are faults unless a process sent them.
 * Ours goes in front of those, and faults go straight through. SIG_PREEMPT, and SIGPROF
 * once there was a CPU profile, keep the handlers of preempt.c and profile_cpu.c, which
 * ask here about signals that are not their own.
 *
 * Signals are counted, so that all real-time ones arrive, which the kernel does not
 * merge. The order of different signals is not kept, as in Go.
 *
 * Rejected: signalfd, or sigwait in the messenger. Both need the signals blocked in all
 * threads, and children would be started with them blocked.
 */
#define _GNU_SOURCE
#include "io/signal_notify.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "sync/chan.h"
#include "platform/os.h"
#include "base/throw.h"
#include "preempt/preempt.h"
#include "sched/alone.h"
#include "sched/deadlock.h"
#include "sched/init.h"
#include "sched/runtime.h"
#include "preempt/sigchain.h"

/* Signals that a channel of goro_signal_notify holds: each number twice. */
#define SIGNAL_CHAN_CAP 128

#define SIGNALS 64		/* 1 to 64, as the kernel counts them */
#define BIT(sig) (UINT64_C(1) << ((sig) - 1))

/* Signals that are faults, if the kernel sent them. */
static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };

struct subscription {
	struct subscription *next;
	goro_chan *chan;	/* with a reference */
	uint64_t set;
};

typedef void action_fn(int, siginfo_t *, void *);

/* Held by a notify or a stop; guards the following. */
static goro_mutex one_at_a_time;
static struct os_action before[SIGNALS + 1];	/* the program's actions */
static uint64_t shared = BIT(SIG_PREEMPT);	/* handled by others, which ask here */

/* Guards the list of subscriptions against the messenger. */
static struct lock lock = LOCK_INIT(RANK_SIGNAL);
static struct subscription *subscriptions;

/* Atomic, for the handlers. */
static uint64_t wanted;			/* the signals with subscribers */
static uint32_t handlers;		/* handlers that may yet make a signal pending */
static uint32_t pending[SIGNALS + 1];
static action_fn *in_front_of[SIGNALS + 1];	/* the runtime's handlers of faults */

/* The messenger's. */
static struct note messenger_note;
static uint32_t messengers;		/* 1 once it runs */
static uint64_t takes;			/* the signals that it does not block */
static uint32_t takes_asked, takes_done;	/* changes of takes */

static int signal_threads(void)
{
	return (int)load_relaxed(&messengers);
}

static bool signal_expected(void)
{
	return load_relaxed(&wanted) != 0;
}

TOOL_RACY static bool is_fault(int sig)
{
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
		if (faults[i] == sig)
			return true;
	return false;
}

/* libc's own signals lie between the standard and the real-time ones. */
static bool is_the_programs(int sig)
{
	return sig < 32 || sig >= SIGRTMIN;
}

/* Whether the program has a handler of its own for any signal that may come from outside:
 * any but the faults. Makes some 60 system calls. */
static bool signal_may_be_awaited(void)
{
	for (int sig = 1; sig <= SIGNALS; sig++)
		if (is_the_programs(sig) && !is_fault(sig) && sigchain_program_handles(sig))
			return true;
	return false;
}

DEADLOCK_WITNESS(signals, .threads = signal_threads, .expects = signal_expected,
                 .may_expect = signal_may_be_awaited);

/* ------------------------------------------------------------- the handler */

/* TOOL_RACY: it may interrupt TSan itself. */

/* In a handler: makes the signal pending; false: it is not wanted. */
TOOL_RACY static bool signal_take(int sig, const siginfo_t *info)
{
	bool yes;

	(void)info;
	fetch_add_seqcst(&handlers, 1);
	yes = load_seqcst(&wanted) & BIT(sig);
	if (yes)
		fetch_add_seqcst(&pending[sig], 1);
	fetch_add_seqcst(&handlers, (uint32_t)-1);
	if (yes)
		note_wake(&messenger_note);
	return yes;
}
PREEMPT_GUEST(signals, .takes = signal_take, .order = GUEST_SIGNALS);

TOOL_RACY static void pass_fault(int sig, siginfo_t *info, void *uc)
{
	action_fn *next = load_relaxed(&in_front_of[sig]);

	if (next)
		next(sig, info, uc);
	else
		os_action_set(sig, &(struct os_action){ .fn = SIG_DFL });
}

TOOL_RACY static void on_signal(int sig, siginfo_t *info, void *uc)
{
	if (is_fault(sig) && info->si_code > 0)
		pass_fault(sig, info, uc);
	else if (!signal_take(sig, info))
		os_tgkill(os_tid(), sig);	/* blocked until we return */
}

/* ------------------------------------------------------------ the messenger */

/* Sends, unless the program has closed the channel. Lock held: the subscription stays. */
static void send_to(struct m *mp, goro_chan *c, int sig)
{
	struct g *peer = NULL;

	check(lock_is_held(&lock));
	lock_acquire(&c->lock);
	if (!c->closed)
		chan_send_now(c, &sig, &peer);
	lock_release(&c->lock);
	if (peer)
		g_ready(mp, peer);
}

static void deliver(struct m *mp)
{
	lock_acquire(&lock);
	for (int sig = 1; sig <= SIGNALS; sig++)
		for (uint32_t n = exchange_acqrel(&pending[sig], 0); n > 0; n--)
			for (struct subscription *s = subscriptions; s; s = s->next)
				if (s->set & BIT(sig))
					send_to(mp, s->chan, sig);
	lock_release(&lock);
}

static void take_asked(void)
{
	/* acquire: takes; pairs with store_release in messenger_takes */
	uint32_t asked = load_acquire(&takes_asked);
	uint64_t set = load_relaxed(&takes);
	sigset_t mask;

	os_all_signals(&mask);
	for (int sig = 1; sig <= SIGNALS; sig++)
		if (set & BIT(sig))
			sigdelset(&mask, sig);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	/* release: the mask is set; pairs with load_acquire in messenger_takes */
	store_release(&takes_done, asked);
	os_futex_wake(&takes_done, 1);
}

static void *messenger_thread(void *arg)
{
	struct m *mp = foreign_attach(M_STACK_BYTES);

	(void)arg;
	alone_end(mp);
	os_thread_name("goro-signal");
	for (;;) {
		if (load_relaxed(&takes_asked) != takes_done)
			take_asked();
		deliver(mp);
		note_sleep(&messenger_note);
	}
	return NULL;
}

/* Makes the messenger take these signals and no others. Waits until it does. */
static void messenger_takes(uint64_t set)
{
	uint32_t asked = takes_asked + 1, done;

	store_relaxed(&takes, set);
	/* release: pairs with load_acquire in take_asked */
	store_release(&takes_asked, asked);
	note_wake(&messenger_note);
	goro_syscall_enter();
	/* acquire: pairs with store_release in take_asked */
	while ((done = load_acquire(&takes_done)) != asked)
		os_futex_wait(&takes_done, done, -1);
	goro_syscall_exit();
}

static void block_all(sigset_t *old)
{
	sigset_t all;

	os_all_signals(&all);
	pthread_sigmask(SIG_SETMASK, &all, old);
}

static bool messenger_start(void)
{
	if (messengers)
		return true;
	if (m_thread_make_quiet(messenger_thread, NULL) != 0)
		return false;
	/* Until it is counted the deadlock check sees one thread too many: no report. */
	store_relaxed(&messengers, 1);
	return true;
}

/* ---------------------------------------------------------------- handling */

/* Installs our handler, which blocks no fault: one inside a handler must come at once. */
static void install(int sig)
{
	uint64_t except = 0;
	void *fn;

	if (shared & BIT(sig))
		return;
	os_action_get(sig, &before[sig]);
	fn = before[sig].fn;
	if (is_fault(sig))
		store_relaxed(&in_front_of[sig],
		              fn == SIG_DFL || fn == SIG_IGN ? NULL : (action_fn *)fn);
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
		except |= BIT(faults[i]);
	os_action_install(sig, on_signal, except);
}

/* Adds set to the wanted signals. */
static void want(uint64_t set)
{
	uint64_t all = load_relaxed(&wanted) | set, news = all & ~load_relaxed(&wanted);

	store_seqcst(&wanted, all);
	for (int sig = 1; sig <= SIGNALS; sig++)
		if (news & BIT(sig))
			install(sig);
	if (news)
		messenger_takes(all);
}

/* The reverse of want: only what the others want is left. First for the messenger, so
 * that a signal which all other threads block stays blocked. Then, with signals blocked
 * here, for the handlers: see "Stopping". */
static void unwant(const struct subscription *stopped)
{
	uint64_t last, left = 0;
	sigset_t old;

	for (const struct subscription *s = subscriptions; s; s = s->next)
		if (s != stopped)
			left |= s->set;
	last = load_relaxed(&wanted) & ~left;
	if (!last)
		return;
	messenger_takes(left);
	block_all(&old);
	store_seqcst(&wanted, left);
	for (int sig = 1; sig <= SIGNALS; sig++)
		if (last & BIT(sig) & ~shared)
			os_action_set(sig, &before[sig]);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* A child has no messenger: signals do what they did before they were subscribed to. */
static void signal_forked(void)
{
	for (int sig = 1; sig <= SIGNALS; sig++)
		if (wanted & BIT(sig) & ~shared)
			os_action_set(sig, &before[sig]);
	store_relaxed(&wanted, 0);
}

HOOK(at_forked, FORKED_OTHER, signal_forked);

void signal_share(int sig, void (*take_over)(const struct os_action *program))
{
	goro_mutex_lock(&one_at_a_time);
	take_over(wanted & BIT(sig) && !(shared & BIT(sig)) ? &before[sig] : NULL);
	shared |= BIT(sig);
	goro_mutex_unlock(&one_at_a_time);
}

/* The signals that can be subscribed to: not SIGKILL, SIGSTOP and libc's own. */
static uint64_t possible_set(const int *signals, size_t n)
{
	uint64_t all = 0, set = 0;

	for (int sig = 1; sig <= SIGNALS; sig++)
		if (is_the_programs(sig) && sig != SIGKILL && sig != SIGSTOP)
			all |= BIT(sig);
	if (n == 0)
		return all;
	for (size_t i = 0; i < n; i++)
		if (signals[i] >= 1 && signals[i] <= SIGNALS)
			set |= BIT(signals[i]);
	return set & all;
}

/* ------------------------------------------------------------------ public */

goro_chan *goro_signal_notify(const int *signals, size_t n)
{
	struct subscription *s = malloc(sizeof *s);
	goro_chan *c = goro_chan_of(int, SIGNAL_CHAN_CAP);
	struct m *mp;

	runtime_init();
	goro_mutex_lock(&one_at_a_time);
	if (!s || !c || !messenger_start()) {
		goro_mutex_unlock(&one_at_a_time);
		free(s);
		goro_chan_unref(c);
		return NULL;
	}
	*s = (struct subscription){ .chan = goro_chan_ref(c), .set = possible_set(signals, n) };
	mp = rt_enter_lock(&lock);
	s->next = subscriptions;
	subscriptions = s;
	rt_unlock_exit(mp, &lock);
	want(s->set);
	goro_mutex_unlock(&one_at_a_time);
	return c;
}

static struct subscription *find(const goro_chan *c)
{
	struct subscription *s = subscriptions;	/* changed under one_at_a_time */

	while (s && s->chan != c)
		s = s->next;
	return s;
}

/* Delivers what is pending, then takes s off the list. */
static void end(struct subscription *s)
{
	struct subscription **at = &subscriptions;
	struct m *mp;

	while (load_seqcst(&handlers) != 0)
		os_yield();
	mp = rt_enter();
	deliver(mp);
	lock_acquire(&lock);
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	lock_release(&lock);
	rt_exit(mp);
}

void goro_signal_stop(goro_chan *c)
{
	struct subscription *s;

	goro_mutex_lock(&one_at_a_time);
	s = find(c);
	if (s) {
		unwant(s);
		end(s);
	}
	goro_mutex_unlock(&one_at_a_time);
	if (s) {
		goro_chan_unref(s->chan);
		free(s);
	}
}

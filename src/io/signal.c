/*
 * signal.c - signals as values on channels, as Go's os/signal.
 *
 * A subscription is a channel and a set of signals. While any wants a signal, its
 * handler is ours: it counts the signal as pending and wakes the messenger, a
 * thread that is made with the first subscription, and which sends the signal's
 * number on the channels of all who want it. A channel without room misses it:
 * nobody is waited for.
 *
 * The messenger is no M with a P, so that it works when every P is busy; nor is
 * it a stranger to the deadlock check, which counts it (signal_threads). While a
 * signal is subscribed to there is no deadlock: it may come any time.
 *
 * The messenger blocks all signals but those that are wanted. These it takes
 * itself, if every other thread has them blocked, as where a program blocks a
 * signal before it starts anything else and means to have it waited for.
 *
 * Stopping
 *
 * A signal that comes while the last subscription to it is stopped is either
 * delivered before the stop returns, or does what it would have done without any
 * subscription (such as to end the process); it is not lost in between.
 *
 *	handler                         stop
 *	handlers++                      wanted &= ~signal
 *	read wanted                     put back the old action
 *	 yes: pending++                 wait for handlers == 0
 *	 no: send it again              deliver what is pending
 *	handlers--                      take the channel off the list
 *
 * Both sides store before they load, sequentially consistently. A handler that
 * finds its signal not wanted any more has been overtaken by a stop, whose thread
 * takes no signals meanwhile; so when the signal comes again it meets the action
 * of before, or soon will.
 *
 * Signals of our own
 *
 * The signals that are faults unless somebody sent them have handlers of the
 * runtime's. Ours goes in front of those, and faults go straight through. Of
 * SIG_PREEMPT, and of SIGPROF once there was a CPU profile, the handler stays that of
 * preempt.c and profile_cpu.c, who ask here for those that are not their own.
 *
 * Why counts: kernels merge signals of the same number that are pending, and Go
 * merges more of them. With counts none is merged here, and those for which the
 * kernel promises not to (the real-time ones) all arrive. The order of different
 * signals is not kept, as in Go.
 *
 * Rejected: signalfd, or sigwait in the messenger. Both need the signals blocked
 * in all threads, those of the program's libraries too, and children would be
 * started with them blocked.
 */
#define _GNU_SOURCE
#include "signal_notify.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "chan.h"
#include "fault.h"
#include "os.h"
#include "runtime.h"
#include "sigchain.h"

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

/* One notify or stop at a time; guards what is only theirs. */
static goro_mutex one_at_a_time;
static uint32_t subscribers[SIGNALS + 1];
static struct os_action before[SIGNALS + 1];	/* what the program had */
static uint64_t shared = BIT(SIG_PREEMPT);	/* handled by others, who ask here */

/* The messenger, and who reads its list: under the lock. */
static struct lock lock = LOCK_INIT(RANK_SIGNAL);
static struct subscription *subscriptions;

/* Atomic: the handlers'. */
static uint64_t wanted;			/* the signals with subscribers */
static uint32_t handlers;		/* that may yet make one pending */
static uint32_t pending[SIGNALS + 1];
static action_fn *in_front_of[SIGNALS + 1];	/* of faults */

/* The messenger's. */
static struct note messenger_note;
static uint32_t messengers;		/* 1 once it runs */
static uint64_t takes;			/* the signals that it does not block .. */
static uint32_t takes_asked, takes_done;	/* .. and how often that was changed */

int signal_threads(void)
{
	return (int)load_relaxed(&messengers);
}

bool signal_expected(void)
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

/* libc's own have numbers between the two kinds. */
static bool is_the_programs(int sig)
{
	return sig < 32 || sig >= SIGRTMIN;
}

bool signal_may_be_awaited(void)
{
	for (int sig = 1; sig <= SIGNALS; sig++)
		if (is_the_programs(sig) && !is_fault(sig) && !fault_is_ours(sig) &&
		    sigchain_program_handles(sig))
			return true;
	return false;
}

/* ------------------------------------------------------------- the handler */

/* TOOL_RACY: it may interrupt TSan itself. */

TOOL_RACY bool signal_take(int sig)
{
	bool yes;

	fetch_add_seqcst(&handlers, 1);
	yes = load_seqcst(&wanted) & BIT(sig);
	if (yes)
		fetch_add_seqcst(&pending[sig], 1);
	fetch_add_seqcst(&handlers, (uint32_t)-1);
	if (yes)
		note_wake(&messenger_note);
	return yes;
}

TOOL_RACY static void pass_fault(int sig, siginfo_t *info, void *uc)
{
	action_fn *next = load_relaxed(&in_front_of[sig]);

	if (next)
		next(sig, info, uc);
	else
		os_action_set(sig, &(struct os_action){ .fn = SIG_DFL });	/* faults again */
}

TOOL_RACY static void on_signal(int sig, siginfo_t *info, void *uc)
{
	if (is_fault(sig) && info->si_code > 0)
		pass_fault(sig, info, uc);
	else if (!signal_take(sig))
		os_tgkill(os_tid(), sig);	/* blocked until we return */
}

/* ------------------------------------------------------------ the messenger */

/* Lock held, as long as the subscription is on the list; a channel that the
 * program has closed takes no more. */
static void send_to(struct m *mp, goro_chan *c, int sig)
{
	struct g *peer = NULL;

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

	sigfillset(&mask);
	fault_unmask(&mask);
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
	os_thread_name("goro-signal");
	for (;;) {
		if (load_relaxed(&takes_asked) != takes_done)
			take_asked();
		deliver(mp);
		note_sleep(&messenger_note);
	}
	return NULL;
}

/* The messenger takes these signals from now on, and no others. */
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

	sigfillset(&all);
	fault_unmask(&all);
	pthread_sigmask(SIG_SETMASK, &all, old);
}

static bool messenger_start(void)
{
	if (messengers)
		return true;
	if (m_thread_make_quiet(messenger_thread, NULL) != 0)
		return false;
	/* Counted when it is there: until then one thread too many is seen, and
	 * nothing is said of deadlocks. */
	store_relaxed(&messengers, 1);
	return true;
}

/* ---------------------------------------------------------------- handling */

/* A fault inside a handler must come, not wait. */
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

/* Adds the signals of set that nobody else wants to those that come to us. */
static void want(uint64_t set)
{
	uint64_t all = load_relaxed(&wanted) | set, news = all & ~load_relaxed(&wanted);

	store_seqcst(&wanted, all);
	for (int sig = 1; sig <= SIGNALS; sig++) {
		if (set & BIT(sig))
			subscribers[sig]++;
		if (news & BIT(sig))
			install(sig);
	}
	if (news)
		messenger_takes(all);
}

/* The reverse. The messenger first: a signal that all others have blocked stays
 * so. Then, taking no signals here, the rest: see "Stopping". */
static void unwant(uint64_t set)
{
	uint64_t last = 0, left;
	sigset_t old;

	for (int sig = 1; sig <= SIGNALS; sig++)
		if ((set & BIT(sig)) && --subscribers[sig] == 0)
			last |= BIT(sig);
	if (!last)
		return;
	left = load_relaxed(&wanted) & ~last;
	messenger_takes(left);
	block_all(&old);
	store_seqcst(&wanted, left);
	for (int sig = 1; sig <= SIGNALS; sig++)
		if (last & BIT(sig) & ~shared)
			os_action_set(sig, &before[sig]);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void signal_forked(void)
{
	for (int sig = 1; sig <= SIGNALS; sig++)
		if (wanted & BIT(sig) & ~shared)
			os_action_set(sig, &before[sig]);
	store_relaxed(&wanted, 0);
}

void signal_share(int sig, void (*take_over)(const struct os_action *program))
{
	goro_mutex_lock(&one_at_a_time);
	take_over(subscribers[sig] && !(shared & BIT(sig)) ? &before[sig] : NULL);
	shared |= BIT(sig);
	goro_mutex_unlock(&one_at_a_time);
}

/* Those of the signals that can be had: not SIGKILL, SIGSTOP and libc's own. */
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
	mp = rt_enter();
	lock_acquire(&lock);
	s->next = subscriptions;
	subscriptions = s;
	lock_release(&lock);
	rt_exit(mp);
	want(s->set);
	goro_mutex_unlock(&one_at_a_time);
	return c;
}

static struct subscription *find(const goro_chan *c)
{
	struct subscription *s = subscriptions;	/* changed one at a time */

	while (s && s->chan != c)
		s = s->next;
	return s;
}

/* What is pending is delivered, then s is taken off the list. */
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
		unwant(s->set);
		end(s);
	}
	goro_mutex_unlock(&one_at_a_time);
	if (s) {
		goro_chan_unref(s->chan);
		free(s);
	}
}

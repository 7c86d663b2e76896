/*
 * sigchain.c - a signal that both the runtime and the program use.
 *
 * Our handler stands in front of the program's and calls it for signals that the runtime
 * did not send. A handler that the program installs later takes our place, and gets our
 * signals, until the next sigchain_renew puts ours in front again.
 */
#include "preempt/sigchain.h"

#include "platform/atomic.h"
#include "base/mem.h"
#include "platform/os.h"
#include "base/throw.h"

/* Our handler's frame, and the context that it was given, while the program's handler
 * runs on this thread. They stay when that handler leaves by siglongjmp. If the program's
 * handler calls ours, it passes on the same context, deeper on the same stack. The next
 * signal has another context, or is not deeper. */
static __thread struct {
	const void *uc;
	uintptr_t frame;
} giving;

static const struct sigchain *in_front[_NSIG];	/* installed, by signal */

static bool is_handled(const struct sigaction *sa)
{
	return sa->sa_flags & SA_SIGINFO || (sa->sa_handler != SIG_DFL && sa->sa_handler != SIG_IGN);
}

bool sigchain_is_default(const struct sigchain *c)
{
	/* acquire: pairs with store_release in sigchain_install */
	const struct sigaction *sa = load_acquire(&c->program);

	return !(sa->sa_flags & SA_SIGINFO) && sa->sa_handler == SIG_DFL;
}

bool sigchain_give(const struct sigchain *c, siginfo_t *info, void *uc)
{
	/* acquire: pairs with store_release in sigchain_install */
	const struct sigaction *sa = load_acquire(&c->program);

	uintptr_t frame = (uintptr_t)__builtin_frame_address(0);

	check(load_relaxed(&in_front[c->sig]) == c);
	if ((giving.uc == uc && frame < giving.frame) || !is_handled(sa))
		return false;
	giving.uc = uc;
	giving.frame = frame;
	if (sa->sa_flags & SA_SIGINFO)
		sa->sa_sigaction(c->sig, info, uc);
	else
		sa->sa_handler(c->sig);
	giving.uc = NULL;
	return true;
}

static void note_program(struct sigchain *c, const struct os_action *action)
{
	struct sigaction *old = mem_alloc(sizeof *old);

	check(!in_front[c->sig] || in_front[c->sig] == c);
	if (!old)
		throw("out of memory for a signal handler");
	sigaction(c->sig, NULL, old);
	if (action) {
		old->sa_flags = (int)action->flags;
		old->sa_handler = (void (*)(int))action->fn;
	}
	/* release: it is whole; pairs with load_acquire in sigchain_give */
	store_release(&c->program, old);
}

void sigchain_install(struct sigchain *c, const struct os_action *action)
{
	struct sigaction sa = {
		.sa_sigaction = c->ours,
		.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART,
	};

	os_all_signals(&sa.sa_mask);
	note_program(c, action);
	store_relaxed(&in_front[c->sig], c);
	sigaction(c->sig, &sa, NULL);
	if (c->direct) {
		struct os_action a;

		os_action_get(c->sig, &a);
		a.fn = (void *)c->direct;
		os_action_set(c->sig, &a);
	}
}

static bool is_ours(const struct sigchain *c, const struct sigaction *sa)
{
	return sa->sa_sigaction == c->ours || (c->direct && sa->sa_sigaction == c->direct);
}

static bool is_in_place(const struct sigchain *c)
{
	struct sigaction sa;

	sigaction(c->sig, NULL, &sa);
	return is_ours(c, &sa);
}

void sigchain_renew(struct sigchain *c)
{
	if (!is_in_place(c))
		sigchain_install(c, NULL);
}

void sigchain_remove(const struct sigchain *c)
{
	const struct sigaction *program = load_relaxed(&c->program);

	if (program && is_in_place(c))
		sigaction(c->sig, program, NULL);
}

static void (*unchained[_NSIG])(int, siginfo_t *, void *);

void sigchain_unchained(int sig, void (*handler)(int, siginfo_t *, void *))
{
	unchained[sig] = handler;
}

static bool is_unchained(int sig, const struct sigaction *sa)
{
	return sa->sa_flags & SA_SIGINFO && sa->sa_sigaction == unchained[sig];
}

bool sigchain_is_unchained(int sig)
{
	struct sigaction sa;

	return sigaction(sig, NULL, &sa) == 0 && is_unchained(sig, &sa);
}

bool sigchain_program_handles(int sig)
{
	const struct sigchain *c = load_relaxed(&in_front[sig]);
	struct sigaction sa;

	if (sigaction(sig, NULL, &sa) != 0 || is_unchained(sig, &sa))
		return false;
	/* acquire: pairs with store_release in note_program */
	return is_handled(c && is_ours(c, &sa) ? load_acquire(&c->program) : &sa);
}

/*
 * sigchain.c - a signal that both the runtime and the program use.
 *
 * Our handler stands in front and calls the program's for signals that we did not send,
 * as if we were not there. A program that installs its handler later than we do is found
 * out when we next look (sigchain_renew); until then our signals go to it.
 */
#include "sigchain.h"

#include "atomic.h"
#include "fault.h"
#include "mem.h"
#include "os.h"
#include "throw.h"

/* Our handler's frame, and what it was given, while the program's handler runs on this thread;
 * it stays when that leaves by siglongjmp. A call of ours by the program's handler passes on
 * what it was given, and is deeper on the same stack; the next signal is neither. */
static __thread struct {
	const void *uc;
	uintptr_t frame;
} giving;

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

static const struct sigchain *in_front[_NSIG];	/* those installed, by signal */

static void note_program(struct sigchain *c, const struct os_action *action)
{
	struct sigaction *old = mem_alloc(sizeof *old);

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

	sigfillset(&sa.sa_mask);
	fault_unmask(&sa.sa_mask);
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

bool sigchain_program_handles(int sig)
{
	const struct sigchain *c = load_relaxed(&in_front[sig]);
	struct sigaction sa;

	if (sigaction(sig, NULL, &sa) != 0)
		return false;
	/* acquire: pairs with store_release in note_program */
	return is_handled(c && is_ours(c, &sa) ? load_acquire(&c->program) : &sa);
}

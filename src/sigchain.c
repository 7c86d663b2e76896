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

static __thread bool giving;	/* the program's handler runs on this thread */

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

	if (giving || (!(sa->sa_flags & SA_SIGINFO) &&
	               (sa->sa_handler == SIG_DFL || sa->sa_handler == SIG_IGN)))
		return false;
	giving = true;
	if (sa->sa_flags & SA_SIGINFO)
		sa->sa_sigaction(c->sig, info, uc);
	else
		sa->sa_handler(c->sig);
	giving = false;
	return true;
}

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
	sigaction(c->sig, &sa, NULL);
	if (c->direct) {
		struct os_action a;

		os_action_get(c->sig, &a);
		a.fn = (void *)c->direct;
		os_action_set(c->sig, &a);
	}
}

void sigchain_renew(struct sigchain *c)
{
	struct sigaction sa;

	sigaction(c->sig, NULL, &sa);
	if (sa.sa_sigaction != c->ours && (!c->direct || sa.sa_sigaction != c->direct))
		sigchain_install(c, NULL);
}

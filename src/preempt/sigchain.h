/*
 * sigchain.h - a signal that both the runtime and the program use. Defined in sigchain.c.
 */
#ifndef GORO_SIGCHAIN_H
#define GORO_SIGCHAIN_H

#include <signal.h>
#include <stdbool.h>

struct os_action;

struct sigchain {
	int sig;
	/* Constant once it is installed. */
	void (*ours)(int sig, siginfo_t *info, void *uc);
	/* Our handler behind TSan's back, see tool.h; NULL: there is none. */
	void (*direct)(int sig, siginfo_t *info, void *uc);
	/* The program's action. It is replaced, never changed: a handler may be reading
	 * it. */
	const struct sigaction *program;
};

/* Puts our handler in front of the program's action: the one installed, or `action`. One
 * thread at a time, in any state. */
void sigchain_install(struct sigchain *c, const struct os_action *action);
/* Does so again if the program has installed a handler since. */
void sigchain_renew(struct sigchain *c);
/* Puts the program's action back, unless it has installed another one since. */
void sigchain_remove(const struct sigchain *c);

/* In our handler, for a signal that the runtime did not send: calls the program's
 * handler. False: the program has none, or that handler has called ours, which it found
 * when it was installed. */
bool sigchain_give(const struct sigchain *c, siginfo_t *info, void *uc);
/* Whether without us the signal would have its default effect. */
bool sigchain_is_default(const struct sigchain *c);

/* A signal of ours that the program does not share: its handler is ours. */
void sigchain_unchained(int sig, void (*handler)(int, siginfo_t *, void *));
/* Whether that handler is installed now. */
bool sigchain_is_unchained(int sig);

/* Any signal: whether a handler of the program's is installed for it. */
bool sigchain_program_handles(int sig);

#endif

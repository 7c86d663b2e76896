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
	void (*direct)(int sig, siginfo_t *info, void *uc);	/* behind TSan's back, see tool.h; or NULL */
	/* What the program does about it. Replaced, never changed: a handler may be reading it. */
	const struct sigaction *program;
};

/* Ours in the place of what is there, which is the program's; or of action, if the caller
 * knows better. One thread at a time, in any state. */
void sigchain_install(struct sigchain *c, const struct os_action *action);
/* The program may have installed a handler since: then ours goes in its place again. */
void sigchain_renew(struct sigchain *c);
/* Puts the program's action back, unless it has installed another one since. */
void sigchain_remove(const struct sigchain *c);

/* In our handler, of a signal that is not ours: true if the program has a handler; it
 * has run. One that calls the handler it found when it was installed, which is ours, ends
 * up here again: that is over. */
bool sigchain_give(const struct sigchain *c, siginfo_t *info, void *uc);
/* .. whether the signal would have been ignored, or ended the process, without us. */
bool sigchain_is_default(const struct sigchain *c);

/* Any signal: whether a handler is installed for it that is not a chain's. */
bool sigchain_program_handles(int sig);

#endif

/*
 * preempt.h - the room preempt: goroutines that block in the kernel or run for too long
 * lose their P. Defined in preempt.c.
 *
 * The room uses sched and what is below it, unwind, and of reclaim what sysmon tells the
 * time. It offers preempt_signal and the guests below to rooms that need a signal of
 * their own on a thread, a hook that sysmon runs, and signals shared with the program
 * (sigchain.h).
 */
#ifndef GORO_PREEMPT_H
#define GORO_PREEMPT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hook.h"

struct m;

/* Another purpose of the signal. The functions run in the handler, and may be NULL. */
struct preempt_guest {
	/* True: the signal was sent for this guest, and the program does not see it. */
	bool (*takes)(int sig, const siginfo_t *info);
	/* The thread is at uc. mp is NULL if the thread is no M's. Does what was asked of
	 * the thread. True: the thread slept meanwhile, and a system call that the signal
	 * has cut short is to go on. */
	bool (*visits)(struct m *mp, const void *uc);
	int order;		/* guests are called from low to high */
	struct preempt_guest *next;
};
enum { GUEST_ATTACH, GUEST_SIGNALS, GUEST_REACH, GUEST_BACKTRACE };
extern struct preempt_guest *preempt_guests;
/* Whether a guest takes the signal. In a handler. */
bool preempt_taken(int sig, const siginfo_t *info);

/* PREEMPT_GUEST(signals, .takes = signal_take, .order = GUEST_SIGNALS); */
#define PREEMPT_GUEST(name, ...) \
	ADD_AT_LOAD(name##_guest, struct preempt_guest, preempt_guests, __VA_ARGS__)

/* Whether pc is in libc or the loader, or in a call of theirs that is made again. */
bool preempt_is_delicate(uintptr_t pc);

/* Sends the signal to the M's thread. Any thread; one thread at a time. */
void preempt_signal(struct m *mp);

/* In a handler of a signal of ours, on the thread of mp (NULL: of no M): makes a system
 * call go on that the signal has cut short. True: the call had done nothing, and is made
 * again. */
bool preempt_restart(const struct m *mp, void *ucontext);

/* Run by sysmon, at each of its ticks. Takes no libc lock and never waits. */
extern struct hook *at_tick;

#endif

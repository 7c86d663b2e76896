/*
 * preempt.h - stopping a goroutine where it stands. Defined in preempt.c.
 */
#ifndef GORO_PREEMPT_H
#define GORO_PREEMPT_H

#include <stdbool.h>
#include <stdint.h>

struct m;

void preempt_init(void);
void preempt_forked(void);	/* in the child: the signal is the program's alone */
bool preempt_thread_prepare(struct m *mp);	/* before its thread is made; false: no memory */
void preempt_thread_init(struct m *mp);	/* on that thread */
void preempt_thread_end(struct m *mp);

/* In a stretch without preemption. For others than the M: may be out of date. */
bool preempt_is_off(const struct m *mp);

/* Whether an address is in libc or the loader, whose locks are better not held for long. */
bool preempt_is_delicate(uintptr_t pc);

/* Sends the signal to the M's thread. Any thread; one at a time. */
void preempt_signal(struct m *mp);

/* In a handler of a signal of ours, on the M's thread (NULL: it has none): a system call that
 * the signal has cut short goes on. True: it had done nothing, and is made again. */
bool preempt_restart(const struct m *mp, void *ucontext);

/* The running goroutine gets in line for a P, staying on this thread, which
 * sleeps until its turn. In state RUNTIME, with a P (which is handed on) or
 * without. fresh: it comes back from a blocking call, and has not had its slice. */
void preempt_wait_turn(struct m *mp, bool fresh);

#endif

/*
 * init.h - the occasions on which the rooms above do something: the runtime starts, a
 * child was forked. Defined in init.c.
 */
#ifndef GORO_INIT_H
#define GORO_INIT_H

#include "base/hook.h"

/* Once, in the first call of goro, after the rooms up to sched have started. */
extern struct hook *at_start;
enum start_order {
	START_STATE,		/* fills tables and reads settings */
	START_WORK = 10,	/* registers sources of work, in this order */
	START_SIGNALS = 20,	/* installs handlers */
	START_SERVICES = 30,	/* starts threads of its own */
};

/* After that, once, in user code: goro can be called. */
extern struct hook *at_started;

/* Makes the runtime's own threads; run once, by runtime_threads. */
extern struct hook *at_threads;

/* On a thread that has just become an M, in any state. */
extern struct hook *at_thread;

/* By the spawner, after m_spawn: starts a thread of the runtime's that is wanted. */
extern struct hook *at_spawner;

/* Before fork, after it in the parent, and in the child, which has one thread. */
extern struct hook *at_fork, *at_fork_end, *at_forked;
enum forked_order {
	FORKED_STACKS,		/* puts stacks back: nothing else runs before that */
	FORKED_OTHER,
};

void foreign_init(void);

#endif

/*
 * park.pml - a goroutine parks or yields, and another thread runs it.
 * See park.c and "After the switch" in src/sched/sched.c.
 *
 * Proves: a goroutine runs on the second thread only when its stack is at rest on the first one, with
 * all that it had written there; and its wake is not lost. The first thread's goroutine waits for a
 * flag under a lock, or it yields: then it is on the queue before its stack is at rest. The second
 * thread sets the flag and makes the goroutine ready, if it waits, or steals it from the queue.
 *
 * Memory: C11, by memory.h; the queue is a word that is published by release and read by acquire.
 *
 * Left out: what else the lock guards (chan.pml); how threads are woken (spinner.pml); the scheduler
 * context between two goroutines; plain threads (their park is a sleep on a futex).
 *
 * Twins:
 *	TWO_HOLDS	the goroutine looks at the flag and queues its waiter under two holds of the lock
 *	NO_WAIT		set_running does not wait for a goroutine that yields to be at rest
 *	REST_RELAXED	after_run says by a relaxed store that the stack is at rest
 */
#define THREADS 2
#define LOCS 4
#define DEPTH 6
#define LOCKS 1
#define CONTEXT 0		/* the registers of the goroutine */
#define ON 1			/* gp->mp: the thread is on its stack */
#define QUEUE 2			/* the first thread's queue holds it */
#define WAITS 3			/* its waiter is in the lock's queue */
#define LOCK 0
#include "memory.h"

bool flag;			/* what the goroutine waits for: under the lock */
bool on_stack;			/* the first thread is on its stack */
byte ran;			/* times that it went on */

/* Thread t runs the goroutine. src/sched/sched.c set_running */
inline run_it(t)
{
#ifndef NO_WAIT
	/* src/sched/sched.c wait_for_rest */
	do
	:: load_acquire(t, ON, at);
		if
		:: at == 0 -> break
		:: else
		fi
	od;
#endif
	load_relaxed(t, CONTEXT, at);
	assert(!on_stack && at == 1);
	ran++
}

/* src/sched/sched.c switch_from, after_run */
inline switch_away(t)
{
	store_relaxed(t, CONTEXT, 1);
	on_stack = false;
#ifdef REST_RELAXED
	store_relaxed(t, ON, 0)
#else
	store_release(t, ON, 0)
#endif
}

proctype first()
{
	MEMORY;

	if
	:: true ->
		/* src/sched/sched.c sched_await */
		lock_acquire(0, LOCK);
		if
		:: flag -> lock_release(0, LOCK); ran++
		:: else ->
#ifdef TWO_HOLDS
			lock_release(0, LOCK);
			lock_acquire(0, LOCK);
#endif
			store_relaxed(0, WAITS, 1);
			switch_away(0);
			lock_release(0, LOCK)		/* src/sched/park.c park_unlock */
		fi
	:: true ->
		/* src/sched/sched.c sched_yield_local: queued first */
		store_release(0, QUEUE, 1);
		switch_away(0)
	fi
}

proctype second()
{
	MEMORY;
	short at;

	/* src/sched/park.c g_ready, by a waker that holds the lock */
	lock_acquire(1, LOCK);
	flag = true;
	load_relaxed(1, WAITS, at);
	lock_release(1, LOCK);
	if
	:: at == 1 -> run_it(1)
	:: else ->
		NEWEST(QUEUE) == 1 || ran == 1;		/* not: it waits, and nobody will wake it */
		if
		:: ran == 0 ->
			/* src/sched/runq.h ring_take */
			seen[1].oldest[QUEUE] = 1;
			load_acquire(1, QUEUE, at);
			run_it(1)
		:: else
		fi
	fi;
	assert(ran == 1)
}

init
{
	atomic {
		mem[ON].at[0].value = 1;
		on_stack = true;
		run first();
		run second()
	}
}

/*
 * spinner.pml - the last thread that looks for work, against new work. See wake_wanted in
 * src/sched/runtime.h and "Finding work" in src/sched/sched.c.
 *
 * Proves: when all have come to rest, no goroutine is queued while a P is idle. Thread 0 has a P and
 * queues goroutines one by one, while it runs on for long. Thread 1 looks for work, and is the only
 * one that does. Thread 2 is an idle M. There are three Ps, one of them idle. An M that finds a
 * goroutine runs it for long.
 *
 * Memory: C11, by memory.h; queueing is a release store, the loads of idle_p_n and spinning that
 * follow it are relaxed, with nothing in between.
 *
 * Left out: who gets which P; Ps that there is no CPU for; timers and the poller; stealing itself
 * (deque.pml), here a look at the queue and a CAS; dozing; a stop of the world; making threads.
 * A critical section of sched.lock is one step: what it changes is read without the lock by loads that
 * may be late.
 *
 * Variants:
 *	TWO_WORK	two goroutines are queued; the loads are not late
 *	COMES_BACK	thread 0 gets its P (after_regain, take_events) after the other M has seen
 *		that all other Ps are idle, so that it does not look at them (may_spin), and queues its
 *		goroutine before that M has made its own P idle; there are two Ps
 *
 * Twins:
 *	NO_MEMBARRIER	release_and_sleep looks at the queues without a membarrier
 *	NO_LOOK		release_and_sleep sleeps without look_again
 *	NO_WAKE_ON	a spinning M that finds work does not look for more (spinning_end)
 *	QUIET_SLEEP	an M that was not spinning sleeps without look_again (with COMES_BACK)
 */
#if defined(TWO_WORK) || defined(NO_WAKE_ON)
#define WORK 2
#define FRESH
#else
#define WORK 1
#endif
#ifdef QUIET_SLEEP
#define COMES_BACK
#endif
#ifdef COMES_BACK
#define PS 2
#else
#define PS 3
#endif

#define THREADS 3
#define W 0			/* the thread that queues */
#define LOCS 5
#define DEPTH 20
#define LOCKS 1
#define TAIL 0
#define HEAD 1
#define IDLE 2			/* sched.idle_p_n */
#define SPINNING 3		/* sched.spinning */
#define NEED 4			/* sched.need_spinning */
#define SCHED 0			/* sched.lock */
#include "memory.h"

bool asleep[THREADS];		/* on the list of idle Ms: under the lock */
bool handed[THREADS];		/* a waker gave it a P, to spin */
byte need_m;			/* Ps that wait for an M, to spin: under the lock */
bool over;			/* W has queued all, and computes */
byte busy_n;			/* Ms that run a goroutine */

/* src/sched/sched.c any_queued, src/sched/runq.c runq_empty */
inline any_queued(t, yes)
{
	load_acquire(t, HEAD, head);
	load_acquire(t, TAIL, tail);
	yes = (head != tail)
}

/* src/sched/p.c p_idle_get: under the lock */
inline idle_get(t, got)
{
	d_step {
		if
		:: NEWEST(IDLE) > 0 ->
			n_ = NEWEST(IDLE) - 1;
			change_newest(t, IDLE, n_);
			n_ = 0;
			got = true
		:: else -> got = false
		fi
	}
}

/* src/sched/runtime.h wake_wanted, src/sched/park.c wake_slow, src/sched/idle.c m_start_unlock */
inline wake(t)
{
	load_relaxed(t, IDLE, head);		/* program order */
	load_relaxed(t, SPINNING, tail);
	if
	:: head > 0 && tail == 0 ->
		head = 0;
		cas(t, SPINNING, head, 1, got);
		if
		:: got ->
			atomic {
				lock_acquire(t, SCHED);
				idle_get(t, got);
				if
				:: got ->
					if
					:: asleep[1] -> asleep[1] = false; handed[1] = true
					:: !asleep[1] && asleep[2] -> asleep[2] = false; handed[2] = true
					:: else -> need_m++
					fi
				:: else -> store_relaxed(t, NEED, 1)
				fi;
				lock_release(t, SCHED)
			}
			if
			:: !got -> add(t, SPINNING, -1)
			:: else
			fi
		:: else
		fi
	:: else
	fi;
	head = 0; tail = 0; got = false
}

proctype waker()
{
	MEMORY;
	short head, tail;
	bool got;
	byte i;

#ifdef COMES_BACK
	/* src/sched/sched.c after_regain */
	atomic { lock_acquire(W, SCHED); idle_get(W, got); lock_release(W, SCHED) }
	if
	:: !got -> goto out
	:: else -> got = false
	fi;
#endif
	do
	:: i < WORK ->
		i++;
		store_release(W, TAIL, i);	/* src/sched/runq.h ring_push */
		wake(W)
	:: else -> break
	od;
out:	over = true
}

proctype m(byte me; bool spins; bool sleeps)
{
	MEMORY;
	short head, tail;
	bool got, yes, looks;

	if
	:: sleeps -> goto sleep
	:: else
	fi;
look:	/* src/sched/steal.c steal_work, src/sched/runq.h ring_take */
	any_queued(me, yes);
	if
	:: yes ->
		cas(me, HEAD, head, head + 1, got);
		if
		:: got ->
			got = false;
			/* src/sched/sched.c spinning_end */
			if
			:: spins ->
				spins = false;
				add(me, SPINNING, -1);
				fence(me);
#ifndef NO_WAKE_ON
				load_relaxed(me, IDLE, head);
				if
				:: head > 0 ->
					membarrier(me);
					any_queued(me, yes);
					if
					:: yes -> wake(me)
					:: else
					fi
				:: else
				fi
#endif
			:: else
			fi;
			goto busy			/* it runs a goroutine for long */
		:: else -> head = 0; tail = 0; goto look
		fi
	:: else -> head = 0; tail = 0
	fi;
	/* src/sched/sched.c may_spin, spinning_start */
	if
	:: !spins ->
		load_relaxed(me, IDLE, head);
		load_relaxed(me, SPINNING, tail);
		if
		:: PS - head > 1 && 2 * tail < PS - head ->
			spins = true;
			add(me, SPINNING, 1);
			store_relaxed(me, NEED, 0);
			goto look
		:: else
		fi
	:: else
	fi;
	/* src/sched/sched.c release_and_sleep */
	atomic {
		lock_acquire(me, SCHED);
		load_relaxed(me, NEED, head);
		if
		:: !spins && head != 0
		:: else ->
			add(me, IDLE, 1);		/* src/sched/p.c p_idle_put */
			got = true;
			looks = (NEWEST(IDLE) != PS)
		fi;
		lock_release(me, SCHED)
	}
	if
	:: !got ->
		spins = true;
		add(me, SPINNING, 1);
		store_relaxed(me, NEED, 0);
		goto look
	:: else
	fi;
	fence(me);
	load_relaxed(me, SPINNING, tail);
#ifdef QUIET_SLEEP
	yes = spins;
#else
	yes = (spins || looks && tail == 0);	/* needs_last_look */
#endif
	d_step { got = false; looks = false; head = 0; tail = 0 }
	if
	:: spins -> spins = false; add(me, SPINNING, -1)
	:: else
	fi;
	if
	:: yes ->
		yes = false;
#ifndef NO_MEMBARRIER
		membarrier(me);
#endif
#ifndef NO_LOOK
		/* src/sched/sched.c look_again */
		any_queued(me, yes);
		if
		:: yes ->
			atomic {
				head = 0; tail = 0;
				lock_acquire(me, SCHED);
				idle_get(me, got);
				if
				:: !got -> store_relaxed(me, NEED, 1)
				:: else
				fi;
				lock_release(me, SCHED)
			}
			if
			:: got ->
				got = false;
				spins = true;
				add(me, SPINNING, 1);
				store_relaxed(me, NEED, 0);
				goto look
			:: else
			fi
		:: else
		fi
#endif
	:: else
	fi;
sleep:	/* src/sched/idle.c go_idle, m_stop */
	atomic {
		head = 0; tail = 0; yes = false; got = false; spins = false;
		lock_acquire(me, SCHED);
		if
		:: need_m > 0 -> need_m--; handed[me] = true
		:: else -> asleep[me] = true
		fi;
		lock_release(me, SCHED)
	}
end:	atomic { handed[me] -> handed[me] = false; spins = true };
	goto look;
busy:	head = 0; tail = 0; yes = false;
	busy_n++
}

init
{
	atomic {
		mem[IDLE].at[0].value = 1;
#ifdef COMES_BACK
		run m(1, false, false);
#else
		mem[SPINNING].at[0].value = 1;
		run m(1, true, false);
#endif
		run m(2, false, true);
		run waker()
	}
	over && asleep[1] + asleep[2] + busy_n == 2;
	assert(NEWEST(HEAD) == NEWEST(TAIL) || NEWEST(IDLE) == 0);
	assert(NEWEST(SPINNING) == 0)
}

/*
 * own_p.pml - taking a P from user code. See "Owning a P" in src/sched/rt.h.
 *
 * Proves: the M in state RUNTIME with its P and a taker that has taken the P never use it at the same
 * time; each of them sees what the other did to the P before; a claim is not left behind. The M enters
 * and leaves the runtime CROSSINGS times. The first taker gives the P back in user code, the second
 * keeps it.
 *
 * Memory: C11, by memory.h; the M's store of state and load of attn are relaxed, with nothing in
 * between.
 *
 * Left out: a kernel without membarrier (ATTN_FENCE); requests to yield; announced calls; that the M
 * gets in line for another P when it has lost its own; traces.
 *
 * Twins:
 *	NO_MEMBARRIER	the taker reads state without a membarrier after its claim
 *	EXIT_RELAXED	rt_try_exit stores USER by a relaxed store
 *	CLAIM_STANDS	an M that finds a mere claim takes the P for its own without a CAS
 *	NO_TAKE_LOCK	p_take lets a second taker in
 */
#define CROSSINGS 2

#define THREADS 3
#define M 0
#define LOCS 3
#define DEPTH 16
#define LOCKS 1
#define STATE 0
#define ATTN 1
#define DATA 2			/* what the P's owner writes there */
#define TAKING 0
#include "memory.h"

#define RUNTIME 0
#define USER 1
#define CLAIMED 1
#define TAKEN 2
#define GIVEN 4

byte inside;			/* threads that use the P now */
byte done;			/* threads that have ended */
byte written;			/* the newest value of DATA */

/* Uses the P as its owner. */
inline use_p(t)
{
	d_step { assert(inside == 0); inside++ };
	load_relaxed(t, DATA, data);
	assert(data == written);
	d_step { written++; put_value(t, DATA, written); data = 0 };
	inside--
}

inline fetch_or(t, bits, was)
{
	d_step { was = NEWEST(ATTN); change_newest(t, ATTN, was | (bits)) }
}

inline fetch_and(t, bits, was)
{
	d_step { was = NEWEST(ATTN); change_newest(t, ATTN, was & (bits)) }
}

active proctype m()
{
	MEMORY;
	short attn, data;
	byte i;
	bool ok;

	do
	:: i < CROSSINGS ->
		i++;
		/* src/sched/rt.h rt_try_enter */
		store_relaxed(M, STATE, RUNTIME);
		load_relaxed(M, ATTN, attn);		/* program order */
		if
		:: attn != 0 ->
			/* src/sched/border.c border_settle */
			load_acquire(M, ATTN, attn);
			do
			:: attn & CLAIMED ->
#ifdef CLAIM_STANDS
				break
#else
				cas(M, ATTN, attn, attn & ~CLAIMED, ok);
				if
				:: ok -> attn = attn & ~CLAIMED
				:: else
				fi
#endif
			:: !(attn & CLAIMED) && (attn & TAKEN) ->
				cas(M, ATTN, attn, attn & ~TAKEN, ok);
				if
				:: ok -> goto lost
				:: else
				fi
			:: !(attn & CLAIMED) && (attn & GIVEN) ->
				cas(M, ATTN, attn, attn & ~GIVEN, ok);
				if
				:: ok -> attn = attn & ~GIVEN
				:: else
				fi
			:: attn == 0 -> break
			od
		:: else
		fi;
		use_p(M);
		/* src/sched/rt.h rt_try_exit */
#ifdef EXIT_RELAXED
		store_relaxed(M, STATE, USER);
#else
		store_release(M, STATE, USER);
#endif
		attn = 0; ok = false
	:: else -> break
	od;
lost:	done++
}

proctype taker(byte me)
{
	MEMORY;
	short attn, state, data;
	bool taken, ok;

	/* src/sched/p.c p_take */
#ifndef NO_TAKE_LOCK
	atomic {
		if
		:: held[TAKING] -> goto out		/* lock_try */
		:: else -> held[TAKING] = true; d_step { join(seen[me], kept[TAKING]) }
		fi
	}
#endif
	fetch_or(me, CLAIMED, attn);
	if
	:: !(attn & TAKEN) ->
		/* src/sched/p.c take_claimed */
#ifndef NO_MEMBARRIER
		membarrier(me);
#endif
		load_acquire(me, STATE, state);
		if
		:: state == USER ->
			load_relaxed(me, ATTN, attn);
			/* src/sched/p.c take_by_cas */
			do
			:: attn & CLAIMED ->
				cas(me, ATTN, attn, (attn & ~(CLAIMED | GIVEN)) | TAKEN, taken);
				if
				:: taken -> break
				:: else
				fi
			:: else -> break
			od
		:: else
		fi
	:: else
	fi;
	if
	:: !taken -> fetch_and(me, ~CLAIMED, attn)
	:: else
	fi;
#ifndef NO_TAKE_LOCK
	lock_release(me, TAKING);
#endif
	if
	:: taken ->
		use_p(me);
		if
		:: me == 1 ->
			/* src/sched/p.c p_give */
			load_relaxed(me, ATTN, attn);
			do
			:: attn & TAKEN ->
				cas(me, ATTN, attn, (attn & ~TAKEN) | GIVEN, ok);
				if
				:: ok -> break
				:: else
				fi
			:: else -> use_p(me); break		/* still the taker's */
			od
		:: else
		fi
	:: else
	fi;
out:	done++
}

init
{
	atomic {
		mem[STATE].at[0].value = USER;
		run taker(1);
		run taker(2)
	}
	done == THREADS;
	assert(!(NEWEST(ATTN) & CLAIMED))
}

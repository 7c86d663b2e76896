/*
 * deque.pml - the deque of started goroutines: its owner against two thieves.
 * See "The deque" in src/sched/runq.c.
 *
 * Proves: each goroutine is taken exactly once, by the owner or by a thief, and whoever takes it
 * reads the slot as it was pushed. The owner pushes and pops in any order, OPS times; then it pops
 * until the deque is empty. Each thief steals once. A second thief finds the first one's claim stale
 * and voids it.
 *
 * Memory: C11, by memory.h; the owner's store of tail and load of word are relaxed, with nothing in
 * between.
 *
 * Left out: positions that wrap around 16 bits; a tag that comes again after 2^32 changes; one P
 * (no thieves); what a thief does with what it took; deque_take_oldest (a pop at the head, by CAS).
 *
 * Variants:
 *	TWO_THIEVES	a second thief; the owner only pops
 *
 * Twins:
 *	NO_MEMBARRIER	the thief reads the tail without a membarrier after its claim
 *	TAIL_RELAXED	deque_push publishes the slot by a relaxed store of tail
 *	CLAIM_STANDS	deque_pop_contended takes a claimed slot without voiding the claim
 */
#define CAP 4
#define GS 4			/* goroutines; three are in the deque at the start */
#ifdef TWO_THIEVES
#define OPS 0
#define THREADS 3
#else
#define OPS 3
#define THREADS 2
#endif
#define OWNER 0
#define LOCS 6
#define DEPTH 14
#define LOCKS 0
#define WORD 0
#define TAIL 1
#define SLOT(i) (2 + (i) % CAP)
#include "memory.h"

/* src/sched/runq.h d_head, d_claim, d_next */
#define HEAD(w) ((w) % 10)
#define CLAIM(w) ((w) / 10 % 10)
#define NEXT(w, claim, head) (((w) / 100 + 1) * 100 + (claim) * 10 + (head))

bool taken[GS + 1];
byte done;

inline take(g)
{
	d_step {
		assert(g != 0 && !taken[g]);
		taken[g] = true
	}
}

proctype owner()
{
	MEMORY;
	short w;
	byte tail = 3, t, g, ops, pushed = 3;
	bool ok, all;

	do
	:: ops < OPS && pushed < GS ->
		/* src/sched/runq.h deque_push */
		load_acquire(OWNER, WORD, w);
		if
		:: tail - HEAD(w) == CAP		/* full: goes to the global queue */
		:: else ->
			pushed++;
			store_relaxed(OWNER, SLOT(tail), pushed);
			tail++;
#ifdef TAIL_RELAXED
			store_relaxed(OWNER, TAIL, tail)
#else
			store_release(OWNER, TAIL, tail)
#endif
		fi;
		ops++
	:: ops < OPS || !all ->
		if
		:: ops < OPS -> ops++
		:: else
		fi;
		/* src/sched/runq.h deque_pop_newest */
		g = 0;
		load_relaxed(OWNER, WORD, w);
		assert(HEAD(w) <= tail);
		if
		:: HEAD(w) == tail -> all = (ops == OPS); goto next	/* empty */
		:: else
		fi;
		t = tail - 1;
		do
		:: HEAD(w) == t ->			/* the last one is taken at the head */
			cas(OWNER, WORD, w, NEXT(w, 0, t + 1), ok);
			if
			:: ok -> load_relaxed(OWNER, SLOT(t), g); take(g); goto next
			:: else
			fi
		:: else -> break
		od;
		if
		:: HEAD(w) == t + 1 -> goto next
		:: else
		fi;
		tail = t;
		store_relaxed(OWNER, TAIL, tail);
		load_relaxed(OWNER, WORD, w);		/* program order */
		if
		:: t - HEAD(w) - CLAIM(w) >= 0 ->
			load_relaxed(OWNER, SLOT(t), g);
			take(g);
			goto next
		:: else
		fi;
		/* src/sched/runq.c deque_pop_contended */
		load_relaxed(OWNER, WORD, w);
		do
		:: t + 1 == HEAD(w) ->
			tail = HEAD(w);
			store_relaxed(OWNER, TAIL, tail);
			break
		:: t + 1 != HEAD(w) && t - HEAD(w) >= CLAIM(w) ->
			load_relaxed(OWNER, SLOT(t), g); take(g); break
		:: t + 1 != HEAD(w) && t - HEAD(w) < CLAIM(w) ->
#ifdef CLAIM_STANDS
			ok = true;
#else
			cas(OWNER, WORD, w, NEXT(w, 0, HEAD(w)), ok);
#endif
			if
			:: ok -> load_relaxed(OWNER, SLOT(t), g); take(g); break
			:: else
			fi
		od;
next:		w = 0; t = 0; g = 0; ok = false
	:: else -> break
	od;
	done++
}

proctype thief(byte me; bool stale)
{
	MEMORY;
	short w, mine, tail;
	byte g[2], n, i, claimed;
	bool ok;

	/* src/sched/runq.c deque_steal */
	load_acquire(me, WORD, w);
	/* src/sched/runq.h deque_count */
	load_acquire(me, WORD, mine);
	load_acquire(me, TAIL, tail);
	claimed = (tail - HEAD(mine) < 0 || tail - HEAD(mine) > CAP -> 0 : (tail - HEAD(mine) + 1) / 2);
	if
	:: claimed == 0 || (CLAIM(w) != 0 && !stale) -> goto out
	:: else
	fi;
	mine = NEXT(w, claimed, HEAD(w));
	cas(me, WORD, w, mine, ok);
	if
	:: !ok -> goto out
	:: else
	fi;
#ifndef NO_MEMBARRIER
	membarrier(me);
#endif
	load_acquire(me, TAIL, tail);
	n = (tail - HEAD(mine) < 0 || tail - HEAD(mine) > CAP -> 0 : tail - HEAD(mine));
	n = (n < claimed -> n : claimed);
	do
	:: i < n -> load_relaxed(me, SLOT(HEAD(mine) + i), g[i]); i++
	:: else -> break
	od;
	cas(me, WORD, mine, NEXT(mine, 0, HEAD(mine) + n), ok);
	if
	:: ok ->
		i = 0;
		do
		:: i < n -> take(g[i]); i++
		:: else -> break
		od
	:: else
	fi;
out:	done++
}

init
{
	atomic {
		mem[TAIL].at[0].value = 3;
		mem[SLOT(0)].at[0].value = 1;
		mem[SLOT(1)].at[0].value = 2;
		mem[SLOT(2)].at[0].value = 3;
		run owner();
#ifdef TWO_THIEVES
		run thief(2, true);
#endif
		run thief(1, false)
	}
	done == THREADS;
	assert(taken[1] && taken[2] && taken[3])
}

/*
 * ring.pml - the ring of woken goroutines and runnext: their owner against two thieves, and a look from
 * outside. See "The deque" in src/sched/runq.c, and the invariants of the ring before it.
 *
 * Proves: each goroutine is taken exactly once, and whoever takes it sees the G as it was made ready.
 * runq_empty says "empty" only if the queues were empty at one moment of the call (a goroutine
 * that the owner is moving from runnext to the ring is in none). The owner makes
 * goroutines ready as runnext, by which the one before moves to the ring, and picks, in any order; then
 * it picks until all are gone. A thief takes half of the ring, or runnext if the ring is empty.
 *
 * Memory: C11, by memory.h; loads and stores of slots are relaxed.
 *
 * Left out: a full ring (its half goes to the global queue); positions that wrap around; one P.
 *
 * Variants:
 *	LOOK		a third thread calls runq_empty, and there is one thief; the loads are not late
 *
 * Twins:
 *	TAIL_RELAXED	ring_push publishes the slot by a relaxed store of tail
 *	NEXT_RELAXED	runq_put_next publishes the goroutine by a relaxed store of runnext
 *	HEAD_STORED	ring_take moves the head by a store instead of a CAS
 *	ONE_LOOK	runq_empty does not read the tail again
 */
#if defined(LOOK) || defined(ONE_LOOK)
#define WATCHED
#define FRESH
#endif
#define CAP 4
#define GS 3

#define THREADS 3
#define OWNER 0
#define LOCS 10
#define DEPTH 10
#define LOCKS 0
#define HEAD 0
#define TAIL 1
#define NEXT 2
#define SLOT(i) (3 + (i) % CAP)
#define G(g) (6 + (g))			/* what its waker wrote to the goroutine: g */
#include "memory.h"

bool taken[GS + 1];
byte done;
bool was_empty = true;			/* the queues were at one moment since the look began */

#define ALL_EMPTY (NEWEST(NEXT) == 0 && NEWEST(HEAD) == NEWEST(TAIL))

inline take(t, g)
{
	load_relaxed(t, G(g), seen_g);
	atomic { assert(g != 0 && !taken[g] && seen_g == g); taken[g] = true; seen_g = 0 }
}

/* src/sched/runq.h ring_take: n goroutines; 0: half of them */
inline ring_take(t, n)
{
	do
	:: load_acquire(t, HEAD, h);
		load_acquire(t, TAIL, tail);
		if
		:: tail == h -> many = 0; break
		:: tail < h || tail - h > CAP
		:: else ->
			many = (n -> n : (tail - h + 1) / 2);
			i = 0;
			do
			:: i < many -> load_relaxed(t, SLOT(h + i), out[i]); i++
			:: else -> break
			od;
#ifdef HEAD_STORED
			tail = h + many;
			store_release(t, HEAD, tail);
			ok = true;
#else
			tail = h + many;
			cas(t, HEAD, h, tail, ok);
#endif
			if
			:: ok -> ok = false; break
			:: else
			fi
		fi
	od;
	i = 0; h = 0; tail = 0
}

/* src/sched/runq.h swap_next, src/sched/runq.c steal_next */
inline swap_next(t, g, old)
{
	d_step {
		old = NEWEST(NEXT);
		if
		:: old != (g) -> change_newest(t, NEXT, g)
		:: else -> join(seen[t], mem[NEXT].at[mem[NEXT].last].with)
		fi
	}
}

proctype owner()
{
	MEMORY;
	short h, tail, out[2], old, seen_g;
	byte i, many, ready, end_of_ring;
	bool ok;

	do
	:: ready < GS ->
		/* src/sched/runq.h runq_put_next */
		ready++;
		store_relaxed(OWNER, G(ready), ready);
		load_relaxed(OWNER, NEXT, old);
		if
		:: old == 0 ->
			atomic {
				was_empty = was_empty || ALL_EMPTY;	/* only the owner ends that */
#ifdef NEXT_RELAXED
				store_relaxed(OWNER, NEXT, ready)
#else
				store_release(OWNER, NEXT, ready)
#endif
			}
		:: else ->
			atomic { was_empty = was_empty || ALL_EMPTY; swap_next(OWNER, ready, old) }
			if
			:: old != 0 ->
				/* src/sched/runq.h ring_push */
				load_acquire(OWNER, HEAD, h);
				assert(end_of_ring - h < CAP);
				store_relaxed(OWNER, SLOT(end_of_ring), old);
				end_of_ring++;
				atomic {
					was_empty = was_empty || ALL_EMPTY;
#ifdef TAIL_RELAXED
					store_relaxed(OWNER, TAIL, end_of_ring)
#else
					store_release(OWNER, TAIL, end_of_ring)
#endif
				}
			:: else
			fi
		fi;
		old = 0; h = 0
	:: true ->
		/* src/sched/runq.h runq_get_usual */
		swap_next(OWNER, 0, old);
		if
		:: old != 0 -> take(OWNER, old)
		:: else ->
			ring_take(OWNER, 1);
			if
			:: many > 0 -> take(OWNER, out[0])
			:: else ->
				if
				:: ready == GS -> break
				:: else
				fi
			fi
		fi;
		old = 0; out[0] = 0; many = 0
	od;
	done++
}

proctype thief(byte me)
{
	MEMORY;
	short h, tail, out[2], seen_g;
	byte i, many;
	bool ok;

	/* src/sched/runq.c runq_steal */
	ring_take(me, 0);
	if
	:: many > 0 ->
		take(me, out[0]);
		if
		:: many > 1 -> take(me, out[1])
		:: else
		fi
	:: else ->
		swap_next(me, 0, out[0]);
		if
		:: out[0] != 0 -> take(me, out[0])
		:: else
		fi
	fi;
	done++
}

#ifdef WATCHED
/* src/sched/runq.c runq_empty */
proctype look()
{
	MEMORY;
	short h, tail, next, again;

	was_empty = ALL_EMPTY;
	do
	:: load_acquire(2, HEAD, h);
		load_acquire(2, TAIL, tail);
		load_acquire(2, NEXT, next);
#ifdef ONE_LOOK
		break
#else
		load_acquire(2, TAIL, again);
		if
		:: again == tail -> break
		:: else
		fi
#endif
	od;
	assert(h != tail || next != 0 || was_empty || ALL_EMPTY);
	done++
}
#endif

init
{
	atomic {
		run owner();
		run thief(1);
#ifdef WATCHED
		run look()
#else
		run thief(2)
#endif
	}
	done == 3;
	assert(taken[1] && taken[2] && taken[3])
}

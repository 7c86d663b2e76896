/*
 * atomic.h - atomic operations with the memory order in the name.
 *
 * An order is part of what an operation means. So it is part of its name, and never an
 * argument. A comment beside each order stronger than relaxed says which operation it
 * pairs with.
 *
 * In builds for simulation each operation is a point, where another thread may go on: see
 * sim.h.
 */
#ifndef GORO_ATOMIC_H
#define GORO_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

#if GORO_SIM_POINTS
#include "platform/sim.h"
#define ATOMIC(operation) __extension__({ SIM_POINT(); operation; })
#else
#define ATOMIC(operation) operation
#endif

#define load_relaxed(p) ATOMIC(__atomic_load_n((p), __ATOMIC_RELAXED))
#define load_acquire(p) ATOMIC(__atomic_load_n((p), __ATOMIC_ACQUIRE))
#define load_seqcst(p)  ATOMIC(__atomic_load_n((p), __ATOMIC_SEQ_CST))

#define store_relaxed(p, v) ATOMIC(__atomic_store_n((p), (v), __ATOMIC_RELAXED))
#define store_release(p, v) ATOMIC(__atomic_store_n((p), (v), __ATOMIC_RELEASE))
#define store_seqcst(p, v)  ATOMIC(__atomic_store_n((p), (v), __ATOMIC_SEQ_CST))

#define exchange_acquire(p, v) ATOMIC(__atomic_exchange_n((p), (v), __ATOMIC_ACQUIRE))
#define exchange_release(p, v) ATOMIC(__atomic_exchange_n((p), (v), __ATOMIC_RELEASE))
#define exchange_acqrel(p, v)  ATOMIC(__atomic_exchange_n((p), (v), __ATOMIC_ACQ_REL))

#define fetch_add_relaxed(p, v) ATOMIC(__atomic_fetch_add((p), (v), __ATOMIC_RELAXED))
#define fetch_add_acqrel(p, v)  ATOMIC(__atomic_fetch_add((p), (v), __ATOMIC_ACQ_REL))
#define fetch_add_seqcst(p, v)  ATOMIC(__atomic_fetch_add((p), (v), __ATOMIC_SEQ_CST))
#define fetch_or_acqrel(p, v)   ATOMIC(__atomic_fetch_or((p), (v), __ATOMIC_ACQ_REL))
#define fetch_and_acqrel(p, v)  ATOMIC(__atomic_fetch_and((p), (v), __ATOMIC_ACQ_REL))

/* True: *p was *old and is now new; else *old is what was found. A failure is relaxed,
 * except in cas_acqrel (acquire) and cas_seqcst. */
#define cas_relaxed(p, old, new) \
	ATOMIC(__atomic_compare_exchange_n((p), (old), (new), false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
#define cas_acquire(p, old, new) \
	ATOMIC(__atomic_compare_exchange_n((p), (old), (new), false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
#define cas_release(p, old, new) \
	ATOMIC(__atomic_compare_exchange_n((p), (old), (new), false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
#define cas_acqrel(p, old, new) \
	ATOMIC(__atomic_compare_exchange_n((p), (old), (new), false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
#define cas_seqcst(p, old, new) \
	ATOMIC(__atomic_compare_exchange_n((p), (old), (new), false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))

#define fence_seqcst() __atomic_thread_fence(__ATOMIC_SEQ_CST)

/* Orders this thread against its own signal handlers. It is also the cheap half of a
 * store-load pair whose other half calls membarrier. */
#define compiler_barrier() __asm__ volatile("" ::: "memory")

/* A counter with one writer at a time and any number of readers. */
#define count_up(p, n) store_relaxed((p), load_relaxed(p) + (n))

#endif

/*
 * config.h - every tunable, once, with its unit in its name and its reason.
 */
#ifndef GORO_CONFIG_H
#define GORO_CONFIG_H

#define GORO_VERSION "0.1.0"

/* Slots of each of a P's two queues. Go's number: long enough that overflow to
 * the global queue is rare, short enough that half of it moves in a microsecond.
 * Tests build with 4, to live at the edges. A power of two, at most 32768. */
#ifndef GORO_RUNQ_CAP
#define GORO_RUNQ_CAP 256
#endif

/* Every how many picks a P looks first where its usual order would look last:
 * the global queue, then the oldest woken, then the oldest started, in turn.
 * 61 as in Go: prime, so that it does not beat with the program's own periods. */
#define FAIR_PERIOD_PICKS 61

/* Goroutine ids a P takes at a time from the shared counter. */
#define ID_BATCH 16

/* Dead goroutines a P keeps for itself; the older half goes to the shared pool
 * above this. */
#define P_GFREE_MAX 128

#define GOMAXPROCS_MAX 4096

/* OS threads, Go's debug.SetMaxThreads default. */
#define THREADS_MAX 10000

/* A thread with nothing to do looks around this long before it sleeps: about
 * what waking it again would cost (futex round trip over two CPUs: 39 us). */
#define SPIN_BEFORE_SLEEP_NS 30000

/* An idle thread beyond those the Ps need ends after this long. */
#define IDLE_THREAD_END_NS (5 * 1000000000LL)

/* sysmon: shortest and longest tick, and how many quiet ticks before the tick
 * starts to double. Go's figures. */
#define SYSMON_TICK_MIN_NS 20000
#define SYSMON_TICK_MAX_NS 10000000
#define SYSMON_QUIET_TICKS 50

/* How long a goroutine runs before it is asked to give way. */
#define SLICE_NS 10000000

/* How often sysmon looks for a changed CPU quota. */
#define QUOTA_CHECK_NS 1000000000LL

/* How long a stack must have lain unused in the shared pool to be given back. */
#define STACK_COLD_NS 200000000LL
/* Stacks given back by one system call (UIO_MAXIOV). */
#define STACK_RELEASE_BATCH 1024

#define STACK_DEFAULT_BYTES (256 << 10)
#define STACK_MIN_BYTES     (16 << 10)
#define STACK_MAX_BYTES     (1 << 30)
/* Address space taken from the kernel at a time, where stacks are not larger. */
#define STACK_REGION_BYTES  (1LL << 30)
/* Stacks guarded at a time when a region is carved. */
#define STACK_CARVE_BATCH   128

/* The signal that preempts, Go's choice: libc does not use it, debuggers pass it
 * on, and programs must expect it spuriously anyway. */
#define SIG_PREEMPT SIGURG

#define CACHE_LINE 64

#endif

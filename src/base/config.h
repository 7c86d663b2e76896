/*
 * config.h - the tunables that several files share, each with its unit in its name and
 * its reason. What one file alone uses stands at the top of that file.
 */
#ifndef GORO_CONFIG_H
#define GORO_CONFIG_H

/* ------------------------------------------------------------ queues and Ps */

/* Slots of each of a P's two queues, Go's number: overflow is rare, and half of it moves
 * in a microsecond. Tests build with 4. A power of two, at most 32768. */
#ifndef GORO_RUNQ_CAP
#define GORO_RUNQ_CAP 256
#endif

/* The largest GOMAXPROCS: arrays have an entry for each P. */
#define GOMAXPROCS_MAX 4096

/* Dead goroutines a P keeps. Above this the older half goes to the shared pool. */
#define P_GFREE_MAX 128

/* ------------------------------------------------------------------ threads */

/* OS threads at most: the default of Go's debug.SetMaxThreads. */
#define THREADS_MAX 10000

/* The stack of a thread of the runtime's, which runs no code of the program's. */
#define M_STACK_BYTES (256 << 10)

/* How long an M without work looks around before its thread sleeps: about as long as
 * waking a thread takes. */
#define SPIN_BEFORE_SLEEP_NS 30000

/* The kernel's time slice of sysmon and of the server of evacuated stacks: shorter than
 * the kernel's own, so that they get a CPU soon when they wake. Rejected: the same for
 * all threads of the runtime (no difference, and what the program starts would inherit
 * it). */
#define SYSMON_KERNEL_SLICE_NS 100000

/* ------------------------------------------------------------------- slices */

/* How long a goroutine runs while only goroutines wait that had their slice. Go's. */
#define SLICE_NS       10000000
/* The same, if a goroutine waits that was just started or woken. */
#define SLICE_SHORT_NS 1000000

/* While a goroutine waits for a P, sysmon looks at the P at least this often. Earlier
 * looks: preempt/retake_decide.h. */
#define LOOK_NS 1000000

/* How often the handler of the preemption signal asks for another try where it finds the
 * goroutine inside libc, which may hold a lock. */
#define PUT_OFF_MAX 6

/* ------------------------------------------------------------------- poller */

/* Events taken at a time, Go 128: the first goroutine waits for what is done for all. */
#define NETPOLL_BATCH 64
/* While Ps are busy some M looks at the poller at least this often. */
#define NETPOLL_LOAD_NS 1000000
/* A P that has just begun a slice gets this long to look at the poller by itself. */
#define NETPOLL_GRACE_NS 50000
/* A poller at which a running M has looked this recently needs no other M. Longer than a
 * few tries to read take (batch_policy.c), 50 us. */
#define NETPOLL_ATTENDED_NS 100000

/* -------------------------------------------------------------------- trace */

#define CACHE_LINE 64

#endif

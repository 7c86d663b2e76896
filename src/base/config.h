/*
 * config.h - the tunables that several files share, each with its unit in its name and
 * its reason. What one file alone uses stands at the top of that file.
 */
#ifndef GORO_CONFIG_H
#define GORO_CONFIG_H

/* ------------------------------------------------------------ queues and Ps */

/* Slots of each of a P's two queues. Go's number: long enough that overflow to the global
 * queue is rare, short enough that half of it moves in a microsecond. Tests build with 4,
 * to live at the edges. A power of two, at most 32768. */
#ifndef GORO_RUNQ_CAP
#define GORO_RUNQ_CAP 256
#endif

/* The largest GOMAXPROCS: arrays have an entry for each P. */
#define GOMAXPROCS_MAX 4096

/* Dead goroutines a P keeps for itself. Above this the older half goes to the shared
 * pool. */
#define P_GFREE_MAX 128

/* ------------------------------------------------------------------ threads */

/* OS threads at most: the default of Go's debug.SetMaxThreads. */
#define THREADS_MAX 10000

/* The stack of a thread of the runtime's: it runs the scheduler loop and no code of the
 * program's. */
#define M_STACK_BYTES (256 << 10)

/* How long an M without work looks around before its thread sleeps: about as long as it
 * takes to wake the thread again, a futex round trip over two CPUs of the virtual machine
 * where it was measured. */
#define SPIN_BEFORE_SLEEP_NS 30000

/* The kernel's time slice of sysmon and of the server of evacuated stacks, where the
 * kernel can be told. It is shorter than the kernel's own, so that they get a CPU soon
 * when they wake. Rejected: the same for all threads of the runtime. It made no
 * difference that could be measured, and what the program starts would inherit it. */
#define SYSMON_KERNEL_SLICE_NS 100000

/* ------------------------------------------------------------------- slices */

/* How long a goroutine runs before it is preempted, if only goroutines wait that have had
 * their slice. Go's. */
#define SLICE_NS       10000000
/* The same, if a goroutine waits that was just started or woken. */
#define SLICE_SHORT_NS 1000000

/* While a goroutine waits for a P, sysmon looks at the P at least this often. See
 * preempt/retake_decide.h for the looks that come earlier. */
#define LOOK_NS 1000000

/* How often the handler of the preemption signal, when it finds the goroutine inside libc
 * or where it may hold a lock, asks for another try before it stops the goroutine there.
 * */
#define PUT_OFF_MAX 6

/* ------------------------------------------------------------------- poller */

/* Events taken from the poller at a time. Go takes 128. With fewer, the first goroutine
 * waits for less of what is done for all of them (batch.c). */
#define NETPOLL_BATCH 64
/* While Ps are busy some M looks at the poller at least this often, if there is anything.
 * */
#define NETPOLL_LOAD_NS 1000000
/* A P that has just begun a slice gets this long to look at the poller by itself. */
#define NETPOLL_GRACE_NS 50000
/* A poller at which a running M has looked this recently needs no other M to wait there,
 * nor another to look. Longer than a few tries to read take (batch_policy.c), 50 us. */
#define NETPOLL_ATTENDED_NS 100000

/* -------------------------------------------------------------------- trace */

#define CACHE_LINE 64

#endif

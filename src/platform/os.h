/*
 * os.h - what the runtime asks of the operating system. Defined in os_linux.c.
 *
 * The room platform has what differs between processors and kernels: the switch, atomics,
 * system calls, what the kernel and the loader know of this process, tools. It uses no
 * other room.
 *
 * No function here takes a libc lock or sets errno. So they may be called in state
 * RUNTIME, while a goroutine that was preempted in malloc or printf holds a lock of libc.
 * Failures are negative errno values.
 */
#ifndef GORO_OS_H
#define GORO_OS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The signal that preempts, Go's choice: libc does not use it, debuggers pass it on, and
 * programs must expect it spuriously anyway. */
#define SIG_PREEMPT SIGURG

extern bool os_many_cpus;		/* the process may run on more than one CPU */
extern size_t os_page_bytes;
extern bool os_membarrier_works;	/* set once by os_init */

/* What os_init is not to use, as if the kernel had it not: GORO_DEBUG. */
extern struct os_without {
	int membarrier;
	int guard;		/* 1: markers; 2: guards at all */
} os_without;
/* Once, before anything else. */
void os_init(void);

int64_t os_now(void);			/* CLOCK_MONOTONIC, ns */

/* Sleeps while *word is value; ns, -1: no limit. 0, -EAGAIN, -EINTR or -ETIMEDOUT;
 * callers look at the word again in every case. */
int os_futex_wait(uint32_t *word, uint32_t value, int64_t timeout_ns);
int os_futex_wake(uint32_t *word, int n);

/* Every running thread passes a full memory barrier: "Owning a P" in rt.h. */
void os_membarrier(void);

/* Whether the eight bytes at addr can be read now. Any context, signal handlers too. */
bool os_is_readable(uintptr_t addr);

/* Anonymous zeroed memory, or NULL. os_reserve: address space only. The kernel sets no
 * swap aside, uses no huge pages, and mlockall does not lock it. */
void *os_map(size_t n);
void *os_reserve(size_t n);
void os_unmap(void *p, size_t n);

/* A guard at [p, p+n): any access faults. Ranges are stride apart. */
enum os_guard { OS_GUARD_MARKER, OS_GUARD_MPROTECT, OS_GUARD_NONE };
extern enum os_guard os_guard_kind;
/* Returns how many of count ranges have a guard, from the first on. If not all have,
 * os_guard_kind is not OS_GUARD_MARKER from then on. */
size_t os_guard(void *p, size_t n, size_t stride, size_t count);
/* Asks for memory before the first touch, at p, p + stride, ..., where the kernel can. */
void os_populate(void *p, size_t n, size_t stride, size_t count);

/* Gives the memory of count ranges back to the kernel. They read as zeroes afterwards. */
struct os_range { void *base; size_t len; };
void os_release(const struct os_range *ranges, size_t count);

/* ppoll, for a thread that blocks SIG_PREEMPT, which ends the wait, also if it came
 * before. */
struct pollfd;
int os_poll_or_signal(struct pollfd *p, size_t n, int64_t timeout_ns);

int os_tid(void);
int os_cpu(void);		/* on which the caller runs, or just ran */
int os_threads(void);			/* of this process, or -errno */
int64_t os_thread_cpu(int tid);		/* used by a thread; 0: the caller; ns */
uint64_t os_thread_sleeps(void);	/* how often the caller has slept in the kernel */
int64_t os_process_cpu(void);		/* used by all threads, the ended ones too; ns */
/* More threads than times the number of CPUs want one, over all programs, if that is
 * known. */
bool os_cpus_crowded(int times);
/* Whether a thread sleeps in the kernel. OS_AWAKE: it runs or waits for a CPU. Where
 * /proc cannot tell waiting for a CPU from sleep (it is not mounted, the process is not
 * dumpable, descriptors are short), OS_AWAKE is certain, and OS_ASLEEP may be a thread
 * that waits for a CPU. *lock: the address of a libc lock, or a similar one, that the
 * thread waits for without a timeout, so that a signal does not end its call; 0: it waits
 * for something else. Keeps no descriptor. Sysmon only. */
enum os_sleep { OS_AWAKE, OS_ASLEEP, OS_ASLEEP_ON_FUTEX };
enum os_sleep os_thread_asleep(int tid, uintptr_t *lock);
/* Names this thread for debuggers and top. Threads that it makes inherit the name. */
void os_thread_name(const char *name);
/* Makes the caller's sleeps end on time. */
void os_thread_punctual(void);
/* Sets the kernel's time slice for a thread (tid 0: the caller; ns 0: the default). A
 * thread with a shorter slice than others gets its CPU sooner when it wakes. Its share of
 * CPU time stays the same. */
void os_thread_slice(int tid, int64_t ns);
/* Puts the caller before all ordinary threads, or back. False: it is not permitted. */
bool os_thread_urgent(bool on);
void os_sleep(int64_t ns);
void os_yield(void);
/* One round of waiting for a thread that is about to be done; later rounds yield to
 * it. */
void os_relax(int round);
int os_tgkill(int tid, int sig);
/* The signals of faults, and Go's words for each. */
#define FAULT_LIST(X)                      \
	X(SIGSEGV, "segmentation violation") \
	X(SIGBUS, "bus error")               \
	X(SIGFPE, "floating-point exception") \
	X(SIGILL, "illegal instruction")
/* Takes the faults out of a mask: with one blocked the kernel ends the process
 * silently. */
void os_unblock_faults(sigset_t *mask);
/* A mask of all signals but the faults. */
void os_all_signals(sigset_t *mask);

/* Sends a signal to a thread. os_signal_is_ours tells it from the program's own. */
int os_signal(int tid, int sig);
bool os_signal_is_ours(const siginfo_t *info);
/* Makes a timer on the CPU time of a thread of this process. It sends the thread a signal
 * with value after the first ns, and then every period. Returns its number, or -errno. */
int os_cpu_timer_make(int tid, int sig, void *value, int64_t first, int64_t period);
void os_cpu_timer_end(int timer);
/* In a handler: the value; NULL: not of a timer. *times: the periods that it stands
 * for. */
void *os_signal_timer(const siginfo_t *info, int *times);
/* Calls fn for the threads of this process, but perhaps those that start or end.
 * -errno. */
int os_thread_each(void (*fn)(int tid, void *arg), void *arg);
/* A signal's action as the kernel has it. os_action_install: fn runs on the signal stack,
 * restarts what it interrupts, and only the signals in except interrupt it. This bypasses
 * libc and tools: ThreadSanitizer would keep the signal until its thread next calls libc,
 * which may be never. */
struct os_action {
	void *fn;		/* SIG_DFL, SIG_IGN, or a handler */
	unsigned long flags;
	void *restorer;
	uint64_t mask;
};
void os_action_get(int sig, struct os_action *a);
void os_action_set(int sig, const struct os_action *a);
void os_action_install(int sig, void *fn, uint64_t except);

/* Writes all of buf to a descriptor, and retries. Ignores errors. If the descriptor does
 * not block and is not read for a second, the rest is lost. */
void os_write(int fd, const void *buf, size_t n);

#endif

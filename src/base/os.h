/*
 * os.h - what the runtime asks of the operating system. Defined in os_linux.c.
 *
 * None of these takes a libc lock or sets errno: they may be called in state
 * RUNTIME, where a goroutine stopped in the middle of malloc or printf may hold
 * any of libc's locks. Failures are negative errno values.
 */
#ifndef GORO_OS_H
#define GORO_OS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern bool os_many_cpus;		/* more than one CPU to run on */
extern size_t os_page_bytes;
extern bool os_membarrier_works;	/* set once by os_init */

/* Once, before anything else. */
void os_init(void);

int64_t os_now(void);			/* CLOCK_MONOTONIC, ns */

/* Sleeps while *word is value; timeout in ns, -1: none. 0, -EAGAIN, -EINTR,
 * -ETIMEDOUT: callers look at the word again in every case. */
int os_futex_wait(uint32_t *word, uint32_t value, int64_t timeout_ns);
int os_futex_wake(uint32_t *word, int n);

/* Every running thread of the process passes a full memory barrier before this
 * returns. See "Owning a P" in rt.h. */
void os_membarrier(void);

/* Whether the eight bytes at addr can be read now. Any context, signal handlers too. */
bool os_is_readable(uintptr_t addr);

/* Anonymous zeroed memory, or NULL. reserve: address space only; no swap is
 * set aside, no huge pages are used, and mlockall does not lock it. */
void *os_map(size_t n);
void *os_reserve(size_t n);
void os_unmap(void *p, size_t n);

/* A guard at [p, p+n): any access faults. Ranges are stride apart. */
enum os_guard { OS_GUARD_MARKER, OS_GUARD_MPROTECT, OS_GUARD_NONE };
extern enum os_guard os_guard_kind;
/* Guards count ranges; how many of them, from the first on. Fewer: they cannot
 * be had any more, and os_guard_kind is not OS_GUARD_MARKER from then on. */
size_t os_guard(void *p, size_t n, size_t stride, size_t count);
/* Has memory put where it would come at the first touch: n bytes at p, p + stride,
 * ...; or not, where the system cannot. */
void os_populate(void *p, size_t n, size_t stride, size_t count);

/* Gives the memory of count ranges back; they read as zeroes afterwards. */
struct os_range { void *base; size_t len; };
void os_release(const struct os_range *ranges, size_t count);

/* A sleep that ends at a time (of os_now's) which any thread may change: its descriptor, or
 * -errno. A time that is past ends it at once, INT64_MAX never. */
int os_alarm_make(void);
int os_alarm_set(int alarm, int64_t when);	/* 0, or -errno: it is not ours any more */
void os_alarm_sleep(int alarm);		/* .. or until the thread is sent SIG_PREEMPT */

/* ppoll, for a thread that has SIG_PREEMPT blocked: it ends the wait, also if it came before. */
struct pollfd;
int os_poll_or_signal(struct pollfd *p, size_t n, int64_t timeout_ns);

int os_tid(void);
int os_cpu(void);		/* on which the caller runs, or ran just now */
int os_threads(void);			/* of this process, or -errno */
int64_t os_thread_cpu(int tid);		/* CPU time a thread (0: the caller) has used, ns */
int64_t os_process_cpu(void);		/* .. and all threads of this process, those that ended as well */
/* Of all programs together, more than times as many threads as there are CPUs run or could. False
 * if that cannot be told. */
bool os_cpus_crowded(int times);
/* Whether a thread sleeps in the kernel. OS_AWAKE: it runs, or it waits for a CPU. Where
 * /proc does not tell these apart from sleep (it is not mounted, the process is not
 * dumpable, descriptors are short), OS_AWAKE is certain and a thread that waits for a CPU
 * is OS_ASLEEP. *lock: the address of a lock of libc's, or of one like it, that the thread
 * waits for without a timeout, so that a signal does not end its call; 0: it waits for
 * something else. No descriptor is kept. Sysmon only. */
enum os_sleep { OS_AWAKE, OS_ASLEEP, OS_ASLEEP_ON_FUTEX };
enum os_sleep os_thread_asleep(int tid, uintptr_t *lock);
/* What debuggers and top call this thread. Threads that it makes are called the same, so
 * whoever makes Ms keeps the program's name. */
void os_thread_name(const char *name);
/* The sleeps of the calling thread are to end on time. */
void os_thread_punctual(void);
/* The kernel's time slice for a thread (0, 0: for the caller, the usual one): with a shorter
 * one than others' it gets its CPU sooner when it wakes, with a longer one others do. No
 * more CPU time, and no less. */
void os_thread_slice(int tid, int64_t ns);
/* The caller goes before all ordinary threads, or no longer: false if it may not. */
bool os_thread_urgent(bool on);
/* The caller goes on on a CPU that is none of these, if there is one; it is not bound to it. */
#define OS_CPUS_MAX 1024
struct os_cpus { uint64_t bits[OS_CPUS_MAX / 64]; };
void os_cpus_add(struct os_cpus *set, int cpu);
void os_thread_leave_cpus(const struct os_cpus *set);
void os_sleep(int64_t ns);
void os_yield(void);
/* One round of waiting for another thread that is about to be done; the kernel may have
 * stopped it, so after a while it is let run. */
void os_relax(int round);
int os_tgkill(int tid, int sig);
/* A signal to a thread that the handler can tell from the program's own. */
int os_signal(int tid, int sig);
bool os_signal_is_ours(const siginfo_t *info);
/* A timer on the CPU time of a thread of this process: a signal to that thread, with
 * value, after first ns of it and then every period. Its number, or -errno. */
int os_cpu_timer_make(int tid, int sig, void *value, int64_t first, int64_t period);
void os_cpu_timer_end(int timer);
/* In a handler: the value, if the signal is a timer's; *times: for how many periods. */
void *os_signal_timer(const siginfo_t *info, int *times);
/* Calls fn for all threads of this process, more or less; -errno: cannot tell. */
int os_thread_each(void (*fn)(int tid, void *arg), void *arg);
/* A signal's action as the kernel has it, and as it is put back; installed, fn
 * runs on the signal stack, restarts what it interrupts, and is not interrupted but
 * by the signals in except. Behind the back of libc and of tools: ThreadSanitizer
 * would keep the signal until its thread next calls libc, which may be never. */
struct os_action {
	void *fn;		/* SIG_DFL, SIG_IGN, or a handler */
	unsigned long flags;
	void *restorer;
	uint64_t mask;
};
void os_action_get(int sig, struct os_action *a);
void os_action_set(int sig, const struct os_action *a);
void os_action_install(int sig, void *fn, uint64_t except);

/* Writes all of it to a descriptor, retrying; errors are ignored. Where the descriptor does not
 * block and nobody reads from the other end for a second, the rest is lost. */
void os_write(int fd, const void *buf, size_t n);

#endif

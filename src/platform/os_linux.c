/*
 * os_linux.c - Linux behind os.h: futexes, memory, membarrier, threads.
 *
 * Everything is a raw system call: it takes no libc lock, and errno is the goroutine's.
 * What newer kernels offer is tried once in os_init, and used if it works. GORO_DEBUG
 * turns each feature off, so that tests reach the fallback:
 *
 *	feature                 since   switched off by   fallback
 *	membarrier expedited    4.14    nomembarrier=1    a fence at each crossing
 *	guard markers           6.13    noguard=1         mprotect, then none
 *	process_madvise, self   6.14    noguard=1         one madvise a range
 */
#define _GNU_SOURCE
#include "platform/os.h"

#include "platform/context.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "platform/atomic.h"
#include "platform/own_fd.h"
#include "platform/sim.h"
#include "platform/sys.h"
#include "platform/tool.h"

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef SYS_process_madvise
#define SYS_process_madvise 440
#endif
#ifndef PIDFD_SELF_THREAD_GROUP
#define PIDFD_SELF_THREAD_GROUP (-10001)
#endif

/* The kernel reads ranges as iovecs. */
_Static_assert(sizeof(struct os_range) == sizeof(struct iovec) &&
               offsetof(struct os_range, len) == offsetof(struct iovec, iov_len), "os_range");

struct os_without os_without;
bool os_many_cpus;
size_t os_page_bytes;
bool os_membarrier_works;
enum os_guard os_guard_kind;

static bool on_valgrind;

static bool membarrier_probe(void)
{
	return !os_without.membarrier &&
	       sys2(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0) == 0 &&
	       sys2(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0) == 0;
}

/* valgrind warns of the call below; containers forbid this one. */
static bool is_copied_by_kernel(uintptr_t addr)
{
	uint64_t word;
	struct iovec to = { &word, sizeof word }, from = { (void *)addr, sizeof word };

	return sys6(SYS_process_vm_readv, sys0(SYS_getpid), &to, 1, &from, 1, 0) == sizeof word;
}

/* The kernel copies the set before it looks at the impossible first argument. */
TOOL_RACY bool os_is_readable(uintptr_t addr)
{
	if (on_valgrind)
		return is_copied_by_kernel(addr);
	return sys4(SYS_rt_sigprocmask, -1, addr, NULL, _NSIG / 8) == -EINVAL;
}

/* Whether guard markers work here, by setting one. An emulator may say that it did and do
 * nothing, so the kernel is asked whether the page can be read. Not under valgrind, which
 * passes madvise on and reports the question. */
static enum os_guard guard_probe(void)
{
	enum os_guard kind = OS_GUARD_MPROTECT;
	void *p;

	if (os_without.guard >= 2)
		return OS_GUARD_NONE;
	if (os_without.guard)
		return OS_GUARD_MPROTECT;
	p = os_map(os_page_bytes);
	if (!p)
		return kind;
	if (sys3(SYS_madvise, p, os_page_bytes, MADV_GUARD_INSTALL) == 0 &&
	    (on_valgrind || !os_is_readable((uintptr_t)p)))
		kind = OS_GUARD_MARKER;
	os_unmap(p, os_page_bytes);
	return kind;
}

void os_init(void)
{
	cpu_set_t set;

	on_valgrind = tool_on_valgrind();
	os_page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	CPU_ZERO(&set);
	os_many_cpus = sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) > 1;
	os_membarrier_works = membarrier_probe();
	os_guard_kind = guard_probe();
	own_fd_init(os_threads() == 1);
}

static struct timespec timespec_of(int64_t ns)
{
	return (struct timespec){ .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
}

static int64_t ns_of(const struct timespec *t)
{
	return t->tv_sec * INT64_C(1000000000) + t->tv_nsec;
}

int64_t os_now(void)
{
	struct timespec t;

	if (sim)
		return sim->now();
	clock_gettime(CLOCK_MONOTONIC, &t);
	return ns_of(&t);
}

int os_futex_wait(uint32_t *word, uint32_t value, int64_t timeout_ns)
{
	struct timespec t = timespec_of(timeout_ns);

	if (sim)
		return sim->futex_wait(word, value, timeout_ns);
	return (int)sys4(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, timeout_ns < 0 ? NULL : &t);
}

int os_futex_wake(uint32_t *word, int n)
{
	if (sim)
		return sim->futex_wake(word, n);
	return (int)sys3(SYS_futex, word, FUTEX_WAKE_PRIVATE, n);
}

void os_membarrier(void)
{
	fence_seqcst();
	if (sim)
		sim->membarrier();
	else if (os_membarrier_works)
		sys2(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0);
}

/* TSan has to see what is mapped and unmapped, and sees calls of libc only. */
static void *map(size_t n, int access, int flags)
{
	long p;

	flags |= MAP_PRIVATE | MAP_ANONYMOUS;
	p = TOOL_TSAN ? (long)mmap(NULL, n, access, flags, -1, 0)
	              : syscall_raw(SYS_mmap, 0, (long)n, access, flags, -1, 0);
	return p < 0 && p > -4096 ? NULL : (void *)p;
}

void *os_map(size_t n)
{
	return map(n, PROT_READ | PROT_WRITE, 0);
}

/* If the program has called mlockall for future mappings, the whole mapping would be
 * resident at once. Memory without access is not, and munlock then clears the lock. */
void *os_reserve(size_t n)
{
	void *p = map(n, PROT_NONE, MAP_NORESERVE);

	if (!p)
		return NULL;
	sys2(SYS_munlock, p, n);
	if (sys3(SYS_mprotect, p, n, PROT_READ | PROT_WRITE) != 0) {
		os_unmap(p, n);
		return NULL;
	}
	sys3(SYS_madvise, p, n, MADV_NOHUGEPAGE);
	return p;
}

void os_unmap(void *p, size_t n)
{
	if (TOOL_TSAN)
		munmap(p, n);
	else
		sys2(SYS_munmap, p, n);
}

/* One system call for all ranges. Returns the number of ranges done, from the first
 * on. */
static size_t advise_batch(const struct os_range *ranges, size_t count, int advice)
{
	size_t total = 0, done = 0;
	long r;

	if (os_without.guard || on_valgrind)
		return 0;
	for (size_t i = 0; i < count; i++)
		total += ranges[i].len;
	r = sys5(SYS_process_madvise, PIDFD_SELF_THREAD_GROUP, ranges, count, advice, 0);
	if (r == (long)total)
		return count;
	for (long sum = 0; r > 0 && done < count; done++) {
		sum += (long)ranges[done].len;
		if (sum > r)
			break;
	}
	return done;
}

/* As advise_batch, of count ranges of n bytes. singly: one by one where a batch fails. */
static size_t advise(char *p, size_t n, size_t stride, size_t count, int advice, bool singly)
{
	struct os_range ranges[128];
	size_t at = 0, batch, done;

	do {
		batch = count - at < 128 ? count - at : 128;
		for (size_t i = 0; i < batch; i++)
			ranges[i] = (struct os_range){ p + (at + i) * stride, n };
		done = advise_batch(ranges, batch, advice);
		while (singly && done < batch &&
		       sys3(SYS_madvise, ranges[done].base, n, advice) == 0)
			done++;
		at += done;
	} while (done == batch && at < count);
	return at;
}

/* A guard by mprotect makes two more mappings: half of the 65530 are the program's. */
#define MPROTECT_GUARDS_MAX 16000
/* Valgrind ends a program that has 30,000 mappings. */
#define MPROTECT_GUARDS_MAX_VALGRIND 8000

static size_t guard_mprotect(char *p, size_t n, size_t stride, size_t count)
{
	size_t max = tool_on_valgrind() ? MPROTECT_GUARDS_MAX_VALGRIND : MPROTECT_GUARDS_MAX;
	static size_t mprotected;
	size_t i;

	for (i = 0; i < count && load_relaxed(&mprotected) < max; i++) {
		if (sys3(SYS_mprotect, p + i * stride, n, PROT_NONE) != 0)
			break;
		fetch_add_relaxed(&mprotected, 1);
	}
	return i;
}

size_t os_guard(void *p, size_t n, size_t stride, size_t count)
{
	size_t done = 0;

	if (os_guard_kind == OS_GUARD_MARKER) {
		done = advise(p, n, stride, count, MADV_GUARD_INSTALL, true);
		if (done == count)
			return count;
		store_relaxed(&os_guard_kind, OS_GUARD_MPROTECT);
	}
	if (os_guard_kind == OS_GUARD_NONE)
		return done;
	return done + guard_mprotect((char *)p + done * stride, n, stride, count - done);
}

void os_populate(void *p, size_t n, size_t stride, size_t count)
{
	advise(p, n, stride, count, MADV_POPULATE_WRITE, false);
}

void os_release(const struct os_range *ranges, size_t count)
{
	size_t done = advise_batch(ranges, count, MADV_DONTNEED);

	for (; done < count; done++)
		sys3(SYS_madvise, ranges[done].base, ranges[done].len, MADV_DONTNEED);
}

int os_cpu(void)
{
	return sim ? sim->cpu() : sched_getcpu();	/* no system call, and no lock */
}

int os_tid(void)
{
	return sim ? sim->tid() : (int)sys0(SYS_gettid);
}

/* The link count of the task directory is two more than its entries. */
int os_threads(void)
{
	struct stat st;
	int error;

	if (sim)
		return sim->threads();
	error = (int)sys4(SYS_newfstatat, AT_FDCWD, "/proc/self/task", &st, 0);
	return error < 0 ? error : (int)st.st_nlink - 2;
}

/* In the kernel's encoding. pthread_getcpuclockid reads a pthread_t, which may be
 * gone. */
#define CPU_CLOCK_OF(tid) ((long)((~(unsigned)(tid) << 3) | 6))

static int64_t cpu_clock(long clock)
{
	struct timespec t = { 0, 0 };

	sys2(SYS_clock_gettime, clock, &t);
	return ns_of(&t);
}

int64_t os_thread_cpu(int tid)
{
	return sim ? sim->thread_cpu(tid) : cpu_clock(CPU_CLOCK_OF(tid));
}

uint64_t os_thread_sleeps(void)
{
	struct rusage use = { .ru_nvcsw = 0 };

	sys2(SYS_getrusage, RUSAGE_THREAD, &use);
	return (uint64_t)use.ru_nvcsw;
}

int64_t os_process_cpu(void)
{
	return sim ? sim->process_cpu() : cpu_clock(CLOCK_PROCESS_CPUTIME_ID);
}

/* What getdents64 fills a buffer with. */
struct dirent_raw {
	uint64_t ino;
	int64_t off;
	uint16_t bytes;
	uint8_t type;
	char name[];
};

/* The number at *at, after blanks, decimal or with 0x. *at moves behind it. */
static uintptr_t scan_number(const char **at)
{
	uintptr_t n = 0;
	unsigned base = 10;

	while (**at == ' ')
		++*at;
	if ((*at)[0] == '0' && (*at)[1] == 'x') {
		base = 16;
		*at += 2;
	}
	for (;; ++*at) {
		char c = **at;

		if (c >= '0' && c <= '9')
			n = n * base + (uintptr_t)(c - '0');
		else if (base == 16 && c >= 'a' && c <= 'f')
			n = n * base + (uintptr_t)(c - 'a' + 10);
		else
			return n;
	}
}

int os_thread_each(void (*fn)(int tid, void *arg), void *arg)
{
	_Alignas(struct dirent_raw) char buf[4096];
	int fd = (int)sys4(SYS_openat, AT_FDCWD, "/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	long n;

	fd = own_fd_take(fd, OWN_FD_TASKS);	/* it may take a while */
	if (fd < 0)
		return fd;
	while ((n = sys3(SYS_getdents64, fd, buf, sizeof buf)) > 0) {
		for (long at = 0; at < n; at += ((struct dirent_raw *)(buf + at))->bytes) {
			const char *name = ((struct dirent_raw *)(buf + at))->name;
			int tid = (int)scan_number(&name);

			if (tid > 0)
				fn(tid, arg);
		}
	}
	own_fd_close(&fd, OWN_FD_TASKS);
	return (int)n;
}

/* The last descriptors of a small table are left to the program, even for a moment. */
#define PROGRAM_FDS 8
/* After a failed open, or one near the last descriptor, no other open for this long. */
#define NO_OPEN_NS 1000000000

static bool is_among_last(int fd)
{
	struct rlimit limit = { 0, 0 };		/* 64 bits, on both processors */

	sys4(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit);
	return (rlim_t)fd + PROGRAM_FDS >= limit.rlim_cur;
}

/* "/proc/self/task/TID" and name, without stdio. */
static void task_path(char *path, int tid, const char *name)
{
	char digits[12];
	size_t at = sizeof digits;

	do
		digits[--at] = (char)('0' + tid % 10);
	while (tid /= 10);
	path = stpcpy(path, "/proc/self/task/");
	path = mempcpy(path, digits + at, sizeof digits - at);
	strcpy(path, name);
}

/* Reads at most size - 1 bytes, as text. Returns their number, or -errno. Sysmon only. */
static long read_thread_file(int tid, const char *name, char *out, size_t size)
{
	static int64_t closed_until;
	int64_t now = os_now();
	char path[64];
	long n;
	int fd;

	if (now < closed_until)
		return -EMFILE;
	task_path(path, tid, name);
	fd = (int)sys4(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	if (fd >= 0 ? is_among_last(fd) : fd != -EACCES)
		closed_until = now + NO_OPEN_NS;
	if (fd < 0)
		return fd;
	n = sys3(SYS_read, fd, out, size - 1);
	sys1(SYS_close, fd);
	out[n > 0 ? n : 0] = '\0';
	return n;
}

/* Keeps the file open: each open might take the last number that a program has left. */
static bool read_kept(int *fd, const char *path, char *text, size_t size)
{
	long n;

	if (!own_fd_is(*fd, OWN_FD_LOAD))
		*fd = own_fd_take((int)sys4(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0),
		                  OWN_FD_LOAD);
	n = *fd < 0 ? *fd : sys4(SYS_pread64, *fd, text, size - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* How many numbers a list such as "0-1,4-7,9" has. */
static long count_listed(const char *at)
{
	long n = 0;

	for (;; at++) {
		uintptr_t first = scan_number(&at), last = first;

		if (*at == '-') {
			at++;
			last = scan_number(&at);
		}
		n += last > first ? (long)(last - first) + 1 : 1;
		if (*at != ',')
			return n;
	}
}

/* The load is "0.20 0.18 0.12 RUNNABLE/ALL PID", with the caller among the runnable. */
bool os_cpus_crowded(int times)
{
	static int list = -1, load = -1;
	static long cpus;
	char text[1024];
	const char *at = text;

	if (sim)
		return false;
	if (cpus == 0 && read_kept(&list, "/sys/devices/system/cpu/online", text, sizeof text))
		cpus = count_listed(text);
	if (cpus == 0 || !read_kept(&load, "/proc/loadavg", text, sizeof text))
		return false;
	for (int spaces = 0; spaces < 3 && *at; at++)
		spaces += *at == ' ';
	return (long)scan_number(&at) > times * cpus;
}

/* The futex of a wait for a lock, from the arguments of the call; else 0. A glibc lock
 * that a thread waits for is 2. Waits for conditions, semaphores and the end of threads
 * have other values. */
static uintptr_t lock_waited_for(const char *arguments)
{
	uintptr_t addr = scan_number(&arguments), op = scan_number(&arguments);
	uintptr_t value = scan_number(&arguments), timeout = scan_number(&arguments);

	return timeout == 0 && value == 2 && (op & FUTEX_CMD_MASK) == FUTEX_WAIT ? addr : 0;
}

/* A thread's clock advances while it is on a CPU. */
static bool is_on_cpu(int tid)
{
	int64_t before = os_thread_cpu(tid);

	return os_thread_cpu(tid) != before;
}

/* "PID (name) STATE ...", where the name may be anything. */
static bool is_runnable_by_stat(int tid)
{
	char text[64];
	long n = read_thread_file(tid, "/stat", text, sizeof text);

	while (n > 0 && text[n - 1] != ')')
		n--;
	return n > 0 && text[n] == ' ' && text[n + 1] == 'R';
}

/* The file says "running", or the number of the system call and its arguments. Only the
 * owner of the process may read it, or root if the process is not dumpable; all may read
 * the state in stat. Most threads looked at are on a CPU, and their clock says so at a
 * tenth of the cost. */
enum os_sleep os_thread_asleep(int tid, uintptr_t *lock)
{
	char text[96];
	const char *at = text;
	long n;

	*lock = 0;
	if (sim)
		return sim->thread_is_asleep(tid) ? OS_ASLEEP : OS_AWAKE;
	if (is_on_cpu(tid))
		return OS_AWAKE;
	n = read_thread_file(tid, "/syscall", text, sizeof text);
	if (n < 0)
		return n == -EACCES && is_runnable_by_stat(tid) ? OS_AWAKE : OS_ASLEEP;
	if (n == 0 || text[0] == 'r')
		return OS_AWAKE;
	if (scan_number(&at) != SYS_futex)
		return OS_ASLEEP;
	*lock = lock_waited_for(at);
	return OS_ASLEEP_ON_FUTEX;
}
void os_thread_name(const char *name)
{
	if (!sim)
		sys5(SYS_prctl, PR_SET_NAME, name, 0, 0, 0);
}

void os_thread_punctual(void)
{
	sys5(SYS_prctl, PR_SET_TIMERSLACK, 1, 0, 0, 0);
}

/* The kernel's struct, first version; libc does not have it. */
struct sched_attr_v0 {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

/* A thread that wakes does not interrupt one with the same slice, and may wait
 * milliseconds where all CPUs are busy. Since Linux 6.12 sched_runtime of an ordinary
 * thread is its slice; older kernels ignore it. */
void os_thread_slice(int tid, int64_t ns)
{
	struct sched_attr_v0 attr = { .size = sizeof attr };

	if (sim || sys4(SYS_sched_getattr, tid, &attr, sizeof attr, 0) != 0 ||
	    attr.policy != SCHED_OTHER)
		return;
	attr.runtime = (uint64_t)ns;
	sys3(SYS_sched_setattr, tid, &attr, 0);
}

bool os_thread_urgent(bool on)
{
	struct sched_attr_v0 attr = { .size = sizeof attr };

	if (sim)
		return true;
	if (sys4(SYS_sched_getattr, 0, &attr, sizeof attr, 0) != 0 ||
	    attr.policy != (on ? SCHED_OTHER : SCHED_RR))
		return false;
	attr.policy = on ? SCHED_RR : SCHED_OTHER;
	attr.priority = on;
	attr.runtime = 0;
	return sys3(SYS_sched_setattr, 0, &attr, 0) == 0;
}

#define SIGNAL_BIT(sig) (UINT64_C(1) << ((sig) - 1))

/* All but SIG_PREEMPT, the faults, and libc's own (32 and 33), which setuid waits for. */
static const uint64_t all_but_preempt =
	~(SIGNAL_BIT(SIG_PREEMPT) | SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS) | SIGNAL_BIT(SIGFPE) |
	  SIGNAL_BIT(SIGILL) | SIGNAL_BIT(32) | SIGNAL_BIT(33));

int os_poll_or_signal(struct pollfd *p, size_t n, int64_t timeout_ns)
{
	struct timespec t = timespec_of(timeout_ns);

	if (sim)
		return sim->poll(p, n, timeout_ns);
	return (int)sys5(SYS_ppoll, p, n, timeout_ns < 0 ? NULL : &t, &all_but_preempt, _NSIG / 8);
}

void os_sleep(int64_t ns)
{
	struct timespec t = timespec_of(ns);

	if (sim)
		sim->sleep(ns);
	else
		sys4(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &t, NULL);
}

void os_yield(void)
{
	if (sim)
		sim->yield();
	else
		sys0(SYS_sched_yield);
}

void os_relax(int round)
{
	if (round < 100 && !sim)
		cpu_relax();
	else
		os_yield();
}

int os_tgkill(int tid, int sig)
{
	return (int)sys3(SYS_tgkill, sys0(SYS_getpid), sim ? sys0(SYS_gettid) : tid, sig);
}

static char ours;		/* its address marks our signals */

void os_unblock_faults(sigset_t *mask)
{
#define X(sig, text) sigdelset(mask, sig);
	FAULT_LIST(X)
#undef X
}

void os_all_signals(sigset_t *mask)
{
	sigfillset(mask);
	os_unblock_faults(mask);
}

int os_signal(int tid, int sig)
{
	siginfo_t info = { .si_signo = sig, .si_code = SI_QUEUE };

	info.si_pid = (pid_t)sys0(SYS_getpid);
	info.si_value.sival_ptr = &ours;
	if (sim) {
		sim->signal(tid, sig, &info);
		return 0;
	}
	return (int)sys4(SYS_rt_tgsigqueueinfo, info.si_pid, tid, sig, &info);
}

TOOL_RACY bool os_signal_is_ours(const siginfo_t *info)
{
	return info->si_code == SI_QUEUE && info->si_value.sival_ptr == &ours;
}

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* The kernel's own timers: libc's would allocate. */
int os_cpu_timer_make(int tid, int sig, void *value, int64_t first, int64_t period)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = sig,
	                          .sigev_value.sival_ptr = value };
	struct itimerspec when = { .it_value = timespec_of(first), .it_interval = timespec_of(period) };
	int timer, error;

	if (sim)
		return -ENOSYS;	/* the thread may be none of the kernel's */
	event.sigev_notify_thread_id = tid;
	error = (int)sys3(SYS_timer_create, CPU_CLOCK_OF(tid), &event, &timer);
	if (error)
		return error;
	error = (int)sys4(SYS_timer_settime, timer, 0, &when, NULL);
	if (error)
		os_cpu_timer_end(timer);
	return error ? error : timer;
}

void os_cpu_timer_end(int timer)
{
	sys1(SYS_timer_delete, timer);
}

TOOL_RACY void *os_signal_timer(const siginfo_t *info, int *times)
{
	*times = info->si_overrun + 1;
	return info->si_code == SI_TIMER ? info->si_value.sival_ptr : NULL;
}

/* The kernel's struct, on both processors. */
_Static_assert(sizeof(struct os_action) == 3 * sizeof(long) + _NSIG / 8, "os_action: the kernel's");

void os_action_get(int sig, struct os_action *a)
{
	sys4(SYS_rt_sigaction, sig, NULL, a, sizeof a->mask);
}

void os_action_set(int sig, const struct os_action *a)
{
	sys4(SYS_rt_sigaction, sig, a, NULL, sizeof a->mask);
}

/* The restorer, libc's, is copied from SIG_PREEMPT, which has a handler. */
void os_action_install(int sig, void *fn, uint64_t except)
{
	struct os_action a;

	os_action_get(SIG_PREEMPT, &a);
	a.fn = fn;
	a.flags |= SA_SIGINFO | SA_ONSTACK | SA_RESTART;
	a.mask = ~except;
	os_action_set(sig, &a);
}

/* How long to wait for the reader of a descriptor that does not block. */
#define WRITE_PATIENCE_S 1

static uint32_t nobody_reads;	/* a wait was in vain: the next write does not wait */

static bool wait_for_room(int fd)
{
	struct timespec t = { load_relaxed(&nobody_reads) ? 0 : WRITE_PATIENCE_S, 0 };
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	long r;

	do
		/* t: what is left */
		r = sys5(SYS_ppoll, &p, 1, &t, NULL, _NSIG / 8);
	while (r == -EINTR);
	if (r == 0)
		store_relaxed(&nobody_reads, 1);
	return r > 0;
}

void os_write(int fd, const void *buf, size_t n)
{
	const char *p = buf;

	while (n > 0) {
		long r = sys3(SYS_write, fd, p, n);

		if (r == -EINTR || (r == -EAGAIN && wait_for_room(fd)))
			continue;
		if (r <= 0)
			return;
		store_relaxed(&nobody_reads, 0);
		p += r;
		n -= (size_t)r;
	}
}

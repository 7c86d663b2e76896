/*
 * faults.c - the shim: counts the calls that may fail, and fails those of the plan.
 *
 * It runs wherever the runtime makes a call: in signal handlers, without a P, beside
 * locks. So it uses atomics and raw calls alone.
 */
#define _GNU_SOURCE
#include "faults.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "platform/sys.h"

extern char __executable_start;

enum {
#define KIND(name, ...) KIND_##name,
#define LIBC(name, ...) LIBC_##name,
#include "kinds.h"
#undef KIND
#undef LIBC
	KINDS
};
_Static_assert(KINDS <= FAULTS_KINDS, "room in the log");

static const struct kind {
	const char *name;
	long nr;
	int arg;
	long mask, value;
} kinds[] = {
#define KIND(name, nr, arg, mask, value, ...) { #name, nr, arg, mask, value },
#define LIBC(name, ...) { "libc_" #name, -1, -1, 0, 0 },
#include "kinds.h"
#undef KIND
#undef LIBC
};

static struct { int kind; uint32_t n; int error; bool from_then_on, is_short, is_ok; } plan = { .kind = -1 };
static struct faults_log nowhere, *faults_log = &nowhere;
static bool wants_sites;

#define SHORT INT32_MIN
#define OK    (INT32_MIN + 1)

int faults_error(void)
{
	return __atomic_load_n(&faults_log->hits, __ATOMIC_RELAXED) ? plan.error : 0;
}

bool faults_any(void)
{
	return __atomic_load_n(&faults_log->hits, __ATOMIC_RELAXED) != 0;
}

int main(int argc, char **argv)
{
	if (argc != 2 || !workload_run(argv[1])) {
		dprintf(2, "faults WORKLOAD\n");
		return 4;
	}
	return 0;
}

/* Before the library's own constructors, which make calls, too. */
__attribute__((constructor(101))) static void faults_init(void)
{
	const char *s = getenv("FAULTS"), *path = getenv("FAULTS_LOG");
	char name[40], error[20], then[8] = "";

	if (path) {
		long fd = syscall_direct(SYS_openat, AT_FDCWD, (long)path, O_RDWR, 0, 0, 0);
		long at = syscall_direct(SYS_mmap, 0, sizeof *faults_log, PROT_READ | PROT_WRITE,
		                         MAP_SHARED, fd, 0);

		if (fd < 0 || (at < 0 && at > -4096)) {
			dprintf(2, "faults: %s cannot be used\n", path);
			_exit(4);
		}
		syscall_direct(SYS_close, fd, 0, 0, 0, 0, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);	/* the runner may be ended */
		faults_log = (struct faults_log *)at;
	}
	if (!s) {
		wants_sites = path != NULL;
		return;
	}
	if (sscanf(s, "%39[^:]:%u:%19[^:]:%7s", name, &plan.n, error, then) < 3) {
		dprintf(2, "FAULTS=KIND:N:ERROR[:on]\n");
		_exit(4);
	}
	plan.is_short = strcmp(error, "short") == 0;
	plan.is_ok = strcmp(error, "ok") == 0;
	plan.error = atoi(error);
	plan.from_then_on = strcmp(then, "on") == 0;
	for (int i = 0; i < KINDS; i++)
		if (strcmp(kinds[i].name, name) == 0)
			plan.kind = i;
	if (plan.kind < 0) {
		dprintf(2, "faults: no such kind: %s\n", name);
		_exit(4);
	}
}

static bool is_readable(const void *p)
{
	return syscall_direct(SYS_rt_sigprocmask, -1, (long)p, 0, 8, 0, 0) == -EINVAL;
}

/* The callers, by frame pointers, which the build keeps; relative to the program. */
static __attribute__((noinline)) void walk(uint64_t *out, int n)
{
	uintptr_t *frame = __builtin_frame_address(0);

	for (int i = -1; i < n; i++) {
		uintptr_t *up;

		if (!is_readable(frame) || !is_readable(frame + 1))
			return;
		if (i >= 0)
			out[i] = frame[1] - (uintptr_t)&__executable_start;
		up = (uintptr_t *)frame[0];
		if (up <= frame || (char *)up - (char *)frame > 1 << 20)
			return;
		frame = up;
	}
}

/* What stands for this kind and others like it. */
static int all_like(int kind)
{
	switch (kind) {
	case KIND_mmap: case KIND_mprotect: case LIBC_malloc: case LIBC_calloc:
	case LIBC_aligned_alloc: case LIBC_open_memstream: case LIBC_vasprintf:
	case LIBC_pthread_create:
		return KIND_any_memory;
	case KIND_epoll_create1: case KIND_eventfd2: case KIND_timerfd_create:
	case KIND_io_uring_setup: case KIND_userfaultfd: case KIND_pidfd_open:
	case KIND_pidfd_getfd: case KIND_openat: case KIND_fcntl_dup: case KIND_pipe2:
	case KIND_socket: case KIND_accept4: case LIBC_fopen: case LIBC_open:
	case LIBC_socket: case LIBC_pipe2:
		return KIND_any_descriptor;
	default:
		return -1;
	}
}

/* 0: the call is to be made. SHORT: with half of the length. Or the error. */
static __attribute__((noinline)) int verdict_of(int kind)
{
	uint32_t n = __atomic_add_fetch(&faults_log->count[kind], 1, __ATOMIC_RELAXED);

	if (wants_sites) {
		uint32_t i = __atomic_fetch_add(&faults_log->site_n, 1, __ATOMIC_RELAXED);

		if (i < FAULTS_SITES) {
			faults_log->sites[i].kind = (uint32_t)kind;
			faults_log->sites[i].n = n;
			walk(faults_log->sites[i].frames, 3);
		}
	}
	if (kind != plan.kind || (n != plan.n && !(plan.from_then_on && n > plan.n)))
		return 0;
	if (__atomic_fetch_add(&faults_log->hits, 1, __ATOMIC_RELAXED) == 0)
		walk(faults_log->frames, FAULTS_FRAMES);
	return plan.is_short ? SHORT : plan.is_ok ? OK : plan.error;
}

static int verdict(int kind)
{
	int all = all_like(kind), error = verdict_of(kind);

	return all >= 0 && error == 0 ? verdict_of(all) : error;
}

/* ------------------------------------------------------------- system calls */

static int kind_of(long nr, const long *args)
{
	for (int i = 0; i < KINDS; i++)
		if (kinds[i].nr == nr && (kinds[i].arg < 0 ||
		                          ((args[kinds[i].arg] & kinds[i].mask) == (kinds[i].value & kinds[i].mask))))
			return i;
	return -1;
}

/* With half of the bytes; what has one byte gets it. */
static long call_short(long nr, long a, long b, long c, long d, long e, long f)
{
	switch (nr) {
	case SYS_read: case SYS_write: case SYS_pread64: case SYS_pwrite64:
	case SYS_recvfrom: case SYS_sendto:
		return syscall_direct(nr, a, b, c > 1 ? c / 2 : c, d, e, f);
	case SYS_readv: case SYS_writev: case SYS_preadv: case SYS_pwritev:
	case SYS_preadv2: case SYS_pwritev2: {
		struct iovec one = *(struct iovec *)b;

		one.iov_len = one.iov_len > 1 ? one.iov_len / 2 : one.iov_len;
		return syscall_direct(nr, a, (long)&one, 1, d, e, f);
	}
	default:
		return syscall_direct(nr, a, b, c, d, e, f);
	}
}

long faults_call(long nr, long a, long b, long c, long d, long e, long f)
{
	int kind = kind_of(nr, (long[]){ a, b, c, d, e, f }), error;

	if (kind < 0) {
		__atomic_store_n(&faults_log->unlisted_nr, nr, __ATOMIC_RELAXED);
		__atomic_fetch_add(&faults_log->unlisted, 1, __ATOMIC_RELAXED);
		return syscall_direct(nr, a, b, c, d, e, f);
	}
	if ((nr == SYS_futex && plan.error == ETIMEDOUT && !d) ||
	    ((nr == SYS_preadv2 || nr == SYS_pwritev2) && plan.error == EAGAIN && d == -1))
		return syscall_direct(nr, a, b, c, d, e, f);	/* cannot fail so */
	error = verdict(kind);
	if (error == OK)
		return 0;
	if (error == SHORT)
		return call_short(nr, a, b, c, d, e, f);
	if (error && (nr == SYS_close || (nr == SYS_connect && error == EINTR)))
		syscall_direct(nr, a, b, c, d, e, f);
	return error ? -error : syscall_direct(nr, a, b, c, d, e, f);
}

/* ---------------------------------------------------- what libc does for us */

long __wrap_syscall(long nr, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long nr, long a, long b, long c, long d, long e, long f)
{
	long r = faults_call(nr, a, b, c, d, e, f);

	if (r < 0 && r > -4096) {
		errno = (int)-r;
		return -1;
	}
	return r;
}

#define FAILS(name, result)                  \
	do {                                 \
		int error_ = verdict(LIBC_##name); \
		if (error_ && error_ != SHORT) {   \
			errno = error_;      \
			return result;       \
		}                            \
	} while (0)
/* Those that return the error. */
#define SAYS(name)                           \
	do {                                 \
		int error_ = verdict(LIBC_##name); \
		if (error_ && error_ != SHORT)     \
			return error_;       \
	} while (0)

#define WRAP(type, name, result, parameters, arguments) \
	type __wrap_##name parameters;                  \
	type __wrap_##name parameters                   \
	{                                               \
		FAILS(name, result);                    \
		return name arguments;                  \
	}
#define WRAP_PTHREAD(name, parameters, arguments) \
	int __wrap_##name parameters;             \
	int __wrap_##name parameters              \
	{                                         \
		SAYS(name);                       \
		return name arguments;            \
	}

WRAP(void *, malloc, NULL, (size_t n), (n))
WRAP(void *, calloc, NULL, (size_t n, size_t m), (n, m))
WRAP(void *, aligned_alloc, NULL, (size_t align, size_t n), (align, n))
WRAP(FILE *, open_memstream, NULL, (char **at, size_t *n), (at, n))
WRAP(int, vasprintf, -1, (char **at, const char *fmt, va_list ap), (at, fmt, ap))
WRAP(FILE *, fopen, NULL, (const char *path, const char *mode), (path, mode))
WRAP_PTHREAD(pthread_create, (pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg),
             (t, attr, fn, arg))
WRAP_PTHREAD(pthread_attr_init, (pthread_attr_t *a), (a))
WRAP_PTHREAD(pthread_getattr_np, (pthread_t t, pthread_attr_t *a), (t, a))
WRAP_PTHREAD(pthread_key_create, (pthread_key_t *k, void (*fn)(void *)), (k, fn))
WRAP_PTHREAD(pthread_atfork, (void (*a)(void), void (*b)(void), void (*c)(void)), (a, b, c))
WRAP_PTHREAD(pthread_mutexattr_setrobust, (pthread_mutexattr_t *a, int robust), (a, robust))
WRAP_PTHREAD(getaddrinfo, (const char *host, const char *service, const struct addrinfo *hints,
             struct addrinfo **out), (host, service, hints, out))
WRAP(int, sigaction, -1, (int sig, const struct sigaction *sa, struct sigaction *old), (sig, sa, old))
WRAP(int, sigaltstack, -1, (const stack_t *ss, stack_t *old), (ss, old))
WRAP(int, open, -1, (const char *path, int flags, int mode), (path, flags, mode))
WRAP(ssize_t, pread, -1, (int fd, void *buf, size_t n, off_t off), (fd, buf, n, off))
WRAP(int, fstat, -1, (int fd, struct stat *st), (fd, st))
WRAP(int, stat, -1, (const char *path, struct stat *st), (path, st))
WRAP(int, lstat, -1, (const char *path, struct stat *st), (path, st))
WRAP(int, poll, -1, (struct pollfd *p, nfds_t n, int ms), (p, n, ms))
WRAP(int, socket, -1, (int domain, int type, int protocol), (domain, type, protocol))
WRAP(int, bind, -1, (int fd, const struct sockaddr *sa, socklen_t n), (fd, sa, n))
WRAP(int, listen, -1, (int fd, int n), (fd, n))
WRAP(int, connect, -1, (int fd, const struct sockaddr *sa, socklen_t n), (fd, sa, n))
WRAP(int, setsockopt, -1, (int fd, int level, int name, const void *v, socklen_t n), (fd, level, name, v, n))
WRAP(int, getsockopt, -1, (int fd, int level, int name, void *v, socklen_t *n), (fd, level, name, v, n))
WRAP(int, getsockname, -1, (int fd, struct sockaddr *sa, socklen_t *n), (fd, sa, n))
WRAP(int, getpeername, -1, (int fd, struct sockaddr *sa, socklen_t *n), (fd, sa, n))
WRAP(int, fcntl, -1, (int fd, int what, long arg), (fd, what, arg))
WRAP(int, pipe2, -1, (int fd[2], int flags), (fd, flags))
WRAP(int, prctl, -1, (int what, long a, long b, long c, long d), (what, a, b, c, d))
WRAP(int, getrlimit, -1, (int what, struct rlimit *out), (what, out))
WRAP(ssize_t, readlink, -1, (const char *path, char *out, size_t n), (path, out, n))
WRAP(int, ftruncate, -1, (int fd, off_t n), (fd, n))
WRAP(int, sched_getaffinity, -1, (pid_t pid, size_t n, cpu_set_t *set), (pid, n, set))
WRAP(ssize_t, read, -1, (int fd, void *buf, size_t n), (fd, buf, n))
WRAP(ssize_t, write, -1, (int fd, const void *buf, size_t n), (fd, buf, n))
WRAP(ssize_t, send, -1, (int fd, const void *buf, size_t n, int flags), (fd, buf, n, flags))
WRAP(ssize_t, recv, -1, (int fd, void *buf, size_t n, int flags), (fd, buf, n, flags))

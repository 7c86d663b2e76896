/*
 * probe.c - what the kernel offers, found out by trying.
 *
 * Each probe does what the runtime does with the feature, in small, and asks for the same
 * flags: a kernel that has a system call may still lack a flag, and a container may deny
 * what its kernel has. Nothing is left behind.
 */
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/membarrier.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "probe.h"

/* Newer than some headers. */
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif
#ifndef RWF_NOWAIT
#define RWF_NOWAIT 0x8
#endif
#ifndef RWF_NOSIGNAL
#define RWF_NOSIGNAL 0x100
#endif
#define USER_MODE_ONLY 1
#define FEATURE_MOVE   ((uint64_t)1 << 16)

bool probe_membarrier(void)
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0) == 0 &&
	       syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0) == 0;
}

/* The kernel copies a set of signals before it looks at the impossible first argument. */
static bool is_readable(const void *p)
{
	return syscall(SYS_rt_sigprocmask, -1, p, NULL, 8) < 0 && errno == EINVAL;
}

bool probe_guard_markers(void)
{
	size_t n = (size_t)sysconf(_SC_PAGESIZE);
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool works;

	if (p == MAP_FAILED)
		return false;
	works = madvise(p, n, MADV_GUARD_INSTALL) == 0 && !is_readable(p);
	munmap(p, n);
	return works;
}

bool probe_epoll_pwait2(void)
{
	struct epoll_event event;
	struct timespec zero = { 0 };
	int fd = epoll_create1(EPOLL_CLOEXEC);
	bool works = fd >= 0 && syscall(SYS_epoll_pwait2, fd, &event, 1, &zero, NULL, 8) == 0;

	close(fd);
	return works;
}

bool probe_nowait(void)
{
	char byte;
	struct iovec iov = { &byte, 1 };
	int fd[2];
	bool works;

	if (pipe2(fd, O_CLOEXEC) != 0)
		return false;
	works = syscall(SYS_preadv2, fd[0], &iov, 1L, -1L, -1L, RWF_NOWAIT) < 0 && errno == EAGAIN;
	close(fd[0]);
	close(fd[1]);
	return works;
}

bool probe_nosignal(void)
{
	struct iovec iov = { "", 1 };
	int fd[2];
	bool works;

	if (pipe2(fd, O_CLOEXEC) != 0)
		return false;
	works = syscall(SYS_pwritev2, fd[1], &iov, 1L, -1L, -1L, RWF_NOSIGNAL) == 1;
	close(fd[0]);
	close(fd[1]);
	return works;
}

static bool has_ring(struct io_uring_params p, uint32_t features)
{
	int fd = (int)syscall(SYS_io_uring_setup, 4, &p);

	if (fd < 0)
		return false;
	close(fd);
	return (p.features & features) == features;
}

bool probe_uring(void)
{
	return has_ring((struct io_uring_params){ 0 }, IORING_FEAT_NODROP | IORING_FEAT_NATIVE_WORKERS);
}

bool probe_uring_polled(void)
{
	return has_ring((struct io_uring_params){ .flags = IORING_SETUP_SQPOLL, .sq_thread_idle = 1 },
	                IORING_FEAT_SQPOLL_NONFIXED | IORING_FEAT_RW_CUR_POS | IORING_FEAT_NODROP);
}

static int userfault_by_device(void)
{
	int device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
	int fd = device < 0 ? -1 : ioctl(device, _IO(0xAA, 0x00), O_CLOEXEC | O_NONBLOCK);

	if (device >= 0)
		close(device);
	return fd;
}

bool probe_userfault(void)
{
	struct uffdio_api api = { .api = UFFD_API, .features = FEATURE_MOVE };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	bool works;

	if (fd < 0)
		fd = userfault_by_device();
	works = fd >= 0 && ioctl(fd, UFFDIO_API, &api) == 0 && (api.features & FEATURE_MOVE);
	if (fd >= 0)
		close(fd);
	return works;
}

bool probe_userfault_user_only(void)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | USER_MODE_ONLY);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* The priority is given back at once. */
bool probe_real_time(void)
{
	struct sched_param one = { .sched_priority = 1 }, none = { 0 };

	if (sched_getscheduler(0) != SCHED_OTHER)
		return true;
	return sched_setscheduler(0, SCHED_RR, &one) == 0 && sched_setscheduler(0, SCHED_OTHER, &none) == 0;
}

bool probe_proc(void)
{
	return access("/proc/self/task", R_OK | X_OK) == 0 && access("/proc/self/stat", R_OK) == 0;
}

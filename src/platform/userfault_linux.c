/*
 * userfault_linux.c - userfault.h by userfaultfd(2)
 *
 * It needs three things of the kernel:
 *
 *  - faults in system calls are served, too: this takes a privilege (CAP_SYS_PTRACE, the
 *    sysctl vm.unprivileged_userfaultfd, or access to /dev/userfaultfd)
 *  - faults at missing pages
 *  - UFFDIO_MOVE, of Linux 6.8
 *
 * If one is missing, userfault_open returns false. With GORO_DEBUG=nouserfault=1
 * evacuate.c makes no server.
 *
 * The descriptor is in a table of the server's own. A program that closes all descriptors
 * would close it otherwise, and missing pages would read as zeroes.
 *
 * Rejected: to write-protect, copy and drop a page instead of UFFDIO_MOVE. A page that a
 * device or another process is writing to by its physical address would be copied too
 * early, protected or not. The kernel knows these pages and does not move them.
 */
#define _GNU_SOURCE
#include "platform/userfault.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "platform/atomic.h"
#include "platform/os.h"
#include "platform/sys.h"

/* Some headers are older than these. */
#define FEATURE_MOVE ((uint64_t)1 << 16)
struct move {
	uint64_t dst, src, len, mode;
	int64_t moved;
};
#define IOCTL_MOVE   _IOWR(UFFDIO, 0x05, struct move)
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif
#define IOCTL_NEW_FD _IO(0xAA, 0x00)		/* of /dev/userfaultfd */

static int faults = -1;		/* the userfaultfd, in the server's table alone */
static int server_tid;

static long control(unsigned long request, void *arg)
{
	return syscall_raw(SYS_ioctl, faults, (long)request, (long)arg, 0, 0, 0);
}

static void shut(int *fd)
{
	if (*fd >= 0)
		syscall_raw(SYS_close, *fd, 0, 0, 0, 0, 0);
	*fd = -1;
}

static int open_by_device(void)
{
	long dev = syscall_raw(SYS_openat, AT_FDCWD, (long)"/dev/userfaultfd", O_RDWR | O_CLOEXEC, 0,
	                       0, 0);
	int d = (int)dev;
	long fd;

	if (dev < 0)
		return -1;
	fd = syscall_raw(SYS_ioctl, dev, IOCTL_NEW_FD, O_CLOEXEC | O_NONBLOCK, 0, 0, 0);
	shut(&d);
	return (int)fd;
}

/* Gives the thread an empty table. A copy would keep open what the program closes, and
 * the other ends of its pipes would wait. */
static bool leave_table(void)
{
	return syscall_raw(SYS_close_range, 0, ~0u, CLOSE_RANGE_UNSHARE, 0, 0, 0) == 0;
}

/* Fetches descriptor 2 from the process's table. Standard error may be a socket, which
 * cannot be opened by /proc/self/fd. */
void userfault_speak(void)
{
	long pid = syscall_raw(SYS_getpid, 0, 0, 0, 0, 0, 0);
	long process = syscall_raw(SYS_pidfd_open, pid, 0, 0, 0, 0, 0);
	long fd = syscall_raw(SYS_pidfd_getfd, process, 2, 0, 0, 0, 0);

	if (fd >= 0 && fd != 2)
		syscall_raw(SYS_dup3, fd, 2, 0, 0, 0, 0);
}

bool userfault_open(void)
{
	struct uffdio_api api = { .api = UFFD_API, .features = FEATURE_MOVE };

	store_relaxed(&server_tid, os_tid());
	if (!leave_table())
		return false;
	faults = (int)syscall_raw(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK, 0, 0, 0, 0, 0);
	if (faults < 0)
		faults = open_by_device();
	return faults >= 0 && control(UFFDIO_API, &api) == 0 && (api.features & FEATURE_MOVE);
}

int userfault_watch(void *p, size_t n)
{
	struct uffdio_register r = { .range = { (uintptr_t)p, n },
	                             .mode = UFFDIO_REGISTER_MODE_MISSING };

	return (int)control(UFFDIO_REGISTER, &r);
}

int userfault_unwatch(void *p, size_t n)
{
	struct uffdio_range r = { (uintptr_t)p, n };

	return (int)control(UFFDIO_UNREGISTER, &r);
}

/* -EAGAIN: the kernel was changing the page or its mapping meanwhile. */
int userfault_move(void *to, void *from)
{
	struct move m = { (uintptr_t)to, (uintptr_t)from, os_page_bytes, 0, 0 };
	long r;

	for (int i = 0; (r = control(IOCTL_MOVE, &m)) == -EAGAIN && i < 100; i++)
		os_yield();
	return (int)r;
}

int userfault_put(void *to, const void *from)
{
	struct uffdio_copy c = { .dst = (uintptr_t)to, .src = (uintptr_t)from,
	                         .len = os_page_bytes };

	return (int)control(UFFDIO_COPY, &c);
}

void userfault_wake(void *page)
{
	struct uffdio_range r = { (uintptr_t)page, os_page_bytes };

	control(UFFDIO_WAKE, &r);
}

size_t userfault_read(uintptr_t *addr, size_t max)
{
	struct uffd_msg msg[16];
	size_t n = max < 16 ? max : 16, count = 0;
	long r = syscall_raw(SYS_read, faults, (long)msg, (long)(n * sizeof *msg), 0, 0, 0);

	for (long i = 0; i < r / (long)sizeof *msg; i++)
		if (msg[i].event == UFFD_EVENT_PAGEFAULT)
			addr[count++] = (uintptr_t)msg[i].arg.pagefault.address;
	return count;
}

/* A poke is a signal: the program might close a descriptor. */
void userfault_sleep(int64_t timeout_ns)
{
	struct pollfd p = { faults, POLLIN, 0 };

	os_poll_or_signal(&p, 1, timeout_ns);
}

void userfault_poke(void)
{
	os_signal(load_relaxed(&server_tid), SIG_PREEMPT);
}

bool userfault_present(void *page)
{
	unsigned char there = 0;

	syscall_raw(SYS_mincore, (long)page, (long)os_page_bytes, (long)&there, 0, 0, 0);
	return there & 1;
}

/*
 * io.c - read, write and their like: the goroutine is parked, not its thread.
 *
 * A call tries first, in user code, without entering the runtime, and waits for the
 * poller only if it got EAGAIN (fd_wait.c). How to try without blocking depends on the
 * file. O_NONBLOCK works for everything that can be polled, but it belongs to the open
 * file: set on an inherited terminal or pipe, it changes what the shell and all other
 * processes with that file see. So it is left alone, and each kind of file (enum fd_kind)
 * is tried in a way of its own:
 *
 *	sockets         MSG_DONTWAIT
 *	pipes, some     RWF_NOWAIT, where the kernel has it for them (pipes: 6.4)
 *	others          poll(2) says whether it is ready; then an announced blocking
 *	                call, which blocks only if another process was faster
 *	files, disks    file.c
 *
 * A write writes everything, as a blocking write does. It returns less only if an error,
 * a deadline or a close comes in between; the next call reports those.
 *
 * SIGPIPE. Writing where nobody reads any more is -EPIPE and no signal, except on
 * descriptors 1 and 2, as in Go: a program in a pipeline is to end quietly when the next
 * one has ended. Sockets have MSG_NOSIGNAL, pipes RWF_NOSIGNAL since 6.18. Before that
 * the signal is blocked around the write and taken back. GORO_DEBUG=nonowait=1 acts as if
 * the kernel had neither RWF_NOWAIT for pipes nor RWF_NOSIGNAL.
 *
 * preadv2 and pwritev2 may be missing (an emulator) or denied (a container, a filter that
 * the program installs when it runs). Then readv and writev do without both flags. EPERM
 * may also come from the file itself; then those return it, too.
 */
#define _GNU_SOURCE
#include "io/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/time_types.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/debug.h"
#include "io/batch.h"
#include "io/file.h"
#include "platform/os.h"
#include "sched/rt.h"
#include "platform/sys.h"

#ifndef RWF_NOWAIT
#define RWF_NOWAIT 0x8
#endif
#ifndef RWF_NOSIGNAL
#define RWF_NOSIGNAL 0x100
#endif

/* ------------------------------------------------------------------- the loop */

static char order;	/* what TSan orders the two ends of a transfer by */

static ssize_t try_transfer(struct io *io);

static bool may_signal(int fd)
{
	return fd == STDOUT_FILENO || fd == STDERR_FILENO;
}

/* The largest read that is left to the P, and the largest write that is gathered: beyond
 * them the way into the kernel matters little. */
#define UNTRIED_BYTES_MAX (16 << 10)
#define BATCH_BYTES_MAX   2048

static ssize_t try_once(struct io *io, io_try *try)
{
	ssize_t r;

	tool_sent(&order);
	do
		r = try(io);
	while (unlikely(r == -EINTR));
	tool_received(&order);
	return r;
}

/* Whether the P may make the call while this goroutine waits. */
static bool may_leave(const struct io *io, size_t most)
{
	const struct fd *f = io->use.f;

	return io->plain && !io->dont_wait && io->iov->iov_len <= most &&
	       load_relaxed(&f->own) && load_relaxed(&f->kind) == FD_SOCKET;
}

/* Has the P send it, if it does that now. -EAGAIN: to be tried here. */
static ssize_t send_later(struct io *io)
{
	struct fd *f = io->use.f;
	ssize_t r;

	if (!may_leave(io, BATCH_BYTES_MAX) || may_signal(f->number))
		return -EAGAIN;
	tool_sent(&order);
	r = batch_send(f, io->iov->iov_base, io->iov->iov_len, io->flags);
	tool_received(&order);
	return r;
}

/* The first try, which may be left to the P. */
static ssize_t first_try(struct io *io, io_try *try)
{
	struct fd *f = io->use.f;
	ssize_t r;

	if (io->way == FD_WRITE)
		return (r = send_later(io)) != -EAGAIN ? r : try_once(io, try);
	if (may_leave(io, UNTRIED_BYTES_MAX) && batch_guess(f)) {
		io->use.untried = io->iov;
		return -EAGAIN;
	}
	r = try_once(io, try);
	if (batch_tried(f, r != -EAGAIN) && may_leave(io, UNTRIED_BYTES_MAX))
		io->use.untried = io->iov;
	return r;
}

ssize_t io_repeat(struct io *io, io_try *try)
{
	struct fd *f = io->use.f;

	for (bool first = true;; first = false) {
		/* Before the try: see "Waiting" in fd_wait.c. */
		uint32_t seq = fd_seq(f, io->way);
		ssize_t r = fd_check_deadline(f, io->way);

		if (unlikely(r < 0))
			return r;
		r = first ? first_try(io, try) : try_once(io, try);
		if (likely(r != -EAGAIN) || io->dont_wait)
			return r;
		r = fd_wait(&io->use, io->way, seq);
		io->use.untried = NULL;
		if (unlikely(r < 0))
			return r;
		if (io->use.done) {
			io->use.done = false;	/* the next wait may not park */
			tool_received(&order);
			return io->use.result;
		}
	}
}

ssize_t io_call(int fd, struct io *io, io_try *try)
{
	ssize_t r = fd_enter(&io->use, fd);

	if (unlikely(r < 0))
		return r;
	r = io_repeat(io, try);
	fd_leave(&io->use);
	return r;
}

/* -------------------------------------------------------------------- SIGPIPE */

/* Whether the system call with flags is missing or denied, rather than its use wrong. */
static bool is_missing(long r)
{
	return r == -ENOSYS || r == -EPERM;
}

/* What is known of RWF_NOSIGNAL; atomic. */
static uint8_t nosignal;
enum { NOSIGNAL_UNKNOWN, NOSIGNAL_NO, NOSIGNAL_YES };

static bool nosignal_works(void)
{
	struct iovec iov = { (char[]){ 0 }, 1 };
	int fd[2];

	if (debug.nonowait)
		return false;
	if (load_relaxed(&nosignal))
		return load_relaxed(&nosignal) == NOSIGNAL_YES;
	if (sys3(SYS_pipe2, fd, O_CLOEXEC, 0) < 0)
		return false;
	store_relaxed(&nosignal, sys6(SYS_pwritev2, fd[1], &iov, 1, -1, -1, RWF_NOSIGNAL) == 1
	                         ? NOSIGNAL_YES : NOSIGNAL_NO);
	sys3(SYS_close, fd[0], 0, 0);
	sys3(SYS_close, fd[1], 0, 0);
	return load_relaxed(&nosignal) == NOSIGNAL_YES;
}

/* flags: RWF_; without any, writev, as pwritev2 may be missing. */
static long loud_write(int fd, const struct iovec *iov, int n, int flags)
{
	return flags ? sys6(SYS_pwritev2, fd, iov, n, -1, -1, flags) : sys3(SYS_writev, fd, iov, n);
}

static long masked_write(int fd, const struct iovec *iov, int n, int flags)
{
	uint64_t pipe_set = UINT64_C(1) << (SIGPIPE - 1), old, before = 0;
	struct __kernel_timespec zero = { 0, 0 };
	long r;

	sys4(SYS_rt_sigpending, &before, sizeof before, 0, 0);
	sys4(SYS_rt_sigprocmask, SIG_BLOCK, &pipe_set, &old, sizeof old);
	r = loud_write(fd, iov, n, flags);
	if (r == -EPIPE && !(before & pipe_set))
		sys4(SYS_rt_sigtimedwait, &pipe_set, NULL, &zero, sizeof pipe_set);
	sys4(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, sizeof old);
	return r;
}

static long quiet_write(int fd, const struct iovec *iov, int n, int flags)
{
	long r;

	if (may_signal(fd))
		return loud_write(fd, iov, n, flags);
	if (!nosignal_works())
		return masked_write(fd, iov, n, flags);
	r = sys6(SYS_pwritev2, fd, iov, n, -1, -1, flags | RWF_NOSIGNAL);
	if (unlikely(is_missing(r))) {
		store_relaxed(&nosignal, NOSIGNAL_UNKNOWN);	/* to be asked again */
		return masked_write(fd, iov, n, flags);
	}
	/* an eventfd, say, takes no flags and raises no signal */
	return r == -EOPNOTSUPP && !flags ? loud_write(fd, iov, n, 0) : r;
}

/* ------------------------------------------------------------ one transfer */

static long socket_transfer(int fd, const struct io *io)
{
	struct msghdr msg = { .msg_iov = (struct iovec *)(uintptr_t)io->iov,
	                      .msg_iovlen = (size_t)io->iov_n };
	int flags = MSG_DONTWAIT | (io->way == FD_WRITE && !may_signal(fd) ? MSG_NOSIGNAL : 0);

	if (io->iov_n != 1)
		return sys3(io->way == FD_READ ? SYS_recvmsg : SYS_sendmsg, fd, &msg, flags);
	return sys6(io->way == FD_READ ? SYS_recvfrom : SYS_sendto, fd, io->iov->iov_base,
	            io->iov->iov_len, flags, NULL, NULL);
}

static long nowait_transfer(int fd, const struct io *io)
{
	if (debug.nonowait)
		return -EOPNOTSUPP;
	if (io->way == FD_WRITE)
		return quiet_write(fd, io->iov, io->iov_n, RWF_NOWAIT);
	return sys6(SYS_preadv2, fd, io->iov, io->iov_n, -1, -1, RWF_NOWAIT);
}

static int64_t deadline_of(const struct fd *f, enum fd_way way)
{
	int64_t d = fd_deadline(f, way);

	return d ? d : GORO_FOREVER;
}

static long file_transfer(const struct io *io)
{
	struct fd *f = io->use.f;

	return file_run(f, &(struct file_op){
		.what = io->way == FD_READ ? FILE_READ : FILE_WRITE, .fd = f->number,
		.iov = io->iov, .iov_n = io->iov_n, .off = -1, .deadline = deadline_of(f, io->way) });
}

/* poll(2) without waiting: the events, or -errno. */
static int poll_now(int fd, int events)
{
	struct pollfd p = { .fd = fd, .events = (short)events };
	struct __kernel_timespec zero = { 0, 0 };
	long r = sys5(SYS_ppoll, &p, 1, &zero, NULL, _NSIG / 8);

	if (r < 0)
		return (int)r;
	return p.revents & POLLNVAL ? -EBADF : p.revents;
}

/* If poll says ready, PIPE_BUF bytes fit. A write of at most that must not be divided. A
 * longer one is cut: neither a close nor a deadline can end a blocked write. */
static long capped_write(int fd, const struct iovec *iov, int n)
{
	struct iovec first;

	if (io_iov_total(iov, (size_t)n) <= PIPE_BUF)
		return quiet_write(fd, iov, n, 0);
	first = *iov;
	if (first.iov_len > PIPE_BUF)
		first.iov_len = PIPE_BUF;
	return quiet_write(fd, &first, 1, 0);
}

static long blocking_transfer(const struct io *io, struct fd_more *more)
{
	struct fd *f = io->use.f;
	long r;

	fetch_add_seqcst(&more->blocked, 1);
	goro_syscall_enter();
	if (io->way == FD_READ)
		r = sys3(SYS_readv, f->number, io->iov, io->iov_n);
	else
		r = capped_write(f->number, io->iov, io->iov_n);
	goro_syscall_exit();
	fetch_add_seqcst(&more->blocked, -1);
	return r;
}

/* A file that is not open for this way is never ready: -EBADF, as from read and write. */
static long why_not_ready(int fd, enum fd_way way)
{
	long flags = sys3(SYS_fcntl, fd, F_GETFL, 0);

	if (flags < 0)
		return flags;
	return (flags & O_ACCMODE) == (way == FD_READ ? O_WRONLY : O_RDONLY) ? -EBADF : -EAGAIN;
}

/* One goroutine at a time, so that no other takes what is ready in between. */
static long poll_first_transfer(const struct io *io)
{
	struct fd *f = io->use.f;
	struct fd_more *more = fd_more(f);
	long r;

	if (!more)
		return -ENOMEM;
	goro_mutex_lock(&more->turn[io->way]);
	r = poll_now(f->number, io->way == FD_READ ? POLLIN : POLLOUT);
	if (r > 0)
		r = blocking_transfer(io, more);
	else if (r == 0)
		r = why_not_ready(f->number, io->way);
	goro_mutex_unlock(&more->turn[io->way]);
	return r;
}

static ssize_t try_transfer(struct io *io)
{
	struct fd *f = io->use.f;
	int fd = f->number;
	long r;

	for (;;)
		switch (load_relaxed(&f->kind)) {
		case FD_SOCKET:
			r = socket_transfer(fd, io);
			if (likely(r != -ENOTSOCK))
				return r;
			if ((r = fd_look_again(&io->use)) < 0)
				return r;
			break;
		case FD_NOWAIT:
			r = nowait_transfer(fd, io);
			if (r != -EOPNOTSUPP && !is_missing(r))
				return r;
			store_relaxed(&f->kind, FD_POLL_FIRST);
			break;
		case FD_POLL_FIRST:
			return poll_first_transfer(io);
		case FD_FILE:
			return file_transfer(io);
		default:
			if ((r = fd_look_again(&io->use)) < 0)
				return r;
		}
}

/* ---------------------------------------------------------------- everything */

void io_iov_from(struct io *io, const struct iovec *iov, int n, size_t at, struct iovec *first)
{
	while (n > 1 && at >= iov->iov_len) {
		at -= iov->iov_len;
		iov++;
		n--;
	}
	if (at > 0) {
		*first = (struct iovec){ (char *)iov->iov_base + at, iov->iov_len - at };
		iov = first;
		n = 1;
	}
	io->iov = iov;
	io->iov_n = n;
}

ssize_t io_iov_total(const struct iovec *iov, size_t n)
{
	size_t total = 0;

	if (n > IOV_MAX)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		total += iov[i].iov_len;
		if (total > SSIZE_MAX || iov[i].iov_len > SSIZE_MAX)
			return -EINVAL;
	}
	return (ssize_t)total;
}

ssize_t io_call_all(int fd, struct io *io, io_try *try, const struct iovec *iov, int n,
                    size_t total, bool full)
{
	struct iovec first;
	ssize_t r = fd_enter(&io->use, fd);
	size_t done = 0;

	if (r < 0)
		return r;
	do {
		io_iov_from(io, iov, n, done, &first);
		r = io_repeat(io, try);
		if (r > 0)
			done += (size_t)r;
	} while (r > 0 && done < total);
	fd_leave(&io->use);
	return r < 0 && (full || done == 0) ? r : (ssize_t)done;
}

ssize_t goro_read(int fd, void *buf, size_t n)
{
	struct iovec iov = { buf, n };
	struct io io = { .way = FD_READ, .iov = &iov, .iov_n = 1, .plain = true };

	if (unlikely(n == 0))	/* a read of no bytes never waits */
		return sys3(SYS_read, fd, buf, 0);
	return io_call(fd, &io, try_transfer);
}

ssize_t goro_readv(int fd, const struct iovec *iov, int n)
{
	struct io io = { .way = FD_READ, .iov = iov, .iov_n = n };
	ssize_t total = io_iov_total(iov, (size_t)n);

	if (total <= 0)
		return total < 0 ? total : sys3(SYS_read, fd, NULL, 0);
	return io_call(fd, &io, try_transfer);
}

ssize_t goro_writev(int fd, const struct iovec *iov, int n)
{
	struct io io = { .way = FD_WRITE };
	ssize_t total = io_iov_total(iov, (size_t)n);

	if (total < 0)
		return total;
	return io_call_all(fd, &io, try_transfer, iov, n, (size_t)total, false);
}

static ssize_t transfer_all(int fd, enum fd_way way, const void *buf, size_t n, bool full)
{
	struct iovec iov = { (void *)(uintptr_t)buf, n };
	struct io io = { .way = way, .plain = true };

	return io_call_all(fd, &io, try_transfer, &iov, 1, n, full);
}

ssize_t goro_write(int fd, const void *buf, size_t n)
{
	return transfer_all(fd, FD_WRITE, buf, n, false);
}

ssize_t goro_read_full(int fd, void *buf, size_t n)
{
	return n == 0 ? 0 : transfer_all(fd, FD_READ, buf, n, true);
}

ssize_t goro_write_full(int fd, const void *buf, size_t n)
{
	return n == 0 ? 0 : transfer_all(fd, FD_WRITE, buf, n, true);
}

/* -------------------------------------------------------------------- files */

static ssize_t file_call(int fd, struct file_op *op, enum fd_way way)
{
	struct fd_use u;
	ssize_t r = fd_enter(&u, fd);

	if (r < 0)
		return r;
	r = fd_check_deadline(u.f, way);
	if (r == 0) {
		op->fd = fd;
		op->deadline = deadline_of(u.f, way);
		r = file_run(u.f, op);
	}
	fd_leave(&u);
	return r;
}

ssize_t goro_pread(int fd, void *buf, size_t n, off_t off)
{
	struct file_op op = { .what = FILE_READ, .iov = &(struct iovec){ buf, n }, .iov_n = 1,
	                      .off = off };

	return off < 0 ? -EINVAL : file_call(fd, &op, FD_READ);
}

ssize_t goro_pwrite(int fd, const void *buf, size_t n, off_t off)
{
	struct file_op op = { .what = FILE_WRITE, .iov_n = 1, .off = off,
	                      .iov = &(struct iovec){ (void *)(uintptr_t)buf, n } };

	return off < 0 ? -EINVAL : file_call(fd, &op, FD_WRITE);
}

int goro_fsync(int fd)
{
	struct file_op op = { .what = FILE_FSYNC };

	return (int)file_call(fd, &op, FD_WRITE);
}

int goro_open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	int fd;

	if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE) {
		va_list args;

		va_start(args, flags);
		mode = va_arg(args, mode_t);
		va_end(args);
	}
	fd = file_open(path, flags | O_CLOEXEC, mode);
	if (fd >= 0)
		fd_made(fd, FD_UNKNOWN);
	return fd;
}

/* --------------------------------------------------------------------- poll */

static unsigned what_of(int events)
{
	unsigned what = events & POLLOUT ? NETPOLL_WRITE : 0;

	/* errors and hang-ups are always waited for, and reported both ways */
	return what == 0 || events & (POLLIN | POLLPRI | POLLRDHUP) ? what | NETPOLL_READ : what;
}

static int poll_repeat(struct fd_use *u, int events, int64_t deadline)
{
	for (;;) {
		uint32_t seq[2] = { fd_seq(u->f, FD_READ), fd_seq(u->f, FD_WRITE) };
		int r = poll_now(u->f->number, events);

		if (r == -EINTR)
			continue;
		if (r != 0)
			return r;
		if (deadline <= os_now())
			return 0;
		r = fd_wait_until(u, what_of(events), seq, deadline);
		if (r < 0)
			return r == -ETIMEDOUT ? 0 : r;
	}
}

int goro_poll(int fd, int events, int64_t deadline)
{
	struct fd_use u;
	int r = fd_enter(&u, fd);

	if (r < 0)
		return r;
	r = poll_repeat(&u, events, deadline);
	fd_leave(&u);
	return r;
}

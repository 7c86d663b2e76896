/*
 * socket.c - the calls that only sockets have.
 *
 * As in io.c, each call is tried with MSG_DONTWAIT and repeated when the poller reports
 * an event. accept and connect have no such flag: they need O_NONBLOCK, which the sockets
 * have that goro's calls make. On a socket that the program made, accept sets it for
 * good, as a program that shares a listening socket must expect that a connection is gone
 * already; connect sets it for the duration of the call.
 *
 * What goro_socket and goro_accept make is also closed on exec, as in Go.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "io/io.h"
#include "platform/os.h"
#include "sched/rt.h"
#include "platform/sys.h"

int goro_socket(int domain, int type, int protocol)
{
	int fd = (int)sys3(SYS_socket, domain, type | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);

	if (fd >= 0)
		fd_made(fd, FD_SOCKET);
	return fd;
}

/* 1: O_NONBLOCK was set already; 0: it is set now; or -errno. */
static int set_nonblock(int fd)
{
	long flags = sys3(SYS_fcntl, fd, F_GETFL, 0);

	if (flags < 0 || flags & O_NONBLOCK)
		return flags < 0 ? (int)flags : 1;
	return (int)sys3(SYS_fcntl, fd, F_SETFL, flags | O_NONBLOCK);
}

/* ------------------------------------------------------------------- accept */

static ssize_t try_accept(struct io *io)
{
	int fd = io->use.f->number;
	long r;

	if (!load_relaxed(&io->use.f->own) && (r = set_nonblock(fd)) < 0)
		return r;
	do
		r = syscall_raw(SYS_accept4, fd, (long)io->addr, (long)io->addr_len,
		                SOCK_CLOEXEC | SOCK_NONBLOCK, 0, 0);
	while (r == -ECONNABORTED);	/* that connection is gone already */
	return r;
}

int goro_accept(int fd, struct sockaddr *addr, socklen_t *len)
{
	struct io io = { .way = FD_READ, .addr = addr, .addr_len = len };
	int r = (int)io_call(fd, &io, try_accept);

	if (r >= 0)
		fd_made(r, FD_SOCKET);
	return r;
}

/* ------------------------------------------------------------------ connect */

static int socket_error(int fd)
{
	int error = 0;
	socklen_t len = sizeof error;
	long r = sys5(SYS_getsockopt, fd, SOL_SOCKET, SO_ERROR, &error, &len);

	return r < 0 ? (int)r : -error;
}

/* Any other error than ENOTCONN says nothing about the connection. */
static bool is_connected(int fd)
{
	struct sockaddr_storage peer;
	socklen_t len = sizeof peer;

	return sys3(SYS_getpeername, fd, &peer, &len) != -ENOTCONN;
}

/* Whether a connection that was begun is made by now. */
static ssize_t try_connected(struct io *io)
{
	int fd = io->use.f->number;
	int r = socket_error(fd);

	if (r < 0)
		return r;
	return is_connected(fd) ? 0 : -EAGAIN;
}

static int connect_nonblock(int fd, const struct sockaddr *addr, socklen_t len, bool own)
{
	int was = own ? 1 : set_nonblock(fd);
	long r, flags;

	if (was < 0)
		return was;
	r = sys3(SYS_connect, fd, addr, len);
	if (was == 0 && (flags = sys3(SYS_fcntl, fd, F_GETFL, 0)) >= 0)
		sys3(SYS_fcntl, fd, F_SETFL, flags & ~(long)O_NONBLOCK);
	return (int)r;
}

/* A local socket whose queue is full says EAGAIN, and no event says when it has room. So
 * connect is tried again after a pause. */
#define FULL_FIRST_NS (GORO_MILLISECOND / 4)
#define FULL_MAX_NS   (16 * GORO_MILLISECOND)

static int connect_repeat(struct io *io, const struct sockaddr *addr, socklen_t len)
{
	struct fd *f = io->use.f;
	int64_t pause = FULL_FIRST_NS;

	for (;;) {
		uint32_t seq = fd_seq(f, FD_WRITE);
		int r = fd_check_deadline(f, FD_WRITE);

		if (r < 0)
			return r;
		r = connect_nonblock(f->number, addr, len, load_relaxed(&f->own));
		/* After EINTR the connection is made in the background, too. */
		if (r == -EINPROGRESS || r == -EINTR) {
			r = fd_wait(&io->use, FD_WRITE, seq);
			return r < 0 ? r : (int)io_repeat(io, try_connected);
		}
		if (r != -EAGAIN)
			return r;
		r = fd_wait_until(&io->use, NETPOLL_WRITE, &(uint32_t[]){ 0, seq }[0],
		                  os_now() + pause);
		if (r < 0 && r != -ETIMEDOUT)
			return r;
		if (pause < FULL_MAX_NS)
			pause *= 2;
	}
}

int goro_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct io io = { .way = FD_WRITE };
	int r = fd_enter(&io.use, fd);

	if (r < 0)
		return r;
	r = connect_repeat(&io, addr, len);
	fd_leave(&io.use);
	return r;
}

/* ---------------------------------------------------------- receive and send */

static ssize_t try_recvfrom(struct io *io)
{
	return sys6(SYS_recvfrom, io->use.f->number, io->iov->iov_base, io->iov->iov_len,
	            io->flags | MSG_DONTWAIT, io->addr, io->addr_len);
}

static ssize_t try_sendto(struct io *io)
{
	return sys6(SYS_sendto, io->use.f->number, io->iov->iov_base, io->iov->iov_len,
	            io->flags | MSG_DONTWAIT | MSG_NOSIGNAL, io->addr,
	            io->addr ? *io->addr_len : 0);
}

static ssize_t try_recvmsg(struct io *io)
{
	return sys3(SYS_recvmsg, io->use.f->number, io->msg, io->flags | MSG_DONTWAIT);
}

/* Control data goes with the first bytes only. */
static ssize_t try_sendmsg(struct io *io)
{
	static struct msghdr rest;
	struct msghdr msg = *io->msg;
	long r;

	msg.msg_iov = (struct iovec *)(uintptr_t)io->iov;
	msg.msg_iovlen = (size_t)io->iov_n;
	r = sys3(SYS_sendmsg, io->use.f->number, &msg, io->flags | MSG_DONTWAIT | MSG_NOSIGNAL);
	if (r > 0)
		io->msg = &rest;
	return r;
}

/* The queue of errors is never waited for. */
static bool never_waits(int flags)
{
	return flags & (MSG_DONTWAIT | MSG_ERRQUEUE);
}

static bool is_stream(int fd)
{
	int type = 0;
	socklen_t len = sizeof type;

	return sys5(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_STREAM;
}

ssize_t goro_recvfrom(int fd, void *buf, size_t n, int flags, struct sockaddr *addr,
                      socklen_t *len)
{
	struct iovec iov = { buf, n };
	struct io io = { .way = FD_READ, .flags = flags, .dont_wait = never_waits(flags),
	                 .iov = &iov, .iov_n = 1, .addr = addr, .addr_len = len,
	                 .plain = !addr && flags == 0 && n > 0 };

	/* MSG_WAITALL: waits for the rest, too. Not with MSG_PEEK, which would find the
	 * same bytes again, and not for goro_recvmsg. */
	if (flags & MSG_WAITALL && !(flags & MSG_PEEK) && !io.dont_wait && n > 0 && is_stream(fd))
		return io_call_all(fd, &io, try_recvfrom, &iov, 1, n, false);
	return io_call(fd, &io, try_recvfrom);
}

ssize_t goro_recv(int fd, void *buf, size_t n, int flags)
{
	return goro_recvfrom(fd, buf, n, flags, NULL, NULL);
}

/* With these flags another thread may make the call, as it may a write. */
#define SEND_FLAGS (MSG_NOSIGNAL | MSG_EOR)

/* A datagram is sent whole, and of a stream all bytes, as by a blocking call. */
ssize_t goro_sendto(int fd, const void *buf, size_t n, int flags, const struct sockaddr *addr,
                    socklen_t len)
{
	struct io io = { .way = FD_WRITE, .flags = flags, .dont_wait = never_waits(flags),
	                 .addr = (void *)(uintptr_t)addr, .addr_len = &len,
	                 .plain = !addr && !(flags & ~SEND_FLAGS) };
	struct iovec iov = { (void *)(uintptr_t)buf, n };

	return io_call_all(fd, &io, try_sendto, &iov, 1, n, false);
}

ssize_t goro_send(int fd, const void *buf, size_t n, int flags)
{
	return goro_sendto(fd, buf, n, flags, NULL, 0);
}

ssize_t goro_recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct io io = { .way = FD_READ, .flags = flags, .dont_wait = never_waits(flags),
	                 .msg = msg };

	return io_call(fd, &io, try_recvmsg);
}

ssize_t goro_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct io io = { .way = FD_WRITE, .flags = flags, .dont_wait = never_waits(flags),
	                 .msg = (struct msghdr *)(uintptr_t)msg };
	ssize_t total = io_iov_total(msg->msg_iov, msg->msg_iovlen);

	if (total < 0)
		return total;
	return io_call_all(fd, &io, try_sendmsg, msg->msg_iov, (int)msg->msg_iovlen,
	                   (size_t)total, false);
}

/*
 * socket.c - the calls that only sockets have.
 *
 * As in io.c, each is tried with MSG_DONTWAIT and repeated when the poller says so.
 * accept and connect have no such flag: they need O_NONBLOCK, which the sockets that
 * our own calls make have. On one that the program made, accept sets it for good (who
 * shares a listening socket has to expect that a connection is gone already) and
 * connect for the moment of the call.
 *
 * What goro_socket and goro_accept make is also closed on exec, as in Go.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "io.h"
#include "os.h"
#include "rt.h"
#include "sys.h"

int goro_socket(int domain, int type, int protocol)
{
	int fd = (int)sys3(SYS_socket, domain, type | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);

	if (fd >= 0)
		fd_made(fd, FD_SOCKET);
	return fd;
}

/* Whether O_NONBLOCK was set already, or -errno. */
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
	while (r == -ECONNABORTED);	/* it is gone already: the next */
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

static bool is_connected(int fd)
{
	struct sockaddr_storage peer;
	socklen_t len = sizeof peer;

	return sys3(SYS_getpeername, fd, &peer, &len) == 0;
}

/* The connection is being made: is it, by now? */
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

/* A local socket whose queue is full says EAGAIN, and no event says when it no longer
 * is: one asks again after a while. */
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
		if (r == -EINPROGRESS) {
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

static ssize_t try_sendmsg(struct io *io)
{
	return sys3(SYS_sendmsg, io->use.f->number, io->msg, io->flags | MSG_DONTWAIT | MSG_NOSIGNAL);
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

/* With MSG_WAITALL the rest is waited for as well; not to be had with MSG_PEEK, which
 * would find the same again, and not from goro_recvmsg. */
static ssize_t recv_all(struct io *io, char *buf, size_t n)
{
	size_t done = 0;
	ssize_t r;

	do {
		io->iov = &(struct iovec){ buf + done, n - done };
		r = io_repeat(io, try_recvfrom);
		if (r > 0)
			done += (size_t)r;
	} while (r > 0 && done < n);
	return r < 0 && done == 0 ? r : (ssize_t)done;
}

ssize_t goro_recvfrom(int fd, void *buf, size_t n, int flags, struct sockaddr *addr,
                      socklen_t *len)
{
	struct iovec iov = { buf, n };
	struct io io = { .way = FD_READ, .flags = flags, .dont_wait = never_waits(flags),
	                 .iov = &iov, .addr = addr, .addr_len = len };
	ssize_t r;

	if (!(flags & MSG_WAITALL) || flags & MSG_PEEK || io.dont_wait || n == 0 || !is_stream(fd))
		return io_call(fd, &io, try_recvfrom);
	r = fd_enter(&io.use, fd);
	if (r < 0)
		return r;
	r = recv_all(&io, buf, n);
	fd_leave(&io.use);
	return r;
}

ssize_t goro_recv(int fd, void *buf, size_t n, int flags)
{
	return goro_recvfrom(fd, buf, n, flags, NULL, NULL);
}

/* With these it can be put off as well as a write. */
#define POST_FLAGS (MSG_NOSIGNAL | MSG_EOR)

/* A datagram goes out whole; of a stream the rest follows, as from a blocking call. */
ssize_t goro_sendto(int fd, const void *buf, size_t n, int flags, const struct sockaddr *addr,
                    socklen_t len)
{
	struct io io = { .way = FD_WRITE, .flags = flags, .dont_wait = never_waits(flags),
	                 .addr = (void *)(uintptr_t)addr, .addr_len = &len,
	                 .posts = !addr && !(flags & ~POST_FLAGS) };
	const char *from = buf;
	size_t done = 0;
	ssize_t r = fd_enter(&io.use, fd);

	if (r < 0)
		return r;
	do {
		struct iovec iov = { (void *)(uintptr_t)(from + done), n - done };

		io.iov = &iov;
		r = io_repeat(&io, try_sendto);
		if (r > 0)
			done += (size_t)r;
	} while (r > 0 && done < n);
	fd_leave(&io.use);
	return r < 0 && done == 0 ? r : (ssize_t)done;
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

/* What goes with the bytes goes with the first of them. */
static ssize_t sendmsg_rest(struct io *io, const struct msghdr *msg, size_t total)
{
	struct msghdr rest = { .msg_iov = NULL };
	size_t done = 0;
	struct iovec first;
	ssize_t r;

	while ((r = io_repeat(io, try_sendmsg)) > 0 && (done += (size_t)r) < total) {
		io_iov_from(io, msg->msg_iov, (int)msg->msg_iovlen, done, &first);
		rest.msg_iov = (struct iovec *)(uintptr_t)io->iov;
		rest.msg_iovlen = (size_t)io->iov_n;
		io->msg = &rest;
	}
	return r < 0 && done == 0 ? r : (ssize_t)done;
}

ssize_t goro_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct io io = { .way = FD_WRITE, .flags = flags, .dont_wait = never_waits(flags),
	                 .msg = (struct msghdr *)(uintptr_t)msg };
	ssize_t total = io_iov_total(msg->msg_iov, msg->msg_iovlen);
	ssize_t r = total < 0 ? total : fd_enter(&io.use, fd);

	if (r < 0)
		return r;
	r = sendmsg_rest(&io, msg, (size_t)total);
	fd_leave(&io.use);
	return r;
}

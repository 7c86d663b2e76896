/*
 * goro/io.h - files, sockets and names; calls that block.
 *
 * Part of goro.h, which says what holds for all of it. Include that one.
 */
#ifndef GORO_H_IO
#define GORO_H_IO

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The POSIX calls of the same names, parking the goroutine instead of the
 * thread. The result, or -errno; -ETIMEDOUT past the descriptor's deadline.
 *
 * Any descriptor will do: sockets, pipes, terminals, eventfds, regular files,
 * inherited ones; what the program opened itself is taken in on first use, and
 * O_NONBLOCK need not be set (only accept sets it). Those made by the calls below are
 * non-blocking and closed on exec. Reading and writing may go on at once, in any
 * number of goroutines.
 *
 * Writes (and sends, on streams) write everything, as a blocking write does; less
 * only if an error, a deadline or a close came in between, which the next call
 * reports. Where nobody reads any more the result is -EPIPE and there is no
 * SIGPIPE, except from goro_write and goro_writev on descriptors 1 and 2. */
GORO_API ssize_t goro_read(int fd, void *buf, size_t n);
GORO_API ssize_t goro_write(int fd, const void *buf, size_t n);
GORO_API ssize_t goro_readv(int fd, const struct iovec *iov, int n);
GORO_API ssize_t goro_writev(int fd, const struct iovec *iov, int n);
/* As io.ReadFull: n, or less if the end came first, or -errno even if something was
 * read before. */
GORO_API ssize_t goro_read_full(int fd, void *buf, size_t n);
GORO_API ssize_t goro_write_full(int fd, const void *buf, size_t n);   /* n or -errno */

/* Regular files: other goroutines run while the disk works. */
GORO_API int goro_open(const char *path, int flags, ...);
GORO_API ssize_t goro_pread(int fd, void *buf, size_t n, off_t off);
GORO_API ssize_t goro_pwrite(int fd, const void *buf, size_t n, off_t off);
GORO_API int goro_fsync(int fd);

/* Wakes everyone blocked on the descriptor with -ECANCELED and closes it when they
 * have left, before which the number is not free: nobody who was in a call on it
 * ever touches another file that gets the same number. What the calls here made
 * must be closed by this, not by close(2). */
GORO_API int goro_close(int fd);

GORO_API int goro_socket(int domain, int type, int protocol);
GORO_API int goro_accept(int fd, struct sockaddr *addr, socklen_t *len);
GORO_API int goro_connect(int fd, const struct sockaddr *addr, socklen_t len);
GORO_API ssize_t goro_recv(int fd, void *buf, size_t n, int flags);
GORO_API ssize_t goro_send(int fd, const void *buf, size_t n, int flags);
GORO_API ssize_t goro_recvfrom(int fd, void *buf, size_t n, int flags,
                               struct sockaddr *addr, socklen_t *len);
GORO_API ssize_t goro_sendto(int fd, const void *buf, size_t n, int flags,
                             const struct sockaddr *addr, socklen_t len);
GORO_API ssize_t goro_recvmsg(int fd, struct msghdr *msg, int flags);
GORO_API ssize_t goro_sendmsg(int fd, const struct msghdr *msg, int flags);

/* Deadlines (goro_now() times) for pending and future calls; GORO_FOREVER removes one.
 * Past its deadline every call fails with -ETIMEDOUT at once, whatever there is to
 * read, until another one is set. */
GORO_API int goro_set_deadline(int fd, int64_t read_deadline, int64_t write_deadline);
/* Waits for POLLIN, POLLOUT, ... on one descriptor: the events, 0 past deadline, which is
 * a goro_now() time. */
GORO_API int goro_poll(int fd, int events, int64_t deadline);

/* net.Listen and net.Dial: a descriptor for the calls above, or -errno.
 *
 * The networks are "tcp" and "udp", with a 4 or a 6 behind them for IPv4 or IPv6
 * alone, "unix", "unixgram" and "unixpacket". The address is "host:port" or
 * "[host]:port", the host in digits or a name, the port a number or a service's name;
 * for unix a path, or a name in the abstract namespace with an @ before it.
 *
 * Without a host, ":8080", one listens on all addresses of this machine, IPv4 and
 * IPv6, and dials this machine. Port 0 is for the system to choose: getsockname tells.
 * A listener on "udp" or "unixgram" is a socket to receive from. The file of a unix
 * listener stays when it is closed.
 *
 * Names are looked up without holding up other goroutines. If one has several
 * addresses, dial tries them in turn, and IPv4 beside IPv6 if one of them is slow; the
 * deadline, a goro_now() time, is for all of it.
 *
 *	-EINVAL         no such network or service; no port, or a bad one
 *	-ENOENT         no such host
 *	-EAGAIN         the name servers do not answer for now
 *	-EIO            they said that they cannot
 *	-EAFNOSUPPORT   no address of the kind that the network asks for
 *	-ETIMEDOUT      the deadline has passed
 * or what connect, bind and the like say; of several addresses, for the first. */
GORO_API int goro_listen(const char *network, const char *address);
GORO_API int goro_dial(const char *network, const char *address, int64_t deadline);

/* --------------------------------------------------------- blocking calls */

/* Any call that blocks in the kernel gives up the processor to the others, even
 * without these; announced, it does so at once. Runs fn(arg) on this thread and
 * stack. */
GORO_API void goro_blocking(void (*fn)(void *), void *arg);
/* The same for code that does not fit in one function. Must pair; in between,
 * no other goro_ call. */
GORO_API void goro_syscall_enter(void);
GORO_API void goro_syscall_exit(void);

/* For code that goes round the calls of others, as the library goro-calls(7) does.
 * True: the caller is a goroutine, outside of goro and of announced calls, and another
 * goroutine waits for its processor, or may soon: for a timer or a descriptor. */
GORO_API bool goro_is_awaited(void);
/* The caller is about to sleep in the kernel: if goro_is_awaited, gives its processor to
 * another thread now. The caller goes on without one, on its thread, and gets in line at
 * its next goro call, or when it has computed for a while. Changes no errno. */
GORO_API void goro_hand_over(void);

#ifdef __cplusplus
}
#endif

#endif

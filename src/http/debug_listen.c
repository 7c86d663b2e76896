/*
 * debug_listen.c - where the debug server listens
 *
 * Sockets that were left
 *
 * A process that ends leaves the file of its Unix socket behind, and no process can bind
 * there until the file is removed. debug_listen removes it only if it is a socket to
 * which nothing is bound any more: another file is the user's, named by mistake.
 *
 * Whether a socket is bound is found out by a datagram socket. The kernel refuses its
 * connection if no socket is bound there. If a stream socket is, even one that does not
 * listen yet, the error is EPROTOTYPE.
 *
 * To look, to remove and to bind are three steps. Servers that start at the same time
 * take turns at them by a lock (flock) on the directory, so that none removes what
 * another has just bound. A server that binds without the lock did so because there was
 * no file, so no other was about to remove one. Rejected: a lock file beside the socket,
 * which is one more file that is left; binding to another name and renaming, which
 * replaces any file there.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <goro.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "platform/own_fd.h"
#include "http/debug_http.h"

/* How long a server that starts waits for the lock. */
#define TURN_NS GORO_SECOND

/* ------------------------------------------------------------ Unix sockets */

static bool is_bound(const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool refused;

	if (fd < 0 || strlen(path) >= sizeof sa.sun_path)
		return true;
	memcpy(sa.sun_path, path, strlen(path));
	refused = connect(fd, (struct sockaddr *)&sa, sizeof sa) != 0 && errno == ECONNREFUSED;
	close(fd);
	return !refused;
}

static bool is_left_over(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) && !is_bound(path);
}

/* Opens and locks path's directory until it is closed. -1: another server holds the lock,
 * or the directory cannot be read. */
static int lock_directory(const char *path)
{
	const char *slash = strrchr(path, '/');
	int64_t end = goro_now() + TURN_NS;
	char directory[PATH_MAX];
	int fd;

	snprintf(directory, sizeof directory, "%.*s",
	         slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
		if (errno != EWOULDBLOCK || goro_now() >= end) {
			close(fd);
			return -1;
		}
		goro_sleep(GORO_MILLISECOND);
	}
	return fd;
}

static int listen_unix(const char *path)
{
	int fd = goro_listen("unix", path), directory;

	if (fd != -EADDRINUSE || path[0] == '@')
		return fd;
	directory = lock_directory(path);
	if (directory < 0)
		return fd;
	if (is_left_over(path) && unlink(path) == 0)
		fd = goro_listen("unix", path);
	close(directory);
	return fd;
}

/* --------------------------------------------------------------- addresses */

/* Puts 127.0.0.1 before "6060" and ":6060". False: the address is too long. */
static bool complete_address(const char *address, char *out, size_t max)
{
	bool port_only = address[strspn(address, "0123456789")] == '\0';
	const char *host = port_only ? "127.0.0.1:" : address[0] == ':' ? "127.0.0.1" : "";

	return snprintf(out, max, "%s%s", host, address) < (int)max;
}

static int listen_on(const char *address)
{
	char full[300];

	if (!address || !*address)
		return -EINVAL;
	if (strncmp(address, "unix:", 5) == 0)
		return listen_unix(address + 5);
	if (!complete_address(address, full, sizeof full))
		return -EINVAL;
	return goro_listen("tcp", full);
}

int debug_listen(const char *address, int *port, bool *local)
{
	struct sockaddr_storage sa = { .ss_family = AF_UNSPEC };
	const struct sockaddr_in6 *in6 = (const void *)&sa;
	const struct sockaddr_in *in = (const void *)&sa;
	socklen_t len = sizeof sa;
	int fd = own_fd_take_many(listen_on(address), OWN_FD_DEBUG);

	if (fd < 0)
		return fd;
	getsockname(fd, (struct sockaddr *)&sa, &len);
	*port = 0;
	*local = false;
	if (sa.ss_family == AF_INET) {
		*port = ntohs(in->sin_port);
		*local = debug_is_loopback4(&in->sin_addr);
	} else if (sa.ss_family == AF_INET6) {
		*port = ntohs(in6->sin6_port);
		*local = debug_is_loopback6(&in6->sin6_addr);
	}
	return fd;
}

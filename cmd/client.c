/*
 * client.c - asking a program's debug server: by its address, or attached to a process.
 *
 * Attaching is told in src/http/debug_attach.c: we listen on a Unix socket and send the
 * process a signal with the number in the socket's name, again and again until it
 * connects.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "../src/http/debug_attach.h"
#include "client.h"
#include "cmd.h"
#include "page.h"

#define ATTACH_TRIES 25
#define ATTACH_MS    200	/* between two signals */
#define ANSWER_S     60		/* without a byte */

struct client {
	const char *target;
	int fd;
};

/* ------------------------------------------------------------------ attaching */

static bool file_begins_with(const char *path, const char *text)
{
	char buf[64];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof buf);

	if (fd >= 0)
		close(fd);
	return n >= (ssize_t)strlen(text) && memcmp(buf, text, strlen(text)) == 0;
}

/* It has a thread of goro's. */
static bool has_goro(pid_t pid)
{
	char *folder = format("/proc/%d/task", (int)pid);
	bool found = false;
	struct words threads = list_folder(folder);

	for (size_t i = 0; i < threads.n && !found; i++)
		found = file_begins_with(format("%s/%s/comm", folder, threads.at[i]), "goro-sysmon");
	return found;
}

static int listen_as(uint32_t number)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int n = snprintf(sa.sun_path + 1, sizeof sa.sun_path - 1, DEBUG_ATTACH_NAME, number);
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&sa, len) != 0 || listen(fd, 4) != 0)
		die("cannot listen on a Unix socket: %s", strerror(errno));
	return fd;
}

static bool send_request(pid_t pid, uint32_t number)
{
	uint64_t value = (uint64_t)DEBUG_ATTACH_MARK << 32 | number;

	return sigqueue(pid, DEBUG_ATTACH_SIGNAL, (union sigval){ .sival_ptr = (void *)(uintptr_t)value }) == 0;
}

/* Only the process that was asked may answer. */
static int accept_from(int listener, pid_t pid)
{
	struct ucred who = { 0 };
	socklen_t len = sizeof who;
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd >= 0 && (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) != 0 || who.pid != pid)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* -1 with errno 0: it does not answer. */
static int request_and_accept(pid_t pid, uint32_t number, int listener)
{
	struct pollfd p = { listener, POLLIN, 0 };
	int fd;

	for (int i = 0; i < ATTACH_TRIES; i++) {
		if (!send_request(pid, number))
			return -1;
		if (poll(&p, 1, ATTACH_MS) > 0 && (fd = accept_from(listener, pid)) >= 0)
			return fd;
	}
	errno = 0;
	return -1;
}

static int attach(pid_t pid)
{
	uint32_t number = 0;
	int listener, fd;

	if (kill(pid, 0) != 0) {
		say("process %d: %s", (int)pid, strerror(errno));
		return -1;
	}
	if (!has_goro(pid)) {
		say("process %d does not run goroutines", (int)pid);
		return -1;
	}
	while (number == 0)
		if (getrandom(&number, sizeof number, 0) < 0)
			number = (uint32_t)getpid();
	listener = listen_as(number);
	fd = request_and_accept(pid, number, listener);
	if (fd < 0)
		say("process %d: %s", (int)pid, errno ? strerror(errno) : "no answer: is it stopped, or in another "
		    "container? See goro(1)");
	close(listener);
	return fd;
}

/* ------------------------------------------------------------------ addresses */

static int connect_unix(const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	size_t n = strlen(path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (n >= sizeof sa.sun_path) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(sa.sun_path, path, n);
	if (path[0] == '@')
		sa.sun_path[0] = '\0';
	if (connect(fd, (struct sockaddr *)&sa, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + (path[0] != '@'))) == 0)
		return fd;
	close(fd);
	return -1;
}

/* The first of a host's addresses that can be connected to. */
static int connect_tcp(const char *host, const char *port, const char **why)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *all;
	int error = getaddrinfo(host, port, &hints, &all), fd = -1;

	if (error) {
		*why = gai_strerror(error);
		return -1;
	}
	for (const struct addrinfo *a = all; a && fd < 0; a = a->ai_next) {
		fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) != 0) {
			*why = strerror(errno);
			close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(all);
	return fd;
}

/* HOST:PORT, [HOST]:PORT, :PORT, unix:PATH, http:// in front of them. */
static int connect_to(const char *address)
{
	const char *at = strncmp(address, "http://", 7) == 0 ? address + 7 : address;
	const char *colon = strrchr(at, ':'), *why = "no such address";
	int fd = -1;

	if (strncmp(at, "unix:", 5) == 0) {
		fd = connect_unix(at + 5);
		why = strerror(errno);
	} else if (colon) {
		bool bracket = *at == '[' && colon > at + 1 && colon[-1] == ']';
		char *host = format("%.*s", (int)(colon - at - 2 * bracket), at + bracket);

		fd = connect_tcp(*host ? host : "127.0.0.1", format("%.*s", (int)strcspn(colon + 1, "/"), colon + 1), &why);
	} else {
		why = "neither a process id nor HOST:PORT nor unix:PATH";
	}
	if (fd < 0)
		say("%s: %s", address, why);
	return fd;
}

struct client *client_open(const char *target)
{
	bool is_pid = *target && target[strspn(target, "0123456789")] == '\0' && strlen(target) < 10;
	int fd = is_pid ? attach((pid_t)atol(target)) : connect_to(target);
	struct timeval limit = { .tv_sec = ANSWER_S };
	struct client *c;

	if (fd < 0)
		return NULL;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	c = alloc(sizeof *c);
	*c = (struct client){ .target = target, .fd = fd };
	return c;
}

bool client_is_target(const char *word)
{
	bool is_pid = *word && word[strspn(word, "0123456789")] == '\0';

	return access(word, F_OK) != 0 && (is_pid || strchr(word, ':'));
}

void client_patience(struct client *c, double seconds)
{
	struct timeval limit = { .tv_sec = ANSWER_S + (time_t)seconds };

	setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

void client_close(struct client *c)
{
	close(c->fd);
	free(c);
}

/* ----------------------------------------------------------------------- HTTP */

/* What has come of an answer. */
struct answer {
	char *at;
	size_t n, room;
	size_t head;		/* its length, with the blank line; 0: not there yet */
	/* of the whole; SIZE_MAX: up to the end of the connection */
	size_t want;
};

/* The value of a line in the head, or NULL. */
static const char *header(const struct answer *a, const char *name)
{
	size_t n = strlen(name);

	for (const char *line = strstr(a->at, "\r\n"); line && line + 2 < a->at + a->head; line = strstr(line + 2, "\r\n"))
		if (strncasecmp(line + 2, name, n) == 0 && line[2 + n] == ':')
			return line + 2 + n + 1;
	return NULL;
}

static void look_for_head(struct answer *a)
{
	const char *end = a->head ? NULL : strstr(a->at, "\r\n\r\n"), *length;

	if (!end)
		return;
	a->head = (size_t)(end - a->at) + 4;
	length = header(a, "Content-Length");
	a->want = length ? a->head + strtoull(length, NULL, 10) : SIZE_MAX;
}

/* More of it. False: there is no more, or it does not come. */
static bool receive(struct client *c, struct answer *a)
{
	ssize_t n;

	if (a->n + 4096 > a->room) {
		a->room = 2 * a->room + (64 << 10);
		a->at = realloc(a->at, a->room);
		if (!a->at)
			die("out of memory");
	}
	do
		n = read(c->fd, a->at + a->n, a->room - a->n - 1);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return false;
	a->n += (size_t)n;
	a->at[a->n] = '\0';
	return true;
}

static bool send_get(struct client *c, const char *path, bool keep)
{
	char *text = format("GET %s HTTP/1.0\r\nHost: localhost\r\nConnection: %s\r\n\r\n", path,
	                    keep ? "keep-alive" : "close");
	size_t n = strlen(text);
	bool sent = send(c->fd, text, n, MSG_NOSIGNAL) == (ssize_t)n;

	free(text);
	return sent;
}

/* Complains of an answer that is not whole, or is a refusal. */
static bool is_good(const struct client *c, const struct answer *a)
{
	if (!a->head || (a->want != SIZE_MAX && a->n < a->want)) {
		say("%s: no answer: the program refuses, or has ended", c->target);
		return false;
	}
	if (strncmp(a->at, "HTTP/1.", 7) == 0 && strncmp(a->at + 8, " 200 ", 5) == 0)
		return true;
	say("%s: %.*s", c->target, (int)strcspn(a->at, "\r\n"), a->at);
	return false;
}

char *client_get(struct client *c, const char *path, bool keep, size_t *n)
{
	struct answer a = { .want = SIZE_MAX };

	if (send_get(c, path, keep))
		while (a.n < a.want && receive(c, &a))
			look_for_head(&a);
	if (!is_good(c, &a)) {
		free(a.at);
		return NULL;
	}
	*n = a.n - a.head;
	memmove(a.at, a.at + a.head, *n + 1);
	return a.at;
}

void client_keep(const char *path, const char *bytes, size_t n)
{
	FILE *out = view_open(path);

	fwrite(bytes, 1, n, out);
	view_close(out, path);
}

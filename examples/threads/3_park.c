/* 3_park.c - a mailbox whose idle connections hold no thread. */
#include <errno.h>
#include <goro.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LINE_BYTES   256
#define IDLE_TIMEOUT (60 * GORO_SECOND)

struct message {
	struct message *next;
	char text[LINE_BYTES];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t there = PTHREAD_COND_INITIALIZER;
static struct message *first, **last = &first;

static void put(struct message *m)
{
	pthread_mutex_lock(&lock);
	m->next = NULL;
	*last = m;
	last = &m->next;
	pthread_cond_signal(&there);
	pthread_mutex_unlock(&lock);
}

/* Waits that many seconds for a message; NULL: there is none. */
static struct message *get(int seconds)
{
	struct timespec end;
	struct message *m;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += seconds;
	pthread_mutex_lock(&lock);
	while (!first)
		if (pthread_cond_timedwait(&there, &lock, &end) == ETIMEDOUT)
			break;
	m = first;
	if (m) {
		first = m->next;
		if (!first)
			last = &first;
	}
	pthread_mutex_unlock(&lock);
	return m;
}

/* A line, with its end cut off; false: there are no more, or it is too long. */
static bool read_line(int fd, char *line)
{
	size_t n = 0;

	while (n < LINE_BYTES && goro_read(fd, line + n, 1) == 1)
		if (line[n++] == '\n') {
			line[n - 1] = '\0';
			return true;
		}
	return false;
}

static bool answer(int fd, const char *text)
{
	char line[LINE_BYTES + 1];
	int n = snprintf(line, sizeof line, "%s\n", text);

	return goro_write(fd, line, n) == n;
}

static bool serve_line(int fd, const char *line)
{
	struct message *m;
	bool ok;

	if (strncmp(line, "put ", 4) == 0) {
		m = malloc(sizeof *m);
		if (!m)
			return answer(fd, "no memory");
		strcpy(m->text, line + 4);
		put(m);
		return answer(fd, "ok");
	}
	if (strncmp(line, "get ", 4) != 0)
		return answer(fd, "put TEXT, or get SECONDS");
	m = get(atoi(line + 4));
	ok = answer(fd, m ? m->text : "nothing");
	free(m);
	return ok;
}

static void serve(int fd)
{
	char line[LINE_BYTES];

	do
		goro_set_deadline(fd, goro_deadline_in(IDLE_TIMEOUT), GORO_FOREVER);
	while (read_line(fd, line) && serve_line(fd, line));
	goro_close(fd);
}

static int start(int argc, char **argv)
{
	char address[32];
	int listener, fd;

	snprintf(address, sizeof address, "127.0.0.1:%s", argc > 1 ? argv[1] : "7000");
	listener = goro_listen("tcp", address);
	if (listener < 0) {
		fprintf(stderr, "listen: %s\n", strerror(-listener));
		return 1;
	}
	puts("listening");
	fflush(stdout);
	for (;;) {
		fd = goro_accept(listener, NULL, NULL);
		if (fd < 0)
			goro_sleep(GORO_SECOND);	/* no descriptors left */
		else if (go(serve, fd) != 0)
			goro_close(fd);
	}
}
GORO_MAIN(start)

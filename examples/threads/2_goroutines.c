/* 2_goroutines.c - a mailbox, with a goroutine for each connection. */
#include <errno.h>
#include <goro.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES   256
#define IDLE_SECONDS 60

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

	while (n < LINE_BYTES && read(fd, line + n, 1) == 1)
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

	return write(fd, line, n) == n;
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
	struct timeval idle = { .tv_sec = IDLE_SECONDS };
	char line[LINE_BYTES];

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &idle, sizeof idle);
	while (read_line(fd, line) && serve_line(fd, line))
		;
	close(fd);
}

static int listen_on(int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
	if (bind(fd, (struct sockaddr *)&a, sizeof a) != 0 || listen(fd, SOMAXCONN) != 0)
		return -1;
	return fd;
}

static int start(int argc, char **argv)
{
	int listener = listen_on(argc > 1 ? atoi(argv[1]) : 7000), fd;

	if (listener < 0) {
		perror("listen");
		return 1;
	}
	signal(SIGPIPE, SIG_IGN);
	puts("listening");
	fflush(stdout);
	for (;;) {
		fd = accept(listener, NULL, NULL);
		if (fd < 0)
			sleep(1);	/* no descriptors left */
		else if (go(serve, fd) != 0)
			close(fd);
	}
}
GORO_MAIN(start)

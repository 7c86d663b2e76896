/* 4_channel.c - a mailbox that is a channel. */
#include <goro.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES   256
#define IDLE_TIMEOUT (60 * GORO_SECOND)
#define MESSAGES_MAX 100000

struct message {
	char text[LINE_BYTES];
};

static goro_chan *mailbox;

/* Waits that many seconds for a message; NULL: there is none. */
static struct message *get(int seconds)
{
	struct message *m = NULL;

	goro_select_until(goro_deadline_in(seconds * GORO_SECOND),
	                  GORO_RECV(mailbox, &m));
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
		if (goro_chan_try_send(mailbox, &m))
			return answer(fd, "ok");
		free(m);
		return answer(fd, "full");
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
	mailbox = goro_chan_of(struct message *, MESSAGES_MAX);
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

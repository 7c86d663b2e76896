/* 2_echo.c - a server: a goroutine for each connection. */
#include <goro.h>
#include <string.h>

static void serve(int fd)
{
	char buf[512];
	ssize_t n;

	while ((n = goro_read(fd, buf, sizeof buf)) > 0)
		if (goro_write(fd, buf, (size_t)n) < 0)
			break;
	goro_close(fd);
}

static int start(int argc, char **argv)
{
	const char *address = argc > 1 ? argv[1] : "127.0.0.1:7000";
	int listener = goro_listen("tcp", address), fd;

	if (listener < 0) {
		fprintf(stderr, "%s: %s\n", address, strerror(-listener));
		return 1;
	}
	fprintf(stderr, "listening on %s\n", address);
	while ((fd = goro_accept(listener, NULL, NULL)) >= 0)
		go(serve, fd);
	return 1;
}
GORO_MAIN(start)

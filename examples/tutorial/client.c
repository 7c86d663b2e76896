/* client.c - sends its arguments as lines, and prints what comes back until nothing
 * does. */
#include <goro.h>
#include <string.h>
#include <unistd.h>

/* Tries for five seconds, since the server may just be starting. */
static int dial(const char *address)
{
	int64_t until = goro_now() + 5 * GORO_SECOND;
	int fd;

	while ((fd = goro_dial("tcp", address, until)) == -ECONNREFUSED && goro_now() < until)
		goro_sleep(10 * GORO_MILLISECOND);
	return fd;
}

static int start(int argc, char **argv)
{
	const char *address = argc > 1 ? argv[1] : "127.0.0.1:7000";
	int fd = dial(address);
	char buf[512];
	ssize_t n;

	if (fd < 0) {
		fprintf(stderr, "%s: %s\n", address, strerror(-fd));
		return 1;
	}
	for (int i = 2; i < argc; i++) {
		goro_write_full(fd, argv[i], strlen(argv[i]));
		goro_write_full(fd, "\n", 1);
	}
	do {
		goro_set_deadline(fd, goro_now() + GORO_SECOND, GORO_FOREVER);
		n = goro_read(fd, buf, sizeof buf);
	} while (n > 0 && write(1, buf, (size_t)n) == n);
	goro_close(fd);
	return 0;
}
GORO_MAIN(start)

/* poll_park_test.c - poll_park says what poll does. */
#include <fcntl.h>
#include <goro.h>
#include <sys/socket.h>
#include <unistd.h>

#include "expect.h"
#include "poll_park.h"

static int64_t soon(void)
{
	return goro_deadline_in(30 * GORO_MILLISECOND);
}

static void write_later(int fd)
{
	goro_sleep(30 * GORO_MILLISECOND);
	expect(goro_write(fd, "x", 1) == 1);
}

static int start(int argc, char **argv)
{
	struct pollfd fds[4] = { { .fd = -1 } };
	int a[2], b[2], file = open("/dev/null", O_RDONLY);
	int64_t before = goro_now();

	(void)argc, (void)argv;
	expect(pipe(a) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, b) == 0);

	/* Nothing to wait for, and nothing that is ready, until the deadline. */
	expect(poll_park(NULL, 0, soon()) == 0);
	expect(poll_park(fds, 1, soon()) == 0);
	fds[0] = (struct pollfd){ .fd = a[0], .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = b[0], .events = POLLIN };
	expect(poll_park(fds, 1, soon()) == 0);
	expect(poll_park(fds, 2, soon()) == 0);
	expect(fds[0].revents == 0 && fds[1].revents == 0);
	expect(goro_now() - before >= 120 * GORO_MILLISECOND);

	/* One of two; the other of two; both. */
	go(write_later, b[1]);
	expect(poll_park(fds, 2, GORO_FOREVER) == 1);
	expect(fds[0].revents == 0 && fds[1].revents == POLLIN);
	expect(goro_read(b[0], &(char){ 0 }, 1) == 1);
	go(write_later, a[1]);
	expect(poll_park(fds, 2, GORO_FOREVER) == 1);
	expect(fds[0].revents == POLLIN && fds[1].revents == 0);
	expect(goro_write(b[1], "x", 1) == 1);
	expect(poll_park(fds, 2, GORO_NOW) == 2);
	expect(goro_read(a[0], &(char){ 0 }, 1) == 1 && goro_read(b[0], &(char){ 0 }, 1) == 1);

	/* The same one twice. */
	fds[0] = (struct pollfd){ .fd = b[0], .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = b[0], .events = POLLPRI };
	go(write_later, b[1]);
	expect(poll_park(fds, 2, GORO_FOREVER) == 1);
	expect(fds[0].revents == POLLIN && fds[1].revents == 0);

	/* One that is not open; files, which never wait; the other side gone. */
	fds[0] = (struct pollfd){ .fd = 99999, .events = POLLIN };
	expect(poll_park(fds, 1, GORO_FOREVER) == 1 && fds[0].revents == POLLNVAL);
	fds[0] = (struct pollfd){ .fd = file, .events = POLLIN };
	expect(poll_park(fds, 1, GORO_FOREVER) == 1 && fds[0].revents == POLLIN);
	close(a[1]);
	fds[0] = (struct pollfd){ .fd = a[0], .events = POLLIN };
	expect(poll_park(fds, 1, GORO_FOREVER) == 1 && fds[0].revents == POLLHUP);
	return 0;
}
GORO_MAIN(start)

/*
 * A goroutine waits for a pipe: no thread waits with it, and the poller wakes
 * it.
 */
#include <goro.h>
#include <unistd.h>

static void reader(int fd, goro_waitgroup *done)
{
	char byte;

	goro_set_name("reader");
	while (goro_read(fd, &byte, 1) == 1)
		;
	goro_waitgroup_done(done);
}

static int start(int argc, char **argv)
{
	goro_waitgroup done = { 0 };
	int fd[2];

	(void)argc, (void)argv;
	if (pipe(fd) != 0)
		return 1;
	goro_set_name("writer");
	goro_waitgroup_add(&done, 1);
	go(reader, fd[0], &done);
	for (int i = 0; i < 2; i++) {
		goro_sleep(2 * GORO_MILLISECOND);
		goro_write(fd[1], "x", 1);
	}
	goro_close(fd[1]);
	goro_waitgroup_wait(&done);
	goro_close(fd[0]);
	return 0;
}

GORO_MAIN(start)

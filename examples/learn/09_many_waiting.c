/*
 * 09_many_waiting.c - four hundred connections wait, on few threads.
 *
 * Each reader is parked in goro_read until its connection has something. The threads are
 * counted meanwhile.
 */
#include <dirent.h>
#include <goro.h>
#include <sys/socket.h>

#define CONNECTIONS 400

static void reader(int fd, goro_chan *lengths)
{
	char buf[16];
	ssize_t n = goro_read(fd, buf, sizeof buf);

	goro_chan_send(lengths, &n);
	goro_close(fd);
}

static int threads(void)
{
	DIR *d = opendir("/proc/self/task");
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n - 2;	/* "." and ".." */
}

static int start(int argc, char **argv)
{
	goro_chan *lengths = goro_chan_of(ssize_t, 0);
	int pair[CONNECTIONS][2];
	ssize_t n, sum = 0;

	(void)argc, (void)argv;
	for (int i = 0; i < CONNECTIONS; i++) {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair[i]) < 0)
			return 1;
		go(reader, pair[i][0], lengths);
	}
	goro_sleep(20 * GORO_MILLISECOND);
	printf("%d readers wait on fewer than 20 threads: %s\n", CONNECTIONS,
	       threads() < 20 ? "yes" : "no");
	for (int i = 0; i < CONNECTIONS; i++)
		goro_write(pair[i][1], "hello", 5);
	for (int i = 0; i < CONNECTIONS; i++) {
		goro_chan_recv(lengths, &n);
		sum += n;
	}
	printf("%zd bytes came\n", sum);
	return 0;
}
GORO_MAIN(start)

/*
 * 08_dial_listen.c - a server and a client in one program.
 *
 * goro_accept and goro_read park their goroutines until the network poller (epoll) says
 * that there is something. No thread waits for it.
 */
#include <arpa/inet.h>
#include <goro.h>
#include <netinet/in.h>
#include <sys/socket.h>

static void serve(int listener)
{
	int fd = goro_accept(listener, NULL, NULL);
	char buf[64];
	ssize_t n = goro_read(fd, buf, sizeof buf);

	printf("server: got %.*s\n", (int)n, buf);
	goro_write(fd, "pong", 4);
	goro_close(fd);
}

static int start(int argc, char **argv)
{
	int listener = goro_listen("tcp", "127.0.0.1:0"), fd;
	struct sockaddr_in at;
	socklen_t length = sizeof at;
	char address[32], buf[64];
	ssize_t n;

	(void)argc, (void)argv;
	getsockname(listener, (struct sockaddr *)&at, &length);
	snprintf(address, sizeof address, "127.0.0.1:%d", ntohs(at.sin_port));
	go(serve, listener);

	fd = goro_dial("tcp", address, GORO_FOREVER);
	goro_write(fd, "ping", 4);
	n = goro_read(fd, buf, sizeof buf);
	printf("client: got %.*s\n", (int)n, buf);
	goro_close(fd);
	goro_close(listener);
	return 0;
}
GORO_MAIN(start)

/*
 * net.h - connections for tests.
 */
#ifndef GORO_TEST_NET_H
#define GORO_TEST_NET_H

#include <goro.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>

#include "await.h"
#include "test.h"
#include "sched/types.h"

/* A listening socket on the loopback; *a is its address. */
__attribute__((unused))
static int net_listen(struct sockaddr_in *a)
{
	socklen_t len = sizeof *a;
	int fd = goro_socket(AF_INET, SOCK_STREAM, 0);

	*a = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	CHECK(fd >= 0);
	CHECK_EQ(bind(fd, (struct sockaddr *)a, sizeof *a), 0);
	CHECK_EQ(listen(fd, 4096), 0);
	CHECK_EQ(getsockname(fd, (struct sockaddr *)a, &len), 0);
	return fd;
}

__attribute__((unused))
static int net_dial(const struct sockaddr_in *a)
{
	int fd = goro_socket(AF_INET, SOCK_STREAM, 0);

	CHECK(fd >= 0);
	CHECK_EQ(goro_connect(fd, (const struct sockaddr *)a, sizeof *a), 0);
	CHECK_EQ(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int)), 0);
	return fd;
}

/* Two ends of a TCP connection. */
__attribute__((unused))
static void net_pair(int fd[2])
{
	struct sockaddr_in a;
	int l = net_listen(&a);

	fd[0] = net_dial(&a);
	fd[1] = goro_accept(l, NULL, NULL);
	CHECK(fd[1] >= 0);
	CHECK_EQ(setsockopt(fd[1], IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int)), 0);
	CHECK_EQ(goro_close(l), 0);
}

__attribute__((unused))
static void net_close(const int fd[2])
{
	CHECK_EQ(goro_close(fd[0]), 0);
	CHECK_EQ(goro_close(fd[1]), 0);
}

/* Goroutines and threads that wait for a descriptor: those counted are in its queue, or
 * will be before anybody else can lock it. (goro_stats cannot be that exact.) */
__attribute__((unused))
static size_t net_waiting(void)
{
	uint64_t n = load_seqcst(&sched.plain.io_parks) - load_seqcst(&sched.plain.io_returns);

	for (int i = 0, all = load_acquire(&sched.all_p_n); i < all; i++)
		n += load_relaxed(&p_at(i)->count.io_parks) - load_relaxed(&p_at(i)->count.io_returns);
	return (size_t)n;
}

/* Returns once somebody waits for a descriptor. */
#define NET_AWAIT_WAITER() AWAIT(net_waiting() > 0)

/* So many descriptors can be open, if the limit allows; else what it allows. */
__attribute__((unused))
static int net_want_files(int n)
{
	struct rlimit r;

	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &r), 0);
	if (r.rlim_cur < (rlim_t)n) {
		r.rlim_cur = r.rlim_max < (rlim_t)n ? r.rlim_max : (rlim_t)n;
		CHECK_EQ(setrlimit(RLIMIT_NOFILE, &r), 0);
	}
	return r.rlim_cur < (rlim_t)n ? (int)r.rlim_cur : n;
}

#endif

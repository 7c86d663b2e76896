/*
 * profile DIR - a program that is profiled, and writes what was found to DIR:
 *
 *	build/release/examples/profile /tmp
 *	go tool pprof -top /tmp/cpu.pb.gz
 *	go tool pprof -http=: /tmp/cpu.pb.gz
 *
 * Four goroutines look for primes and add what they find to a sum under one lock, which
 * one of them, that hardly computes, holds for too long.
 */
#include <errno.h>
#include <fcntl.h>
#include <goro.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS 60

static goro_mutex sum_lock;
static goro_chan *results;
static goro_waitgroup workers;
static long sum;

static __attribute__((noinline)) int count_primes(int below)
{
	int n = 0;

	for (int i = 2; i < below; i++) {
		int divisor = 2;

		while (divisor * divisor <= i && i % divisor != 0)
			divisor++;
		n += divisor * divisor > i;
	}
	return n;
}

static __attribute__((noinline)) void add_to_sum(int n, int64_t ns)
{
	goro_mutex_lock(&sum_lock);
	sum += n;
	if (ns)
		goro_sleep(ns);
	goro_mutex_unlock(&sum_lock);
}

static void quick_worker(void)
{
	goro_set_name("quick_worker");
	for (int i = 0; i < ROUNDS; i++) {
		int n = count_primes(100000 + i);

		add_to_sum(n, 0);
		goro_chan_send(results, &n);
	}
	goro_waitgroup_done(&workers);
}

static void slow_updater(void)
{
	goro_set_name("slow_updater");
	for (int i = 0; i < ROUNDS; i++) {
		int n = count_primes(10000 + i);

		add_to_sum(n, 5 * GORO_MILLISECOND);
		goro_chan_send(results, &n);
	}
	goro_waitgroup_done(&workers);
}

static void reader(void)
{
	int n;

	while (goro_chan_recv(results, &n))
		;
}

static int open_in(const char *dir, const char *name)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof path, "%s/%s.pb.gz", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		fprintf(stderr, "profile: %s: %s\n", path, strerror(errno));
	else
		printf("%s\n", path);
	return fd;
}

static int write_one(const char *dir, const char *name)
{
	int fd = open_in(dir, name), error;

	if (fd < 0)
		return 1;
	error = goro_profile_write(name, fd);
	close(fd);
	return error != 0;
}

static int start(int argc, char **argv)
{
	const char *dir = argc > 1 ? argv[1] : ".";
	int cpu = open_in(dir, "cpu"), failed;

	if (cpu < 0 || goro_profile_cpu_start(cpu, 0) != 0)
		return 1;
	goro_profile_block_rate(1);
	goro_profile_mutex_fraction(1);
	results = goro_chan_of(int, 0);
	goro_waitgroup_add(&workers, 4);
	for (int i = 0; i < 3; i++)
		go(quick_worker);
	go(slow_updater);
	go(reader);
	goro_waitgroup_wait(&workers);
	goro_profile_cpu_stop();
	close(cpu);
	failed = write_one(dir, "goroutine") | write_one(dir, "block") | write_one(dir, "mutex") |
	         write_one(dir, "threadcreate");
	return failed;
}
GORO_MAIN(start)

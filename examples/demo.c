/*
 * demo.c - what goro does, with figures it measures itself. `make demo`.
 *
 * Each scene is a small C program of its own; nothing in it knows of any
 * scheduler: the hogs never call anything, the sleepers call plain usleep.
 */
#include <arpa/inet.h>
#include <goro.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double ms(int64_t ns)
{
	return (double)ns / 1e6;
}

static void scene(const char *title)
{
	bool bold = isatty(STDOUT_FILENO);

	printf("\n%s%s%s\n", bold ? "\033[1m" : "", title, bold ? "\033[0m" : "");
	fflush(stdout);
}

/* --------------------------------------------------------- many goroutines */

/* Memory and the page tables for it. */
static long resident_kib(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	long sum = 0, kib;
	char line[256];

	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "VmRSS: %ld", &kib) == 1 || sscanf(line, "VmPTE: %ld", &kib) == 1)
			sum += kib;
	if (f)
		fclose(f);
	return sum;
}

static void parked(goro_chan *gate, goro_waitgroup *ready, goro_waitgroup *ended)
{
	goro_waitgroup_done(ready);
	goro_chan_recv(gate, NULL);
	goro_waitgroup_done(ended);
}

static void many_goroutines(int n)
{
	goro_chan *gate = goro_chan_of(char, 0);
	goro_waitgroup ready = { { 0 } }, ended = { { 0 } };
	long before = resident_kib(), after;
	int64_t begin = goro_now(), all;

	scene("A hundred thousand goroutines, each with a guarded 256 KiB stack");
	goro_waitgroup_add(&ready, n);
	goro_waitgroup_add(&ended, n);
	for (int i = 0; i < n; i++)
		go(parked, gate, &ready, &ended);
	goro_waitgroup_wait(&ready);
	all = goro_now() - begin;
	after = resident_kib();
	printf("  %zu are alive, all waiting on one channel. Starting them took %.0f ms,\n"
	       "  %.1f us each; each costs %ld bytes while it waits.\n",
	       goro_num_goroutine(), ms(all), (double)all / n / 1e3,
	       (after - before) * 1024 / n);
	begin = goro_now();
	goro_chan_close(gate);
	goro_waitgroup_wait(&ended);
	printf("  Closing the channel woke them all; the last ended %.0f ms later.\n",
	       ms(goro_now() - begin));
	goro_chan_unref(gate);
}

/* ---------------------------------------------------------- work stealing */

static volatile uint64_t sink;

static void crunch(goro_waitgroup *wg)
{
	uint64_t x = 88172645463325252u;

	for (int i = 0; i < 1000000; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
	}
	sink += x;
	goro_waitgroup_done(wg);
}

static int64_t crunch_all(int tasks)
{
	goro_waitgroup wg = { { 0 } };
	int64_t begin = goro_now();

	goro_waitgroup_add(&wg, tasks);
	for (int i = 0; i < tasks; i++)
		go(crunch, &wg);
	goro_waitgroup_wait(&wg);
	return goro_now() - begin;
}

static void work_stealing(void)
{
	int procs = goro_gomaxprocs(0);
	struct goro_stats a, b;
	int64_t one, all;

	scene("Work stealing: one goroutine starts 200 tasks, every processor takes its share");
	goro_gomaxprocs(1);
	one = crunch_all(200);
	goro_gomaxprocs(procs);
	goro_stats_read(&a);
	all = crunch_all(200);
	goro_stats_read(&b);
	printf("  On 1 processor %.0f ms; on %d, %.0f ms: %.2f times as fast. All tasks began in\n"
	       "  the starter's queue; %llu were stolen from there, in %llu steal(s) of half a queue.\n",
	       ms(one), procs, ms(all), (double)one / (double)all,
	       (unsigned long long)(b.stolen - a.stolen), (unsigned long long)(b.steals - a.steals));
}

/* ------------------------------------------------- hogs beside a ticker */

static volatile bool stop_hogs;

static void hog(goro_waitgroup *wg)
{
	while (!stop_hogs)
		;		/* calls nothing: only a signal can stop it */
	goro_waitgroup_done(wg);
}

static int by_size(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

enum { TICKS = 1000, TICK_NS = 2 * GORO_MILLISECOND };

/* How late each of the sleeps ends, sorted. */
static void tick(int64_t *late, void (*sleep_ns)(int64_t ns))
{
	for (int i = 0; i < TICKS; i++) {
		int64_t due = goro_now() + TICK_NS;

		sleep_ns(TICK_NS);
		late[i] = goro_now() - due;
	}
	qsort(late, TICKS, sizeof *late, by_size);
}

static void thread_sleep(int64_t ns)
{
	nanosleep(&(struct timespec){ .tv_nsec = (long)ns }, NULL);
}

/* The kernel's thread for comparison: on a machine that is busy with other things it is
 * late, too. */
static void *tick_in_thread(void *late)
{
	tick(late, thread_sleep);
	return NULL;
}

static void punctual_ticker(void)
{
	static int64_t late[TICKS], thread_late[TICKS];
	goro_waitgroup wg = { { 0 } };
	struct goro_stats a, b;
	int n = 2 * goro_gomaxprocs(0);
	pthread_t thread;
	bool compared;

	scene("Preemption: two endless loops a processor, and a goroutine that wakes every 2 ms");
	stop_hogs = false;
	goro_waitgroup_add(&wg, n);
	for (int i = 0; i < n; i++)
		go(hog, &wg);
	goro_sleep(200 * GORO_MILLISECOND);	/* until each hog has its thread */
	compared = pthread_create(&thread, NULL, tick_in_thread, thread_late) == 0;
	goro_stats_read(&a);
	tick(late, goro_sleep);
	goro_stats_read(&b);
	if (compared)
		pthread_join(thread, NULL);
	stop_hogs = true;
	goro_waitgroup_wait(&wg);
	printf("  %d hogs kept every CPU busy. The sleeper woke late by %.2f ms (median) and\n"
	       "  %.2f ms (99 of 100); a hog was stopped %llu times, by a signal, wherever it stood.\n",
	       n, ms(late[TICKS / 2]), ms(late[TICKS * 99 / 100]),
	       (unsigned long long)(b.preemptions - a.preemptions));
	if (compared)
		printf("  A thread of its own, woken by the kernel beside them, was late by %.2f and %.2f ms.\n",
		       ms(thread_late[TICKS / 2]), ms(thread_late[TICKS * 99 / 100]));
}

/* --------------------------------------------- blocking calls and compute */

static void blocking_sleeper(goro_waitgroup *wg)
{
	for (int i = 0; i < 10; i++)
		usleep(20000);		/* blocks its thread in the kernel, unannounced */
	goro_waitgroup_done(wg);
}

static void blocking_calls(void)
{
	goro_waitgroup sleepers = { { 0 } };
	struct goro_stats s;
	int64_t begin, compute, blocked;

	scene("Blocking calls: 50 goroutines in plain usleep(), 10 times 20 ms each, beside compute");
	goro_waitgroup_add(&sleepers, 50);
	begin = goro_now();
	for (int i = 0; i < 50; i++)
		go(blocking_sleeper, &sleepers);
	crunch_all(100);
	compute = goro_now() - begin;
	goro_waitgroup_wait(&sleepers);
	blocked = goro_now() - begin;
	goro_stats_read(&s);
	printf("  One after the other the sleeps would take 10 s; all were over after %.0f ms.\n"
	       "  100 compute tasks went on meanwhile and took %.0f ms. The runtime grew to %llu\n"
	       "  threads for it, without a word from the program.\n",
	       ms(blocked), ms(compute), (unsigned long long)s.threads);
}

/* --------------------------------------------------------------- the network */

static volatile bool stop_clients;
static uint64_t requests;

static void echo(int fd)
{
	char line[64];
	ssize_t n;

	while ((n = goro_read(fd, line, sizeof line)) > 0)
		goro_write_full(fd, line, (size_t)n);
	goro_close(fd);
}

static void serve(int listener)
{
	int fd;

	while ((fd = goro_accept(listener, NULL, NULL)) >= 0)
		go(echo, fd);
}

static void client(const char *address, goro_waitgroup *connected, goro_waitgroup *wg)
{
	char line[64] = "a question";
	int fd = goro_dial("tcp", address, GORO_FOREVER);
	uint64_t n = 0;

	goro_waitgroup_done(connected);
	while (fd >= 0 && !stop_clients) {
		if (goro_write_full(fd, line, sizeof line) < 0 ||
		    goro_read_full(fd, line, sizeof line) < 0)
			break;
		n++;
	}
	__atomic_fetch_add(&requests, n, __ATOMIC_RELAXED);
	goro_close(fd);
	goro_waitgroup_done(wg);
}

static void network(void)
{
	enum { CLIENTS = 200 };
	int listener = goro_listen("tcp", "127.0.0.1:0");
	goro_waitgroup connected = { { 0 } }, wg = { { 0 } };
	struct sockaddr_in at;
	socklen_t len = sizeof at;
	struct goro_stats stats;
	char address[32];
	int64_t begin;

	scene("The network: a server that reads and writes as if each connection had a thread");
	if (listener < 0 || getsockname(listener, (struct sockaddr *)&at, &len) != 0) {
		printf("  There is no network here.\n");
		return;
	}
	snprintf(address, sizeof address, "127.0.0.1:%d", ntohs(at.sin_port));
	go(serve, listener);
	goro_waitgroup_add(&connected, CLIENTS);
	goro_waitgroup_add(&wg, CLIENTS);
	for (int i = 0; i < CLIENTS; i++)
		go(client, address, &connected, &wg);
	goro_waitgroup_wait(&connected);
	begin = goro_now();
	goro_sleep(2 * GORO_SECOND);
	goro_stats_read(&stats);
	stop_clients = true;
	goro_waitgroup_wait(&wg);
	printf("  %d connections ask and are answered: %.0f thousand requests a second, client and\n"
	       "  server together, by %llu threads. Who waits for a message is parked, not blocked.\n",
	       CLIENTS, (double)requests / ((double)(goro_now() - begin) / 1e6),
	       (unsigned long long)stats.threads);
	goro_close(listener);
}

/* -------------------------------------------------------------- small costs */

static void yielder(int n, goro_waitgroup *wg)
{
	for (int i = 0; i < n; i++)
		goro_gosched();
	goro_waitgroup_done(wg);
}

static void ponger(goro_chan *ping, goro_chan *pong)
{
	int v;

	while (goro_chan_recv(ping, &v))
		goro_chan_send(pong, &v);
	goro_chan_unref(ping);
	goro_chan_unref(pong);
}

static void small_costs(void)
{
	enum { N = 2000000 };
	goro_chan *ping = goro_chan_of(int, 0), *pong = goro_chan_of(int, 0);
	goro_waitgroup wg = { { 0 } };
	int procs = goro_gomaxprocs(1);
	int64_t begin = goro_now();
	double yield_ns, trip_ns;

	scene("What the scheduler itself costs, on one processor");
	goro_waitgroup_add(&wg, 2);
	go(yielder, N, &wg);
	go(yielder, N, &wg);
	goro_waitgroup_wait(&wg);
	yield_ns = (double)(goro_now() - begin) / (2.0 * N);
	go(ponger, goro_chan_ref(ping), goro_chan_ref(pong));
	begin = goro_now();
	for (int i = 0; i < N / 4; i++) {
		int v;

		goro_chan_send(ping, &i);
		goro_chan_recv(pong, &v);
	}
	trip_ns = (double)(goro_now() - begin) / (N / 4.0);
	goro_chan_close(ping);
	goro_chan_unref(ping);
	goro_chan_unref(pong);
	printf("  A switch from goroutine to goroutine takes %.1f ns; a message over an unbuffered\n"
	       "  channel and the answer over another, %.0f ns.\n", yield_ns, trip_ns);
	goro_gomaxprocs(procs);
}

static int start(int argc, char **argv)
{
	(void)argc; (void)argv;
	printf("goro: Go's scheduler for C, on %d processor(s)\n", goro_gomaxprocs(0));
	many_goroutines(100000);
	work_stealing();
	network();
	punctual_ticker();
	blocking_calls();
	small_costs();
	return 0;
}
GORO_MAIN(start)

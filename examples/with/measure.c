/* measure.c - see measure.h. */
#include "measure.h"

#include <dirent.h>
#include <goro.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define SAMPLE_US 20000			/* between two looks at the number of threads */
#define STACK     (256 << 10)		/* of a client's thread: what a goroutine has */
#define OPENING   8	/* clients that connect at once: servers are slow at that */

void die(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fflush(stdout);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	_exit(1);
}

const char *setting(const char *name)
{
	const char *value = getenv(name);

	if (!value)
		die("%s is not set: examples/with/check starts the servers and sets it", name);
	return value;
}

/* ------------------------------------------------------------ what it takes */

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int threads_now(void)
{
	DIR *tasks = opendir("/proc/self/task");
	int n = 0;

	if (!tasks)
		die("cannot read /proc/self/task");
	for (struct dirent *d; (d = readdir(tasks));)
		n += d->d_name[0] != '.';
	closedir(tasks);
	return n;
}

static pthread_t counter;
static atomic_bool counting;
static int most_threads;
static double counter_cpu, began, began_cpu;
static atomic_int under_way, most_under_way;

/* The thread that counts the others. */
static void *count_threads(void *arg)
{
	(void)arg;
	do {
		int n = threads_now() - 1;

		if (n > most_threads)
			most_threads = n;
		usleep(SAMPLE_US);
	} while (atomic_load(&counting));
	counter_cpu = seconds(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}

void measure_begin(void)
{
	atomic_store(&counting, true);
	if (pthread_create(&counter, NULL, count_threads, NULL) != 0)
		die("no thread to count with");
	began = seconds(CLOCK_MONOTONIC);
	began_cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
}

void measure_under_way(int change)
{
	int n = atomic_fetch_add(&under_way, change) + change;
	int most = atomic_load(&most_under_way);

	while (n > most && !atomic_compare_exchange_weak(&most_under_way, &most, n))
		;
}

void measure_end(const char *way)
{
	double took = seconds(CLOCK_MONOTONIC) - began;
	struct rusage use;

	atomic_store(&counting, false);
	pthread_join(counter, NULL);
	getrusage(RUSAGE_SELF, &use);
	printf("%-8s %4d under way  %6.3f s  %6.3f s CPU  %4d threads  %4ld MB\n", way,
	       atomic_load(&most_under_way), took,
	       seconds(CLOCK_PROCESS_CPUTIME_ID) - began_cpu - counter_cpu, most_threads,
	       use.ru_maxrss / 1024);
	fflush(stdout);
}

/* ---------------------------------------------------------------- the crowd */

static const char *way;
static const struct client *client;
static int clients, quick;

static void requests(void *connection, int i)
{
	measure_under_way(1);
	if (quick == 0)
		client->request(connection, i);
	for (int k = 0; k < quick; k++)
		client->quick(connection, i);
	measure_under_way(-1);
}

static void *open_one(int i)
{
	return client->open ? client->open(i) : NULL;
}

static void close_one(void *connection)
{
	if (client->close)
		client->close(connection);
}

/* Clients are goroutines. */
static goro_waitgroup opened, answered, closed;
static goro_sema may_open;
static goro_chan *all_opened;

static void goroutine(int i)
{
	void *connection;

	goro_sema_acquire(&may_open, 1, GORO_FOREVER);
	connection = open_one(i);
	goro_sema_release(&may_open, 1);
	goro_waitgroup_done(&opened);
	goro_chan_recv(all_opened, NULL);
	requests(connection, i);
	goro_waitgroup_done(&answered);
	close_one(connection);
	goro_waitgroup_done(&closed);
}

static int with_goroutines(int argc, char **argv)
{
	(void)argc, (void)argv;
	all_opened = goro_chan_of(char, 0);
	goro_sema_init(&may_open, OPENING);
	goro_waitgroup_add(&opened, clients);
	goro_waitgroup_add(&answered, clients);
	goro_waitgroup_add(&closed, clients);
	for (int i = 0; i < clients; i++)
		if (go(goroutine, i) != 0)
			die("no memory for a goroutine");
	goro_waitgroup_wait(&opened);
	measure_begin();
	goro_chan_close(all_opened);
	goro_waitgroup_wait(&answered);
	measure_end(way);
	goro_waitgroup_wait(&closed);
	goro_chan_unref(all_opened);
	return 0;
}

/* Clients are threads. */
static pthread_barrier_t threads_opened, threads_begin, threads_answered;
static sem_t thread_may_open;

static void *thread(void *arg)
{
	int i = (int)(intptr_t)arg;
	void *connection;

	while (sem_wait(&thread_may_open) < 0)
		;
	connection = open_one(i);
	sem_post(&thread_may_open);
	pthread_barrier_wait(&threads_opened);
	pthread_barrier_wait(&threads_begin);
	requests(connection, i);
	pthread_barrier_wait(&threads_answered);
	close_one(connection);
	return NULL;
}

static int with_threads(void)
{
	pthread_t *all = calloc((size_t)clients, sizeof *all);
	pthread_attr_t attr;

	sem_init(&thread_may_open, 0, OPENING);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	pthread_barrier_init(&threads_opened, NULL, (unsigned)clients + 1);
	pthread_barrier_init(&threads_begin, NULL, (unsigned)clients + 1);
	pthread_barrier_init(&threads_answered, NULL, (unsigned)clients + 1);
	for (int i = 0; i < clients; i++)
		if (!all || pthread_create(&all[i], &attr, thread, (void *)(intptr_t)i) != 0)
			die("no thread for client %d", i);
	pthread_barrier_wait(&threads_opened);
	measure_begin();
	pthread_barrier_wait(&threads_begin);
	pthread_barrier_wait(&threads_answered);
	measure_end(way);
	for (int i = 0; i < clients; i++)
		pthread_join(all[i], NULL);
	free(all);
	return 0;
}

int measure_main(int argc, char **argv, const struct client *block, const struct client *park)
{
	way = argc > 1 ? argv[1] : "";
	clients = argc > 2 ? atoi(argv[2]) : 1000;
	quick = argc > 3 ? atoi(argv[3]) : 0;
	/* some libraries write to sockets that are gone */
	signal(SIGPIPE, SIG_IGN);
	client = strncmp(way, "park", 4) == 0 ? park : block;
	if (clients < 1 || quick < 0 || (quick > 0 && !client->quick))
		die("%s: no such number", argv[0]);
	if (strcmp(way, "thread") == 0)
		return with_threads();
	if (strncmp(way, "park", 4) == 0 || strcmp(way, "block") == 0)
		return goro_run(with_goroutines, argc, argv);
	die("usage: %s park|block|thread [CLIENTS [QUICK]]", argv[0]);
}

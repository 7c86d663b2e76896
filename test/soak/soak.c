/*
 * soak.c - a random mixture of everything, for an hour: goroutines that compute,
 * print, allocate, block in the kernel announced and not, wait for each other and
 * for descriptors, while the number of processors changes at random.
 *
 *	soak SECONDS [SEED]
 *
 * In phases of some seconds. At the end of each, every goroutine that was started
 * has ended, having found that its calls returned what they should. After every few
 * there is a pause: then few threads are left, and no more memory than the first
 * time. The last line is "1 passed, 0 failed".
 */
#define _GNU_SOURCE
#include <goro.h>
#include <errno.h>
#include <fenv.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PHASE_NS     (5 * GORO_SECOND)
#define STUCK_NS     (120 * GORO_SECOND)	/* a phase that takes so long hangs */
#define AT_ONCE      100			/* actors */
#define QUIET_EVERY  5				/* phases */
#define QUIET_NS     (8 * GORO_SECOND)
#define QUIET_THREADS 16		/* 2 processors, spares, the runtime's own */

static uint64_t seed = 1;
static atomic_ullong started, ended, acts;
static int64_t phase_end;
static FILE *nowhere;
static pthread_mutex_t pmutex = PTHREAD_MUTEX_INITIALIZER;
static goro_mutex gmutex;
static uint64_t guarded_by_pmutex, guarded_by_gmutex;

#define CHECK(cond)                                                             \
	do {                                                                    \
		if (!(cond))                                                    \
			fail(__LINE__, #cond);                                  \
	} while (0)

__attribute__((noreturn)) static void fail(int line, const char *what)
{
	dprintf(2, "soak.c:%d: %s (errno %d)\n0 passed, 1 failed\n", line, what, errno);
	abort();
}

static uint64_t rnd(uint64_t *r, uint64_t n)
{
	*r ^= *r << 13;
	*r ^= *r >> 7;
	*r ^= *r << 17;
	return *r % n;
}

static struct timespec span(int64_t ns)
{
	return (struct timespec){ ns / GORO_SECOND, ns % GORO_SECOND };
}

/* ----------------------------------------------------------------- the acts */

static void compute(uint64_t *r)
{
	int64_t end = goro_now() + (int64_t)rnd(r, 20 * GORO_MILLISECOND);

	while (goro_now() < end)
		for (int i = 0; i < 1000; i++)
			__asm__ volatile("");
}

static void round_own_way(uint64_t *r)
{
	static const int mode[] = { FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };
	int own = mode[rnd(r, 4)], before = fegetround();
	double sum[2];

	fesetround(own);
	for (int k = 0; k < 2; k++) {
		volatile double x = 0.1;

		for (int i = 0; i < 20000; i++)
			x = x / 3.0 + 0.7;
		sum[k] = x;
	}
	CHECK(fegetround() == own);
	CHECK(memcmp(&sum[0], &sum[1], sizeof(double)) == 0);
	fesetround(before);
}

static void print(uint64_t *r)
{
	for (uint64_t i = rnd(r, 500); i > 0; i--)
		fprintf(nowhere, "%llu %s %f\n", (unsigned long long)i, "of these", (double)i / 3);
}

static void allocate(uint64_t *r)
{
	char *p[32];

	for (int i = 0; i < 32; i++) {
		size_t n = rnd(r, 8000) + 1;

		p[i] = malloc(n);
		CHECK(p[i] != NULL);
		memset(p[i], i, n);
	}
	for (int i = 0; i < 32; i++) {
		CHECK(p[i][0] == i);
		free(p[i]);
	}
}

static void lock_plain(uint64_t *r)
{
	for (uint64_t i = rnd(r, 50); i > 0; i--) {
		uint64_t before;

		pthread_mutex_lock(&pmutex);
		before = guarded_by_pmutex;
		for (int k = 0; k < 500; k++)
			guarded_by_pmutex++;
		CHECK(guarded_by_pmutex == before + 500);
		pthread_mutex_unlock(&pmutex);
	}
}

static void lock_ours(uint64_t *r)
{
	for (uint64_t i = rnd(r, 50); i > 0; i--) {
		goro_mutex_lock(&gmutex);
		guarded_by_gmutex++;
		if (i % 8 == 0)
			goro_gosched();
		goro_mutex_unlock(&gmutex);
	}
}

static void nap(uint64_t *r)
{
	struct timespec t = span((int64_t)rnd(r, 5 * GORO_MILLISECOND));

	CHECK(nanosleep(&t, NULL) == 0);
}

static void nap_announced(void *arg)
{
	nap(arg);
}

static void block_announced(uint64_t *r)
{
	goro_blocking(nap_announced, r);
}

static void poll_plain(uint64_t *r)
{
	struct pollfd p = { .events = POLLIN };
	int fd[2];

	CHECK(pipe(fd) == 0);
	p.fd = fd[0];
	CHECK(poll(&p, 1, (int)rnd(r, 8)) == 0);
	CHECK(write(fd[1], "x", 1) == 1);
	CHECK(poll(&p, 1, 1000) == 1);
	close(fd[0]);
	close(fd[1]);
}

static void receive_plain(uint64_t *r)
{
	struct timeval t = { 0, 1000 + (int)rnd(r, 4000) };
	char c;
	int fd[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0);
	CHECK(setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t) == 0);
	CHECK(recv(fd[0], &c, 1, 0) == -1 && errno == EAGAIN);
	CHECK(send(fd[1], "x", 1, 0) == 1 && recv(fd[0], &c, 1, 0) == 1);
	close(fd[0]);
	close(fd[1]);
}

static void write_there(int fd)
{
	static const char text[5000];

	CHECK(goro_write_full(fd, text, sizeof text) == sizeof text);
	goro_close(fd);
}

static void transfer(uint64_t *r)
{
	char buffer[1000];
	size_t sum = 0;
	ssize_t n;
	int fd[2];

	(void)r;
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd) == 0);
	CHECK(go(write_there, fd[1]) == 0);
	while ((n = goro_read(fd[0], buffer, sizeof buffer)) > 0)
		sum += (size_t)n;
	CHECK(n == 0 && sum == 5000);
	goro_close(fd[0]);
}

static void echo(goro_chan *in, goro_chan *out)
{
	uint64_t v;

	while (goro_chan_recv(in, &v))
		goro_chan_send(out, &v);
	goro_chan_unref(in);
	goro_chan_unref(out);
}

static void converse(uint64_t *r)
{
	goro_chan *in = goro_chan_of(uint64_t, rnd(r, 3)), *out = goro_chan_of(uint64_t, rnd(r, 3));
	uint64_t v;

	CHECK(go(echo, goro_chan_ref(in), goro_chan_ref(out)) == 0);
	for (uint64_t i = rnd(r, 100); i > 0; i--) {
		goro_chan_send(in, &i);
		CHECK(goro_chan_recv(out, &v) && v == i);
	}
	goro_chan_close(in);
	goro_chan_unref(in);
	goro_chan_unref(out);
}

static void one_of_many(goro_waitgroup *wg, atomic_int *n)
{
	atomic_fetch_add(n, 1);
	goro_waitgroup_done(wg);
}

static void spawn(uint64_t *r)
{
	int n = (int)rnd(r, 300);
	goro_waitgroup wg = { 0 };
	atomic_int count = 0;

	goro_waitgroup_add(&wg, n);
	for (int i = 0; i < n; i++)
		CHECK(go(one_of_many, &wg, &count) == 0);
	goro_waitgroup_wait(&wg);
	CHECK(atomic_load(&count) == n);
}

static void wait_for_time(uint64_t *r)
{
	goro_chan *never = goro_chan_of(int, 0);
	int64_t ns = (int64_t)rnd(r, 5 * GORO_MILLISECOND), start = goro_now();
	int v;

	goro_sleep(ns);
	CHECK(goro_now() - start >= ns);
	CHECK(goro_select_until(goro_now() + ns, GORO_RECV(never, &v)) == -1);
	goro_chan_unref(never);
}

static void stay_on_thread(uint64_t *r)
{
	pthread_t self;

	goro_lock_os_thread();
	self = pthread_self();
	nap(r);
	goro_gosched();
	CHECK(pthread_equal(self, pthread_self()));
	goro_unlock_os_thread();
}

static void insist(uint64_t *r)
{
	goro_preempt_disable();
	for (uint64_t i = rnd(r, 100000); i > 0; i--)
		__asm__ volatile("");
	goro_preempt_enable();
}

/* -------------------------------------------------------------- the actors */

static void (*const act[])(uint64_t *r) = {
	compute, round_own_way, print, allocate, lock_plain, lock_ours, nap, block_announced,
	poll_plain, receive_plain, transfer, converse, spawn, wait_for_time, stay_on_thread, insist,
};

static void actor(uint64_t r, goro_waitgroup *wg)
{
	for (uint64_t n = rnd(&r, 40); n > 0 && goro_now() < phase_end; n--) {
		act[rnd(&r, sizeof act / sizeof *act)](&r);
		atomic_fetch_add(&acts, 1);
	}
	atomic_fetch_add(&ended, 1);
	goro_waitgroup_done(wg);
}

/* Keeps about AT_ONCE of them going until the end of the phase. */
static void phase(void)
{
	goro_waitgroup wg = { 0 };

	phase_end = goro_now() + PHASE_NS;
	while (goro_now() < phase_end) {
		for (uint64_t live; (live = atomic_load(&started) - atomic_load(&ended)) < AT_ONCE;) {
			goro_waitgroup_add(&wg, 1);
			atomic_fetch_add(&started, 1);
			CHECK(go(actor, rnd(&seed, UINT64_MAX) | 1, &wg) == 0);
		}
		goro_sleep((int64_t)rnd(&seed, 100 * GORO_MILLISECOND));
		goro_gomaxprocs(1 + (int)rnd(&seed, 8));
	}
	goro_waitgroup_wait(&wg);
}

/* ---------------------------------------------------------- nothing grows */

struct size {
	long rss_kib, threads, files;
};

static struct size measure(void)
{
	struct size s = { 0, 0, 0 };
	char line[256];
	FILE *f = fopen("/proc/self/status", "r");

	CHECK(f != NULL);
	while (fgets(line, sizeof line, f)) {
		sscanf(line, "VmRSS: %ld", &s.rss_kib);
		sscanf(line, "Threads: %ld", &s.threads);
		sscanf(line, "FDSize: %ld", &s.files);
	}
	fclose(f);
	return s;
}

/* Long enough without work for threads in excess to end, and cold stacks to be
 * given back. */
static struct size measure_quiet(void)
{
	goro_gomaxprocs(2);
	goro_sleep(QUIET_NS);
	return measure();
}

static void check_growth(struct size first, struct size now)
{
	CHECK(now.threads <= QUIET_THREADS);
	CHECK(now.rss_kib <= first.rss_kib + first.rss_kib / 4 + 4096);
	CHECK(now.files <= first.files);
}

/* Sees to it that a hang is shown: SIGQUIT prints all goroutines. */
static atomic_llong phase_began;

static void *watch(void *arg)
{
	(void)arg;
	for (;;) {
		struct timespec t = { 1, 0 };

		nanosleep(&t, NULL);
		if (goro_now() - atomic_load(&phase_began) > STUCK_NS) {
			dprintf(2, "soak: a phase does not end; %llu started, %llu ended\n"
			           "0 passed, 1 failed\n", atomic_load(&started), atomic_load(&ended));
			kill(getpid(), SIGQUIT);
		}
	}
	return NULL;
}

/* Every goroutine that was started has ended. */
static void end_phase(void)
{
	CHECK(atomic_load(&started) == atomic_load(&ended));
	for (int i = 0; goro_num_goroutine() != 1; i++) {
		goro_sleep(GORO_MILLISECOND);	/* echoes and writers end by themselves */
		CHECK(i < 10000);
	}
}

static int soak(int argc, char **argv)
{
	int64_t end = goro_now() + (argc > 1 ? atoll(argv[1]) : 3600) * GORO_SECOND;
	struct size first = { 0, 0, 0 }, now;
	pthread_t thread;

	seed = (argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)goro_now()) | 1;
	printf("seed %llu\n", (unsigned long long)seed);
	nowhere = fopen("/dev/null", "w");
	atomic_store(&phase_began, goro_now());
	CHECK(pthread_create(&thread, NULL, watch, NULL) == 0);
	for (int n = 1; goro_now() < end; n++) {
		atomic_store(&phase_began, goro_now());
		phase();
		end_phase();
		if (n % QUIET_EVERY != 0)
			continue;
		now = measure_quiet();
		if (first.threads == 0)
			first = now;
		check_growth(first, now);
		printf("%d phases, %llu goroutines, %llu acts; %ld KiB, %ld threads\n", n,
		       atomic_load(&ended), atomic_load(&acts), now.rss_kib, now.threads);
		fflush(stdout);
	}
	printf("%llu goroutines, %llu acts\n1 passed, 0 failed\n", atomic_load(&ended),
	       atomic_load(&acts));
	return 0;
}

GORO_MAIN(soak)

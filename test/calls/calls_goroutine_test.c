/*
 * calls_goroutine_test.c - goroutines whose libraries block, with the library goro-calls
 * and without a word of their own.
 */
/* test: procs */
#include <goro.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <sys/socket.h>

#include "platform/atomic.h"
#include "await.h"
#include "sched/runtime.h"
#include "test.h"

static uint64_t handoffs(void)
{
	uint64_t n = 0;

	for (int i = 0; i < load_acquire(&sched.gomaxprocs); i++)
		n += load_relaxed(&p_at(i)->count.handoffs);
	return n;
}

/* True: the caller has handed its P over, or sysmon has taken it. */
static bool has_no_p(void)
{
	return load_relaxed(&m_self()->attn) & ATTN_TAKEN;
}

/* -------------------------------------------------------------- handing over */

static int ends[2];

static void write_one(void)
{
	CHECK_EQ(write(ends[1], "x", 1), 1);
}

/* A goroutine that was just started is behind the caller in the queue of its P, and the
 * other Ps are kept from it. */
static void only_p(void)
{
	goro_gomaxprocs(1);
	CHECK_EQ(pipe(ends), 0);
}

GO_TEST(a_read_of_an_empty_pipe_hands_over)
{
	bool was_awaited, lost;
	char c;

	only_p();
	/* The caller may be preempted between go and read: then the pipe is full. */
	for (int tries = 0;; tries++) {
		struct pollfd p = { .fd = ends[0], .events = POLLIN };
		uint64_t before = handoffs();

		go(write_one);
		was_awaited = goro_is_awaited() && poll(&p, 1, 0) == 0;
		errno = EXDEV;
		CHECK_EQ(read(ends[0], &c, 1), 1);
		lost = has_no_p();
		CHECK_EQ(errno, EXDEV);
		if (was_awaited && lost)
			CHECK(handoffs() > before);
		if (was_awaited && lost)
			return;
		CHECK(tries < 100);
	}
}

GO_TEST(who_has_no_p_is_not_awaited)
{
	only_p();
	while (!has_no_p()) {
		goro_gosched();
		go(write_one);
		goro_hand_over();
	}
	CHECK(!goro_is_awaited());
	goro_hand_over();
	CHECK(has_no_p());
	goro_gosched();		/* gets in line */
	CHECK(!has_no_p());
}

static void sleep_announced(void *arg)
{
	CHECK(!goro_is_awaited());
	goro_hand_over();
	usleep(1000);
	*(bool *)arg = true;
}

GO_TEST(an_announced_call_goes_straight_through)
{
	bool done = false;

	only_p();
	go(write_one);
	goro_blocking(sleep_announced, &done);
	CHECK(done);
	go(write_one);
	goro_syscall_enter();
	CHECK(!goro_is_awaited());
	usleep(1000);
	goro_syscall_exit();
}

static void *plain(void *arg)
{
	(void)arg;
	CHECK(!goro_is_awaited());
	goro_hand_over();
	usleep(1000);
	CHECK(!m_self());	/* it became no thread of the runtime's */
	goro_id();
	CHECK(!goro_is_awaited());
	goro_hand_over();
	usleep(1000);
	return NULL;
}

GO_TEST(a_plain_thread_goes_straight_through)
{
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, plain, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

GO_TEST(a_child_made_by_fork_goes_straight_through)
{
	int status;
	pid_t pid;

	only_p();
	go(write_one);
	pid = fork();
	if (pid == 0) {
		char c;

		CHECK(!goro_is_awaited());
		goro_hand_over();
		usleep(1000);
		CHECK_EQ(write(ends[1], "y", 1), 1);
		CHECK_EQ(read(ends[0], &c, 1), 1);
		_exit(0);
	}
	CHECK(pid > 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* ------------------------------------------------------------- the others */

static bool stop;
static uint64_t ticks;

static void tick(goro_waitgroup *wg)
{
	while (!load_relaxed(&stop)) {
		goro_sleep(GORO_MILLISECOND);
		store_relaxed(&ticks, ticks + 1);
	}
	goro_waitgroup_done(wg);
}

static void sleep_often(goro_waitgroup *wg)
{
	while (!load_relaxed(&stop))
		usleep(3000);
	goro_waitgroup_done(wg);
}

/* Without goro they would have the only P for 3 ms at a time. */
GO_TEST(a_ticker_goes_on_beside_sleepers)
{
	enum { SLEEPERS = 20, TICKS = 100 };
	goro_waitgroup wg = { 0 };

	goro_waitgroup_add(&wg, SLEEPERS + 1);
	go(tick, &wg);
	for (int i = 0; i < SLEEPERS; i++)
		go(sleep_often, &wg);
	while (load_relaxed(&ticks) < TICKS)
		goro_sleep(GORO_MILLISECOND);
	store_relaxed(&stop, true);
	goro_waitgroup_wait(&wg);
}

static int awaited;

/* Nobody waits when the sleep begins: the timer fires in it. sysmon alone would let the
 * ticker wait for milliseconds each time. */
static void sleep_and_yield(goro_waitgroup *wg)
{
	while (!load_relaxed(&stop)) {
		fetch_add_relaxed(&awaited, goro_is_awaited());
		usleep(20000);
		goro_gosched();
	}
	goro_waitgroup_done(wg);
}

GO_TEST(a_ticker_has_the_only_p_while_another_sleeps)
{
	enum { TICKS = 200 };
	goro_waitgroup wg = { 0 };

	only_p();
	goro_waitgroup_add(&wg, 1);
	go(sleep_and_yield, &wg);
	for (int i = 0; i < TICKS; i++) {
		goro_sleep(GORO_MILLISECOND);
		CHECK(!has_no_p());
	}
	store_relaxed(&stop, true);
	goro_waitgroup_wait(&wg);
	CHECK(load_relaxed(&awaited) > 0);
}

static void echo(int fd, int rounds, goro_waitgroup *wg)
{
	char c;

	for (int i = 0; i < rounds; i++) {
		CHECK_EQ(read(fd, &c, 1), 1);
		CHECK_EQ(write(fd, &c, 1), 1);
	}
	close(fd);
	goro_waitgroup_done(wg);
}

static void request(int fd, int rounds, goro_waitgroup *wg)
{
	void *before = &errno;	/* the thread's */
	pthread_t thread = pthread_self();
	char c;

	for (int i = 0; i < rounds; i++) {
		CHECK_EQ(write(fd, &(char){ (char)i }, 1), 1);
		CHECK_EQ(read(fd, &c, 1), 1);
		CHECK_EQ(c, (char)i);
		CHECK(pthread_equal(thread, pthread_self()) && before == &errno);
	}
	close(fd);
	goro_waitgroup_done(wg);
}

GO_TEST(many_requests_stay_on_their_threads)
{
	int pairs = SCALED(100), rounds = 20;
	goro_waitgroup wg = { 0 };

	goro_waitgroup_add(&wg, 2 * pairs);
	for (int i = 0; i < pairs; i++) {
		int fd[2];

		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
		go(echo, fd[0], rounds, &wg);
		go(request, fd[1], rounds, &wg);
	}
	goro_waitgroup_wait(&wg);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int turn;

static void take_turns(int me, int of, int rounds, goro_waitgroup *wg)
{
	for (int i = 0; i < rounds; i++) {
		pthread_mutex_lock(&mutex);
		while (turn % of != me)
			pthread_cond_wait(&cond, &mutex);
		turn++;
		pthread_cond_broadcast(&cond);
		pthread_mutex_unlock(&mutex);
	}
	goro_waitgroup_done(wg);
}

GO_TEST(turns_by_a_pthread_condition)
{
	enum { WORKERS = 8, ROUNDS = 50 };
	goro_waitgroup wg = { 0 };

	goro_waitgroup_add(&wg, WORKERS);
	for (int i = 0; i < WORKERS; i++)
		go(take_turns, i, WORKERS, ROUNDS, &wg);
	goro_waitgroup_wait(&wg);
	CHECK_EQ(turn, WORKERS * ROUNDS);
}

/* ----------------------------------------------------- what leaves a call */

static sigjmp_buf out;
static int caught;

static void jump(int sig)
{
	(void)sig;
	siglongjmp(out, 1);
}

static void signal_when_asleep(pthread_t thread, int tid)
{
	char path[64], first;
	int fd;

	do {
		goro_gosched();
		snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tid);
		fd = open(path, O_RDONLY);
		if (fd < 0 || read(fd, &first, 1) != 1)
			first = 'r';
		close(fd);
	} while (first == 'r');
	pthread_kill(thread, SIGUSR1);
}

GO_TEST(a_longjmp_leaves_a_call)
{
	int never[2];
	char c;

	CHECK_EQ(pipe(never), 0);
	only_p();
	signal(SIGUSR1, jump);
	for (int i = 0; i < 5; i++) {
		if (sigsetjmp(out, 1) == 0) {
			go(signal_when_asleep, pthread_self(), gettid());
			if (read(never[0], &c, 1) >= 0)
				FAIL("there was something to read");
		}
		goro_gosched();
		goro_sleep(1000);
	}
}

static goro_sema news;

static void call_goro(int sig)
{
	(void)sig;
	fetch_add_relaxed(&caught, 1);
	goro_sema_release(&news, 1);
}

/* The handler runs in the call, where an announced one would be fatal. */
GO_TEST(a_handler_calls_goro_within_a_call)
{
	int never[2];
	char c;

	CHECK_EQ(pipe(never), 0);
	only_p();
	goro_sema_init(&news, 1);
	CHECK_EQ(goro_sema_acquire(&news, 1, GORO_FOREVER), 0);
	sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = call_goro }, NULL);
	go(signal_when_asleep, pthread_self(), gettid());
	CHECK_EQ(read(never[0], &c, 1), -1);
	CHECK_EQ(errno, EINTR);
	CHECK_EQ(goro_sema_acquire(&news, 1, GORO_FOREVER), 0);
	CHECK_EQ(load_relaxed(&caught), 1);
}

static void on_nothing(int sig)
{
	(void)sig;
}

static void *read_for_ever(void *arg)
{
	char c;

	CHECK_EQ(read(*(int *)arg, &c, 1), -1);
	CHECK_EQ(errno, EINTR);
	store_relaxed(&caught, 1);
	while (read(*(int *)arg, &c, 1) < 0 && errno == EINTR)
		;
	return arg;
}

GO_TEST(a_plain_thread_is_interrupted_and_cancelled)
{
	int never[2];
	pthread_t t;
	void *result;

	CHECK_EQ(pipe(never), 0);
	sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = on_nothing }, NULL);
	CHECK_EQ(pthread_create(&t, NULL, read_for_ever, &never[0]), 0);
	while (!load_relaxed(&caught)) {
		/* the first may come before the call */
		CHECK_EQ(pthread_kill(t, SIGUSR1), 0);
		usleep(100);
	}
	CHECK_EQ(pthread_cancel(t), 0);
	CHECK_EQ(pthread_join(t, &result), 0);
	CHECK(result == PTHREAD_CANCELED);
}

/* -------------------------------------------------------------- all at once */

static void mixture(unsigned seed, goro_waitgroup *wg)
{
	struct pollfd p = { .fd = ends[0], .events = POLLIN };
	sem_t sem;

	sem_init(&sem, 0, 1);
	for (int i = 0; i < 60; i++) {
		struct timespec t;

		switch (rand_r(&seed) % 8) {
		case 0: usleep(seed % 300); break;
		case 1: poll(&p, 1, seed % 2); break;
		case 2: goro_gosched(); break;
		case 3: goro_sleep(seed % 100000); break;
		case 4:
			clock_gettime(CLOCK_REALTIME, &t);
			sem_timedwait(&sem, &t);
			break;
		case 5:
			pthread_mutex_lock(&mutex);
			clock_gettime(CLOCK_REALTIME, &t);
			pthread_cond_timedwait(&cond, &mutex, &t);
			pthread_mutex_unlock(&mutex);
			break;
		case 6: goro_blocking(sleep_announced, &(bool){ false }); break;
		case 7:
			for (volatile int k = 0; k < 20000; k++)
				;
		}
	}
	goro_waitgroup_done(wg);
}

GO_TEST_TIMEOUT(everything_at_random, 120)
{
	int n = SCALED(200);
	goro_waitgroup wg = { 0 };

	CHECK_EQ(pipe(ends), 0);
	goro_waitgroup_add(&wg, n);
	for (int i = 0; i < n; i++)
		go(mixture, (unsigned)i * 2654435761u + 1, &wg);
	goro_waitgroup_wait(&wg);
}

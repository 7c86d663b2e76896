/*
 * evacuate_test.c - stacks of goroutines that wait for long are elsewhere, and nothing
 * else changes.
 */
/* test: procs */
#include "reclaim/evacuate_impl.h"

#include <alloca.h>
#include <fcntl.h>
#include <fenv.h>
#include <goro.h>
#include <linux/futex.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "platform/atomic.h"
#include "await.h"
#include "base/debug.h"
#include "refuse.h"
#include "test.h"

/* The server looks every millisecond, and every stretch is worth it. */
static void evacuate_soon(void)
{
	store_relaxed(&debug.evacuate, 1);
	AWAIT(evacuate_threads() || !evacuate_works());
	if (!evacuate_works())
		SKIP("no userfaultfd here, or a build without evacuation");
}

/* The page at the address is missing. */
static bool is_away(const volatile void *addr)
{
	unsigned char there = 0;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	CHECK_EQ(mincore((void *)((uintptr_t)addr & -page), 1, &there), 0);
	return !(there & 1);
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 31)) * UINT64_C(0x9e3779b97f4a7c15);
	return x ^ (x >> 29);
}

/* ----------------------------------------------------- what is there survives */

static goro_waitgroup gate, begun, ended;

/* Words that shrink, of all lengths, and some that are zero. */
static uint64_t word_of(int who, size_t i)
{
	uint64_t x = mix((uint64_t)who << 32 | i);

	return x % 3 ? x >> (x % 56) & 0xffffff : 0;
}

static void wait_at_gate(void)
{
	goro_waitgroup_done(&begun);
	goro_waitgroup_wait(&gate);
}

/* A frame of any size, with something in each word of it. */
static SEEN void hold(int who, size_t bytes)
{
	volatile uint64_t *w = alloca(bytes + 8);
	size_t n = bytes / 8;

	for (size_t i = 0; i < n; i++)
		w[i] = word_of(who, i);
	wait_at_gate();
	for (size_t i = 0; i < n; i++)
		CHECK_EQ(w[i], word_of(who, i));
	goro_waitgroup_done(&ended);
}

static SEEN long deep(int who, int left)
{
	volatile long mine[5] = { who, left, who * 31L + left, -1, 1L << left % 60 };
	long below;

	if (left == 0) {
		wait_at_gate();
		below = 0;
	} else {
		below = deep(who, left - 1);
	}
	CHECK_EQ(mine[0], who);
	CHECK_EQ(mine[1], left);
	CHECK_EQ(mine[2], who * 31L + left);
	CHECK_EQ(mine[4], 1L << left % 60);
	return below + 1;
}

static void hold_deep(int who, int frames)
{
	CHECK_EQ(deep(who, frames), frames + 1);
	goro_waitgroup_done(&ended);
}

/* Waits with values in registers, the rounding mode and errno. */
static void hold_state(int who)
{
	static const int modes[] = { FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };
	long a = who, b = who * 3L, c = who * 5L, d = who * 7L, e = who * 11L;
	double x = who / 3.0, y = who / 7.0;

	CHECK_EQ(fesetround(modes[who % 4]), 0);
	errno = who;
	__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e));
	wait_at_gate();
	__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e));
	CHECK_EQ(errno, who);
	CHECK_EQ(a + b + c + d + e, 27L * who);
	CHECK_EQ(fegetround(), modes[who % 4]);
	fesetround(FE_TONEAREST);
	CHECK(x == who / 3.0 && y == who / 7.0);
	goro_waitgroup_done(&ended);
}

static void gate_close(int n)
{
	gate = begun = ended = (goro_waitgroup){ 0 };
	goro_waitgroup_add(&gate, 1);
	goro_waitgroup_add(&begun, n);
	goro_waitgroup_add(&ended, n);
}

static void gate_open(void)
{
	goro_waitgroup_done(&gate);
	goro_waitgroup_wait(&ended);
}

/* Until n goroutines wait at the gate, and all but a few are away. */
static void await_away(size_t n)
{
	goro_waitgroup_wait(&begun);
	AWAIT(evacuate_stacks() >= n);
}

GO_TEST(frames_of_all_sizes_come_back)
{
	enum { N = 300 };

	evacuate_soon();
	for (int round = 0; round < 3; round++) {
		gate_close(N);
		for (int i = 0; i < N; i++)
			go(hold, i, (size_t)i * 61 + (size_t)round * 8);
		await_away(N * 9 / 10);
		gate_open();
	}
}

GO_TEST(deep_stacks_come_back)
{
	enum { N = 200 };

	evacuate_soon();
	gate_close(N);
	for (int i = 0; i < N; i++)
		go(hold_deep, i, i * 2);
	await_away(N);
	gate_open();
}

GO_TEST(registers_and_modes_come_back)
{
	enum { N = 200 };

	evacuate_soon();
	gate_close(N);
	for (int i = 0; i < N; i++)
		go(hold_state, i);
	await_away(N);
	gate_open();
}

/* A page that does not shrink stays where it is, and stays right. */
static void hold_random(int who)
{
	volatile uint64_t w[1000];

	for (size_t i = 0; i < 1000; i++)
		w[i] = mix((uint64_t)who * 1000 + i);
	wait_at_gate();
	for (size_t i = 0; i < 1000; i++)
		CHECK_EQ(w[i], mix((uint64_t)who * 1000 + i));
	goro_waitgroup_done(&ended);
}

GO_TEST(what_does_not_shrink_stays)
{
	enum { N = 100 };

	evacuate_soon();
	gate_close(2 * N);
	for (int i = 0; i < N; i++) {
		go(hold_random, i);
		go(hold, i, (size_t)100);
	}
	await_away(N);
	gate_open();
}

static void hold_by_number(void *arg)
{
	hold((int)(uintptr_t)arg, (uintptr_t)arg * 100);
}

/* Stacks of each class have regions of their own. */
GO_TEST(small_and_large_stacks)
{
	static const size_t sizes[] = { 16 << 10, 64 << 10, 1 << 20, 16 << 20 };
	enum { N = 80 };

	evacuate_soon();
	gate_close(N);
	for (int i = 0; i < N; i++) {
		struct goro_attr attr = { .stack_size = sizes[i % 4] };

		CHECK_EQ(goro_go_attr(&attr, hold_by_number, (void *)(uintptr_t)i), 0);
	}
	await_away(N);
	gate_open();
}

/* ------------------------------------------------------------ others reach in */

/* On the stack of a goroutine that waits. Other goroutines use it. */
struct shared {
	uint64_t counter[4];
	uint32_t word;
	pthread_mutex_t mutex;
	char text[64];
	struct iovec iov;
};

static struct shared *volatile shown;

static void show(void)
{
	struct shared s = { .counter = { 1 }, .mutex = PTHREAD_MUTEX_INITIALIZER, .text = "before" };

	shown = &s;
	wait_at_gate();
	goro_waitgroup_done(&ended);
}

static struct shared *show_one(void)
{
	evacuate_soon();
	gate_close(1);
	go(show);
	goro_waitgroup_wait(&begun);
	return shown;
}

/* Until the page is away. Only the caller touches it afterwards. */
static void until_away(const struct shared *s)
{
	AWAIT(is_away(s));
}

static void reach_in(struct shared *s)
{
	int pipe_fd[2];
	char buf[64];

	CHECK_EQ(pipe(pipe_fd), 0);
	until_away(s);
	CHECK_EQ(s->counter[0], 1);		/* reads */
	until_away(s);
	s->counter[1] = 7;			/* writes */
	until_away(s);
	CHECK_EQ(s->counter[1], 7);
	until_away(s);
	CHECK_EQ(fetch_add_seqcst(&s->counter[0], 5), 1);
	until_away(s);
	CHECK_EQ(load_relaxed(&s->counter[0]), 6);
	s->counter[0] = 1;

	until_away(s);				/* system calls */
	CHECK_EQ(write(pipe_fd[1], s->text, 7), 7);
	until_away(s);
	CHECK_EQ(read(pipe_fd[0], buf, sizeof buf), 7);
	CHECK_STR(buf, "before");
	CHECK_EQ(write(pipe_fd[1], "behind", 7), 7);
	until_away(s);
	CHECK_EQ(read(pipe_fd[0], s->text, sizeof s->text), 7);
	until_away(s);
	CHECK_STR(s->text, "behind");
	strcpy(s->text, "before");

	s->iov = (struct iovec){ s->text, 7 };	/* both the list and what it names */
	until_away(s);
	CHECK_EQ(writev(pipe_fd[1], &s->iov, 1), 7);
	until_away(s);
	CHECK_EQ(readv(pipe_fd[0], &s->iov, 1), 7);
	CHECK_STR(s->text, "before");

	until_away(s);
	CHECK_EQ(process_vm_readv(getpid(), &(struct iovec){ buf, 7 }, 1, &(struct iovec){ s->text, 7 }, 1, 0), 7);

	s->word = 3;
	until_away(s);
	CHECK_EQ(syscall(SYS_futex, &s->word, FUTEX_WAIT, 4, NULL), -1);
	CHECK_EQ(errno, EAGAIN);
	until_away(s);
	CHECK_EQ(syscall(SYS_futex, &s->word, FUTEX_WAKE_PRIVATE, 1), 0);
	until_away(s);
	CHECK_EQ(pthread_mutex_lock(&s->mutex), 0);
	until_away(s);
	CHECK_EQ(pthread_mutex_trylock(&s->mutex), EBUSY);
	until_away(s);
	CHECK_EQ(pthread_mutex_unlock(&s->mutex), 0);
	close(pipe_fd[0]);
	close(pipe_fd[1]);
}

GO_TEST(goroutines_reach_in)
{
	struct shared *s = show_one();

	for (int i = 0; i < 2; i++)
		reach_in(s);
	gate_open();
}

static void *reach_in_from_thread(void *arg)
{
	reach_in(arg);
	return NULL;
}

/* While it waits a goroutine runs now and then: in a process at rest nothing is
 * evacuated. */
GO_TEST(threads_reach_in)
{
	struct shared *s = show_one();
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, reach_in_from_thread, s), 0);
	while (pthread_tryjoin_np(t, NULL) != 0)
		goro_sleep(GORO_MILLISECOND);
	gate_open();
}

/* One thread sleeps on a futex and another on a mutex in the page, which comes and
 * goes. */
static void *sleep_there(void *arg)
{
	struct shared *s = arg;

	while (load_seqcst(&s->word) == 0)
		syscall(SYS_futex, &s->word, FUTEX_WAIT_PRIVATE, 0, NULL);
	pthread_mutex_lock(&s->mutex);
	s->counter[2]++;
	pthread_mutex_unlock(&s->mutex);
	return NULL;
}

GO_TEST(threads_sleep_there)
{
	struct shared *s = show_one();
	pthread_t t[4];

	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, sleep_there, s), 0);
	for (int i = 0; i < 5; i++) {
		until_away(s);
		CHECK_EQ(load_relaxed(&s->word), 0);
	}
	pthread_mutex_lock(&s->mutex);
	until_away(s);
	store_seqcst(&s->word, 1);
	until_away(s);
	syscall(SYS_futex, &s->word, FUTEX_WAKE_PRIVATE, 100);
	goro_sleep(5 * GORO_MILLISECOND);
	until_away(s);
	pthread_mutex_unlock(&s->mutex);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	until_away(s);
	CHECK_EQ(s->counter[2], 4);
	gate_open();
}

/* ------------------------------------------------ where it must not be away
 *
 * The kernel does not wait for a page in all that it does: see "What does not wait". */

static void show_locked(void)
{
	goro_lock_os_thread();
	show();
	goro_unlock_os_thread();
}

static void *end_with_mutex(void *mutex)
{
	pthread_mutex_lock(mutex);
	return NULL;
}

static void wait_for_owner_that_ended(pthread_mutex_t *mutex)
{
	pthread_mutexattr_t attr;
	pthread_t t;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	CHECK_EQ(pthread_mutex_init(mutex, &attr), 0);
	CHECK_EQ(pthread_create(&t, NULL, end_with_mutex, mutex), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(pthread_mutex_trylock(mutex), EOWNERDEAD);
	CHECK_EQ(pthread_mutex_consistent(mutex), 0);
	CHECK_EQ(pthread_mutex_unlock(mutex), 0);
}

/* After several looks the page would be away again. */
static void let_the_server_look(void)
{
	uint32_t pass = load_relaxed(&evacuation.pass);

	AWAIT(load_relaxed(&evacuation.pass) - pass >= 8 || load_relaxed(&evacuation.alive) == 0);
	goro_sleep(20 * GORO_MILLISECOND);
}

GO_TEST(one_locked_to_its_thread_stays)
{
	int op = FUTEX_OP(FUTEX_OP_ADD, 1, FUTEX_OP_CMP_EQ, 0), mem = open("/proc/self/mem", O_RDONLY);
	struct shared *s;
	char text[7];

	evacuate_soon();
	gate_close(2);
	go(show_locked);
	go(hold, 1, (size_t)100);
	goro_waitgroup_wait(&begun);
	AWAIT(evacuate_stacks() >= 1);
	s = shown;
	for (int i = 0; i < 3; i++) {
		let_the_server_look();
		CHECK(!is_away(s));
		s->word = 0;
		let_the_server_look();
		CHECK_EQ(syscall(SYS_futex, &s->counter[2], FUTEX_WAKE_OP_PRIVATE, 1, 1, &s->word, op), 0);
		CHECK_EQ(s->word, 1);
		s->word = 0;
		let_the_server_look();
		CHECK_EQ(syscall(SYS_futex, &s->word, FUTEX_LOCK_PI_PRIVATE, 0, NULL), 0);
		CHECK_EQ(syscall(SYS_futex, &s->word, FUTEX_UNLOCK_PI_PRIVATE), 0);
		let_the_server_look();
		CHECK(mem < 0 || pread(mem, text, sizeof text, (off_t)(uintptr_t)s->text) == sizeof text);
		wait_for_owner_that_ended(&s->mutex);
	}
	gate_open();
}

/* A sent value lands in the stack of its receiver, among other values. */
static void receive(goro_chan *ch, int who)
{
	volatile uint64_t before = mix((uint64_t)who), got = 0, after = mix((uint64_t)who + 1);

	goro_waitgroup_done(&begun);
	CHECK(goro_chan_recv(ch, (void *)&got));
	CHECK_EQ(before, mix((uint64_t)who));
	CHECK_EQ(after, mix((uint64_t)who + 1));
	CHECK(got > 0 && got <= 100);
	goro_waitgroup_done(&ended);
}

GO_TEST(values_are_received_there)
{
	goro_chan *ch = goro_chan_make(sizeof(uint64_t), 0);
	enum { N = 100 };

	evacuate_soon();
	gate_close(N);
	for (int i = 0; i < N; i++)
		go(receive, ch, i);
	await_away(N);
	for (uint64_t i = 1; i <= N; i++)
		goro_chan_send(ch, &i);
	goro_waitgroup_wait(&ended);
	goro_chan_unref(ch);
}

/* --------------------------------------------------------------- nothing is lost */

enum { COUNTERS = 256 };
static uint64_t *counter_at[COUNTERS];
static bool stop;

static void count_there(int i)
{
	uint64_t mine[2] = { 0, mix((uint64_t)i) };

	counter_at[i] = mine;
	wait_at_gate();
	CHECK_EQ(mine[1], mix((uint64_t)i));
	goro_waitgroup_done(&ended);
}

/* Each goroutine adds to all counters, in an order and at a pace of its own. */
static uint64_t added[8];

static void *add_there(void *arg)
{
	uint64_t me = (uint64_t)(uintptr_t)arg, x = me + 1;

	while (!load_relaxed(&stop)) {
		x = mix(x + me);
		fetch_add_seqcst(counter_at[x % COUNTERS], 1);
		added[me]++;
		if (x >> 60 == 0)
			usleep(100);
	}
	return NULL;
}

static void add_in_goroutine(uintptr_t me, goro_waitgroup *wg)
{
	uint64_t x = me + 1;

	while (!load_relaxed(&stop)) {
		x = mix(x + me);
		fetch_add_seqcst(counter_at[x % COUNTERS], 1);
		added[me]++;
		if (x >> 61 == 0)
			goro_sleep(100 * GORO_MICROSECOND);
	}
	goro_waitgroup_done(wg);
}

GO_TEST_TIMEOUT(no_write_is_lost, 150)
{
	goro_waitgroup adders = { 0 };
	uint64_t sum = 0, want = 0;
	pthread_t t[4];

	evacuate_soon();
	gate_close(COUNTERS);
	for (int i = 0; i < COUNTERS; i++)
		go(count_there, i);
	goro_waitgroup_wait(&begun);
	goro_waitgroup_add(&adders, 4);
	for (uintptr_t i = 0; i < 4; i++) {
		CHECK_EQ(pthread_create(&t[i], NULL, add_there, (void *)i), 0);
		go(add_in_goroutine, 4 + i, &adders);
	}
	while (load_relaxed(&evacuation.away_ever) < SCALED(5000))
		goro_sleep(10 * GORO_MILLISECOND);
	store_relaxed(&stop, true);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	goro_waitgroup_wait(&adders);
	for (int i = 0; i < COUNTERS; i++)
		sum += *counter_at[i];
	for (int i = 0; i < 8; i++)
		want += added[i];
	CHECK_EQ(sum, want);
	gate_open();
}

/* ------------------------------------------------- woken at whatever moment */

static uint64_t sleeps_done;

static void sleep_and_compare(int who)
{
	uint64_t x = mix((uint64_t)who);
	volatile uint64_t w[40];

	while (!load_relaxed(&stop)) {
		for (size_t i = 0; i < 40; i++)
			w[i] = x % (i + 1) ? 0 : x >> i;
		goro_sleep((int64_t)(x % 6000) * GORO_MICROSECOND);
		for (size_t i = 0; i < 40; i++)
			CHECK_EQ(w[i], x % (i + 1) ? 0 : x >> i);
		x = mix(x + 1);
		fetch_add_relaxed(&sleeps_done, 1);
	}
	goro_waitgroup_done(&ended);
}

GO_TEST_TIMEOUT(woken_at_any_moment, 120)
{
	enum { N = 400 };

	evacuate_soon();
	gate_close(N);
	for (int i = 0; i < N; i++)
		go(sleep_and_compare, i);
	while (load_relaxed(&evacuation.away_ever) < SCALED(3000) || load_relaxed(&sleeps_done) < SCALED(50000))
		goro_sleep(10 * GORO_MILLISECOND);
	store_relaxed(&stop, true);
	goro_waitgroup_wait(&ended);
}

/* ---------------------------------------------------------------- neighbours */

static SEEN uint64_t grow(int left, uint64_t x)
{
	volatile uint64_t frame[200];

	frame[0] = x;
	frame[199] = ~x;
	if (left > 0)
		x = grow(left - 1, mix(x));
	CHECK_EQ(frame[0], ~frame[199]);
	return x + frame[0];
}

static void grow_and_end(int i, goro_waitgroup *wg)
{
	CHECK(grow(20, (uint64_t)i + 1) != 0);
	goro_gosched();
	CHECK(grow(60, (uint64_t)i + 1) != 0);
	goro_waitgroup_done(wg);
}

/* Goroutines start, grow and end in the slots beside. Their stacks are given back and
 * used again. */
GO_TEST_TIMEOUT(neighbours_come_and_go, 120)
{
	enum { N = 200 };
	uint64_t before;

	evacuate_soon();
	gate_close(N);
	for (int i = 0; i < N; i++) {
		goro_waitgroup wg = { 0 };

		go(hold, i, (size_t)i * 13);
		goro_waitgroup_add(&wg, 3);
		for (int k = 0; k < 3; k++)
			go(grow_and_end, k, &wg);
		goro_waitgroup_wait(&wg);
	}
	await_away(N / 2);
	before = load_relaxed(&evacuation.away_ever);
	for (int round = 0; round < 30; round++) {
		goro_waitgroup wg = { 0 };

		goro_waitgroup_add(&wg, 300);
		for (int k = 0; k < 300; k++)
			go(grow_and_end, k, &wg);
		goro_waitgroup_wait(&wg);
		goro_sleep(20 * GORO_MILLISECOND);
	}
	CHECK(load_relaxed(&evacuation.away_ever) >= before);
	gate_open();
}

/* Goroutines wait, leave and wait again, many times, in the same slots. */
static void wait_a_little(goro_chan *ch, int i)
{
	hold(i, (size_t)i * 7);
	goro_chan_send(ch, &i);
}

GO_TEST_TIMEOUT(slots_are_used_again, 120)
{
	enum { N = 300, ROUNDS = 8 };
	goro_chan *ch = goro_chan_make(sizeof(int), N);

	evacuate_soon();
	for (int round = 0; round < ROUNDS; round++) {
		long sum = 0;

		gate_close(N);
		for (int i = 0; i < N; i++)
			go(wait_a_little, ch, i);
		await_away(N * 9 / 10);
		gate_open();
		for (int i = 0, got; i < N; i++) {
			CHECK(goro_chan_recv(ch, &got));
			sum += got;
		}
		CHECK_EQ(sum, N * (N - 1) / 2);
		if (round % 4 == 0)
			goro_sleep(300 * GORO_MILLISECOND);	/* they are given back */
	}
	goro_chan_unref(ch);
}

static SEEN int overflow(volatile char *above)
{
	volatile char frame[512];

	frame[0] = *above;
	if (frame[0] == 'x')
		return 0;
	return overflow(frame) + frame[0];
}

static int overflow_beside(int argc, char **argv)
{
	char c = (char)argc;

	(void)argv;
	evacuate_soon();
	gate_close(100);
	for (int i = 0; i < 100; i++)
		go(hold, i, (size_t)100);
	await_away(90);
	return overflow(&c);
}

static void run_main(void (*main_fn)(void))
{
	exit(goro_run((int (*)(int, char **))(uintptr_t)main_fn, 0, NULL));
}

static void run_anew(int (*fn)(int, char **), struct test_output *o)
{
	test_run_anew(run_main, (void (*)(void))(uintptr_t)fn, o);
	if (o->status == TEST_SKIPPED)
		SKIP("no userfaultfd here, or a build without evacuation");
}

TEST(overflow_of_a_neighbour_is_told)
{
	struct test_output o;

	if (TOOL_TSAN)
		SKIP("TSan tells it its own way");
	run_anew(overflow_beside, &o);
	CHECK_EQ(o.status, 2);
	CHECK_CONTAINS(o.err, "stack overflow");
}

/* ------------------------------------------------------------ ends and dumps */

static SEEN void waits_here(void)
{
	wait_at_gate();
	goro_waitgroup_done(&ended);
	NO_TAIL_CALL();
}

GO_TEST(dumps_show_all)
{
	enum { N = 300 };
	char *text;
	size_t n, seen = 0;
	FILE *f;

	evacuate_soon();
	gate_close(N);
	for (int i = 0; i < N; i++)
		go(waits_here);
	await_away(N);
	f = open_memstream(&text, &n);
	goro_dump(f);
	fclose(f);
	for (char *at = text; (at = strstr(at, "\nwaits_here(")); at++)
		seen++;
	CHECK_EQ(seen, N);
	free(text);
	gate_open();
}

static int fault_beside(int argc, char **argv)
{
	(void)argc, (void)argv;
	evacuate_soon();
	gate_close(100);
	for (int i = 0; i < 100; i++)
		go(waits_here);
	await_away(100);
	return *(volatile int *)test_last_output.out;	/* NULL */
}

TEST(a_fault_shows_all)
{
	struct test_output o;

	if (TOOL_TSAN)
		SKIP("TSan tells it its own way");
	setenv("GORO_TRACEBACK", "all", 1);
	run_anew(fault_beside, &o);
	CHECK_EQ(o.signal, SIGSEGV);
	CHECK_CONTAINS(o.err, "waits_here(");
	CHECK_CONTAINS(o.err, "fault_beside(");
}

static int deadlock_beside(int argc, char **argv)
{
	(void)argc, (void)argv;
	evacuate_soon();
	gate_close(100);
	for (int i = 0; i < 100; i++)
		go(waits_here);
	await_away(100);
	goro_waitgroup_wait(&ended);
	return 0;
}

TEST(a_deadlock_is_seen)
{
	struct test_output o;

	test_needs_deadlocks();
	run_anew(deadlock_beside, &o);
	CHECK_EQ(o.status, 2);
	CHECK_CONTAINS(o.err, "all goroutines are asleep - deadlock!");
	CHECK_CONTAINS(o.err, "waits_here(");
}

static void refuse_to_put_back(int error)
{
	struct sock_filter code[] = {
		REFUSE_LOAD(nr),
		REFUSE_UNLESS(SYS_ioctl, 3),
		REFUSE_LOAD(args[1]),
		REFUSE_UNLESS(UFFDIO_COPY, 1),
		REFUSE_WITH((uint32_t)error),
		REFUSE_ALLOW,
	};

	refuse(code, sizeof code / sizeof *code);
}

/* Goes on in a child whose standard error is a socket, as a service's often is. The
 * parent passes on what the child writes, and ends as it does. */
static void with_stderr_a_socket(void)
{
	char buf[4096];
	int fd[2], status;
	ssize_t n;

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	if (fork() == 0) {
		CHECK_EQ(dup2(fd[1], 2), 2);
		close(fd[0]);
		close(fd[1]);
		return;
	}
	close(fd[1]);
	while ((n = read(fd[0], buf, sizeof buf)) > 0)
		if (write(2, buf, (size_t)n) != n)
			break;
	wait(&status);
	_exit(WEXITSTATUS(status));
}

static int touch_what_cannot_come_back(int argc, char **argv)
{
	struct shared *s;

	(void)argc, (void)argv;
	s = show_one();
	store_relaxed(&evacuation.put_tries, 20);
	until_away(s);
	refuse_to_put_back(ENOMEM);
	return (int)s->counter[0];
}

static void without_pages(void (*unused)(void))
{
	(void)unused;
	with_stderr_a_socket();
	run_main((void (*)(void))(uintptr_t)touch_what_cannot_come_back);
}

TEST(a_page_that_never_comes_back_ends_the_process)
{
	struct test_output o;

	test_run_anew(without_pages, NULL, &o);
	if (o.status == TEST_SKIPPED)
		SKIP("no userfaultfd here, or a build without evacuation");
	CHECK_EQ(o.status, 2);
	CHECK_CONTAINS(o.err, "evacuate: a page cannot be put back: error 12");
}

/* --------------------------------------------------------------------- fork */

enum { FORK_N = 100, FORK_WORDS = 700 };
static volatile uint64_t *fork_at[FORK_N];

static void show_words(int who)
{
	volatile uint64_t w[FORK_WORDS];

	for (size_t i = 0; i < FORK_WORDS; i++)
		w[i] = word_of(who, i);
	fork_at[who] = w;
	wait_at_gate();
	for (size_t i = 0; i < FORK_WORDS; i++)
		CHECK_EQ(w[i], word_of(who, i));
	goro_waitgroup_done(&ended);
}

static bool words_are_right(void)
{
	for (int who = 0; who < FORK_N; who++)
		for (size_t i = 0; i < FORK_WORDS; i++)
			if (fork_at[who][i] != word_of(who, i))
				return false;
	return true;
}

static void touch_others(goro_waitgroup *wg)
{
	uint64_t x = 1;

	while (!load_relaxed(&stop)) {
		x = mix(x);
		CHECK_EQ(fork_at[x % FORK_N][0], word_of((int)(x % FORK_N), 0));
		goro_sleep(300 * GORO_MICROSECOND);
	}
	goro_waitgroup_done(wg);
}

static void fork_and_compare(void)
{
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0)
		_exit(words_are_right() ? 7 : 8);
	while (waitpid(pid, &status, 0) < 0)
		CHECK_EQ(errno, EINTR);
	CHECK_EQ(WEXITSTATUS(status), 7);
}

GO_TEST_TIMEOUT(a_forked_child_has_them_all, 120)
{
	goro_waitgroup touchers = { 0 };

	evacuate_soon();
	gate_close(FORK_N);
	for (int i = 0; i < FORK_N; i++)
		go(show_words, i);
	await_away(FORK_N);
	fork_and_compare();
	CHECK(evacuate_stacks() >= FORK_N);
	goro_waitgroup_add(&touchers, 2);
	go(touch_others, &touchers);
	go(touch_others, &touchers);
	for (int i = 0; i < SCALED(100); i++)
		fork_and_compare();
	store_relaxed(&stop, true);
	goro_waitgroup_wait(&touchers);
	CHECK(words_are_right());
	await_away(FORK_N);		/* although they have been shared */
	gate_open();
}

GO_TEST(programs_are_started)
{
	extern char **environ;
	char *argv[] = { "/bin/true", NULL };

	evacuate_soon();
	gate_close(100);
	for (int i = 0; i < 100; i++)
		go(waits_here);
	await_away(100);
	for (int i = 0; i < 10; i++) {
		int status = -1;
		pid_t pid;

		CHECK_EQ(posix_spawn(&pid, argv[0], NULL, NULL, argv, environ), 0);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 0);
	}
	CHECK(evacuate_stacks() >= 100);
	gate_open();
}

/* --------------------------------------------------------------- where it is not */

GO_TEST(without_userfaultfd_nothing_happens)
{
	store_relaxed(&debug.nouserfault, 1);
	store_relaxed(&debug.evacuate, 1);
	gate_close(100);
	for (int i = 0; i < 100; i++)
		go(hold, i, (size_t)i * 10);
	goro_waitgroup_wait(&begun);
	AWAIT(!evacuate_works());
	goro_sleep(20 * GORO_MILLISECOND);
	CHECK_EQ(evacuate_stacks(), 0);
	CHECK_EQ(evacuate_threads(), 0);
	gate_open();
}

GO_TEST(switched_off_nothing_happens)
{
	store_relaxed(&debug.evacuate, -1);
	gate_close(3000);
	for (int i = 0; i < 3000; i++)
		go(waits_here);
	goro_waitgroup_wait(&begun);
	goro_sleep(300 * GORO_MILLISECOND);
	CHECK_EQ(evacuate_threads(), 0);
	gate_open();
}

/* Of many goroutines few are left. Their stacks, most of them of dead ones, are not
 * looked at. */
GO_TEST_TIMEOUT(of_few_nothing_is_looked_at, 60)
{
	gate_close(2 * EVACUATE_MIN_ALIVE);
	for (int i = 0; i < 2 * EVACUATE_MIN_ALIVE; i++)
		go(waits_here);
	AWAIT(evacuate_threads() || !evacuate_works());
	gate_open();
	if (!evacuate_works())
		SKIP("no userfaultfd here, or a build without evacuation");
	gate_close(100);
	for (int i = 0; i < 100; i++)
		go(waits_here);
	AWAIT(load_relaxed(&evacuation.pass) >= 1);
	gate_open();
	AWAIT(load_relaxed(&evacuation.pass) >= 2);
	for (uint32_t i = 0; i < stack_regions(); i++)
		CHECK(!evacuation.grounds[i]);
}

/* ------------------------------------------------------------------- memory */

static long status_bytes(const char *name)
{
	char line[256];
	long kb = -1;
	FILE *f = fopen("/proc/self/status", "r");

	CHECK(f);
	while (kb < 0 && fgets(line, sizeof line, f))
		if (!strncmp(line, name, strlen(name)))
			kb = atol(line + strlen(name) + 1);
	fclose(f);
	return kb * 1024;
}

static long memory(void)
{
	return status_bytes("VmRSS") + status_bytes("VmPTE");
}

GO_TEST_TIMEOUT(one_that_waits_takes_less_than_2_KiB, 120)
{
	enum { N = 8000 };
	long before = memory(), each;
	struct goro_stats s;

	if (TOOL_TSAN)
		SKIP("TSan takes more");
	evacuate_soon();
	gate_close(N);
	for (int i = 0; i < N; i++)
		go(waits_here);
	await_away(N - 100);
	AWAIT((each = (memory() - before) / N) < 2048);
	CHECK(each > 200);
	goro_stats_read(&s);
	CHECK(s.stacks_evacuated >= N - 200);
	CHECK(s.stack_bytes_evacuated > N * 64);
	gate_open();
	CHECK(evacuate_stacks() < 100);
}

/* How often the process's threads went to sleep, in sum. */
static long switches(void)
{
	char command[128], out[64] = "";
	FILE *f;

	snprintf(command, sizeof command,
	         "cat /proc/%d/task/*/status | awk '/^vol/ { n += $2 } END { print n }'",
	         getpid());
	f = popen(command, "r");
	CHECK(f && fgets(out, sizeof out, f));
	pclose(f);
	return atol(out);
}

/* When all stacks are away the server has nothing left to do. */
GO_TEST(then_nobody_wakes)
{
	long before;

	evacuate_soon();
	gate_close(200);
	for (int i = 0; i < 200; i++)
		go(waits_here);
	await_away(200);
	goro_sleep(300 * GORO_MILLISECOND);
	before = switches();
	goro_sleep(500 * GORO_MILLISECOND);
	CHECK(switches() - before < 150);	/* not every millisecond */
	gate_open();
}

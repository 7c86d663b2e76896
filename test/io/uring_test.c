/*
 * uring_test.c - files: as it comes, by io_uring alone, and without it. A test that is to
 * go to the disk first drops the page cache.
 */
/* test: procs */
#include <fcntl.h>
#include <goro.h>
#include <linux/io_uring.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "platform/atomic.h"
#include "await.h"
#include "deadlock.h"
#include "base/debug.h"
#include "in_runtime.h"
#include "syscall_filter.h"
#include "temporary.h"
#include "test.h"
#include "io/file.h"
#include "io/uring.h"

#define BLOCK 4096

static int temporary(void)
{
	int fd = temporary_in("/tmp");

	CHECK(fd >= 0);
	return fd;
}

/* Every 8 bytes are their own index. */
static int file_of(size_t blocks)
{
	uint64_t block[BLOCK / 8];
	int fd = temporary();

	for (size_t i = 0; i < blocks; i++) {
		for (size_t k = 0; k < BLOCK / 8; k++)
			block[k] = i * (BLOCK / 8) + k;
		CHECK_EQ(goro_pwrite(fd, block, BLOCK, (off_t)(i * BLOCK)), BLOCK);
	}
	CHECK_EQ(goro_fsync(fd), 0);
	return fd;
}

static void uncache(int fd)
{
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

static void check_block(const uint64_t *block, size_t i)
{
	for (size_t k = 0; k < BLOCK / 8; k++)
		CHECK_EQ(block[k], i * (BLOCK / 8) + k);
}

static bool ring_or_none(void)
{
	return debug.nouring || uring_works();
}

static void needs_ring(void)
{
	if (!uring_works())
		SKIP("no io_uring here");
}

static int threads(void)
{
	struct stat st;

	CHECK_EQ(stat("/proc/self/task", &st), 0);
	return (int)st.st_nlink - 2;
}

/* ------------------------------------------------- in each way, the same */

static void write_and_read(void)
{
	char buf[32];
	int fd = temporary();

	CHECK_EQ(goro_write(fd, "hello, ", 7), 7);
	CHECK_EQ(goro_write(fd, "world", 5), 5);
	CHECK_EQ(goro_read(fd, buf, sizeof buf), 0);
	CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
	CHECK_EQ(goro_read(fd, buf, 5), 5);
	CHECK(memcmp(buf, "hello", 5) == 0);
	CHECK_EQ(goro_read(fd, buf, sizeof buf), 7);
	CHECK(memcmp(buf, ", world", 7) == 0);
	CHECK_EQ(goro_read(fd, buf, sizeof buf), 0);
	CHECK_EQ(goro_pread(fd, buf, sizeof buf, 7), 5);
	CHECK_EQ(goro_pread(fd, buf, sizeof buf, 100), 0);
	CHECK_EQ(goro_pread(fd, buf, 1, -1), -EINVAL);
	CHECK_EQ(goro_pwrite(fd, "W", 1, 7), 1);
	CHECK_EQ(goro_pread(fd, buf, 2, 7), 2);
	CHECK(memcmp(buf, "Wo", 2) == 0);
	CHECK_EQ(goro_fsync(fd), 0);
	CHECK_EQ(goro_close(fd), 0);
	/* Another descriptor, of the runtime's own, may have the number for a moment. */
	AWAIT(goro_read(fd, buf, 1) == -EBADF);
}

static void vectors(void)
{
	char a[3] = "", b[5] = "", c[10] = "";
	struct iovec out[] = { { "abc", 3 }, { "", 0 }, { "defgh", 5 } };
	struct iovec in[] = { { a, 3 }, { b, 5 }, { c, 10 } };
	int fd = temporary();

	CHECK_EQ(goro_writev(fd, out, 3), 8);
	uncache(fd);
	lseek(fd, 0, SEEK_SET);
	CHECK_EQ(goro_readv(fd, in, 3), 8);
	CHECK(memcmp(a, "abc", 3) == 0 && memcmp(b, "defgh", 5) == 0);
	goro_close(fd);
}

/* Part of it cached and part of it not, as whole as from read(2). */
static void reads_are_full(void)
{
	enum { BLOCKS = 64 };
	static uint64_t all[BLOCKS * BLOCK / 8];
	int fd = file_of(BLOCKS);

	for (int round = 0; round < 8; round++) {
		uncache(fd);
		for (int i = 0; i < round; i++)
			CHECK_EQ(goro_pread(fd, all, BLOCK, (off_t)(i * 13 % BLOCKS) * BLOCK), BLOCK);
		memset(all, 0xff, sizeof all);
		CHECK_EQ(goro_pread(fd, all, sizeof all, 0), sizeof all);
		for (size_t i = 0; i < BLOCKS; i++)
			check_block(all + i * BLOCK / 8, i);
		uncache(fd);
		lseek(fd, 100, SEEK_SET);
		CHECK_EQ(goro_read(fd, all, sizeof all), sizeof all - 100);
	}
	goro_close(fd);
}

static void errors(void)
{
	char byte;
	int fd = goro_open("/tmp", O_RDONLY | O_DIRECTORY);

	CHECK_EQ(goro_read(fd, &byte, 1), -EISDIR);
	goro_close(fd);
	CHECK_EQ(goro_open("/nonexistent/file", O_RDONLY), -ENOENT);
	fd = goro_open("/proc/self/exe", O_RDONLY);
	CHECK_EQ(goro_write(fd, "x", 1), -EBADF);
	CHECK_EQ(goro_pwrite(fd, "x", 1, 0), -EBADF);
	uncache(fd);
	CHECK_EQ(goro_pread(fd, (void *)8, 1, 0), -EFAULT);
	goro_close(fd);
	CHECK_EQ(goro_fsync(-1), -EBADF);
	CHECK_EQ(goro_pread(-1, &byte, 1, 0), -EBADF);
}

/* Files that lie on no disk. */
static void pseudo_files(void)
{
	char buf[256];
	int fd = goro_open("/proc/self/stat", O_RDONLY);

	CHECK(goro_read(fd, buf, sizeof buf) > 10);
	CHECK_EQ(atoi(buf), getpid());
	goro_close(fd);
	fd = goro_open("/dev/zero", O_RDONLY);
	memset(buf, 1, sizeof buf);
	CHECK_EQ(goro_read(fd, buf, sizeof buf), sizeof buf);
	CHECK(buf[0] == 0 && buf[255] == 0);
	goro_close(fd);
	fd = goro_open("/dev/null", O_RDWR);
	CHECK_EQ(goro_write(fd, buf, sizeof buf), sizeof buf);
	CHECK_EQ(goro_read(fd, buf, sizeof buf), 0);
	goro_close(fd);
}

static void append_some(int fd, int n, goro_waitgroup *wg)
{
	char line[16];

	memset(line, 'a' + n % 26, sizeof line - 1);
	line[sizeof line - 1] = '\n';
	for (int i = 0; i < 50; i++)
		CHECK_EQ(goro_write(fd, line, sizeof line), sizeof line);
	goro_waitgroup_done(wg);
}

static void take_some(int fd, int *lines, goro_waitgroup *wg)
{
	char line[16];
	ssize_t n;

	while ((n = goro_read(fd, line, sizeof line)) > 0) {
		CHECK_EQ(n, sizeof line);
		for (int i = 1; i < 15; i++)
			CHECK_EQ(line[i], line[0]);
		CHECK_EQ(line[15], '\n');
		fetch_add_seqcst(lines, 1);
	}
	CHECK_EQ(n, 0);
	goro_waitgroup_done(wg);
}

/* The position is shared, and every byte is written and read once. */
static void one_position(void)
{
	enum { N = 20 };
	goro_waitgroup wg = { 0 };
	int fd = temporary(), lines = 0;

	goro_waitgroup_add(&wg, N);
	for (int i = 0; i < N; i++)
		go(append_some, fd, i, &wg);
	goro_waitgroup_wait(&wg);
	CHECK_EQ(goro_fsync(fd), 0);
	uncache(fd);
	lseek(fd, 0, SEEK_SET);
	goro_waitgroup_add(&wg, N);
	for (int i = 0; i < N; i++)
		go(take_some, fd, &lines, &wg);
	goro_waitgroup_wait(&wg);
	CHECK_EQ(lines, N * 50);
	goro_close(fd);
}

#define BLOCKS_MANY 4096

static void read_at_random(int fd, uint64_t x, int n, goro_waitgroup *wg)
{
	uint64_t block[BLOCK / 8];

	for (int i = 0; i < n; i++) {
		size_t at;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		at = x % BLOCKS_MANY;
		CHECK_EQ(goro_pread(fd, block, BLOCK, (off_t)(at * BLOCK)), BLOCK);
		CHECK_EQ(block[0], at * (BLOCK / 8));
		CHECK_EQ(block[BLOCK / 8 - 1], at * (BLOCK / 8) + BLOCK / 8 - 1);
	}
	goro_waitgroup_done(wg);
}

static void thousand_readers(void)
{
	enum { N = 1000 };
	goro_waitgroup wg = { 0 };
	int fd = file_of(BLOCKS_MANY), most = 0;

	for (int round = 0; round < 3; round++) {
		uncache(fd);
		posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
		goro_waitgroup_add(&wg, N);
		for (int i = 0; i < N; i++)
			go(read_at_random, fd, (uint64_t)i * 7919 + 1, 10, &wg);
		for (int i = 0; i < 20; i++) {
			if (threads() > most)
				most = threads();
			goro_sleep(GORO_MILLISECOND);
		}
		goro_waitgroup_wait(&wg);
	}
	if (most > 400 + goro_gomaxprocs(0))
		FAIL("%d threads", most);
	goro_close(fd);
}

static void write_at_random(int fd, int n, goro_waitgroup *wg)
{
	uint64_t block[BLOCK / 8];

	for (size_t k = 0; k < BLOCK / 8; k++)
		block[k] = (size_t)n * (BLOCK / 8) + k;
	CHECK_EQ(goro_pwrite(fd, block, BLOCK, (off_t)n * BLOCK), BLOCK);
	if (n % 50 == 0)
		CHECK_EQ(goro_fsync(fd), 0);
	goro_waitgroup_done(wg);
}

static void many_writers(void)
{
	enum { N = 500 };
	goro_waitgroup wg = { 0 };
	uint64_t block[BLOCK / 8];
	int fd = temporary();

	goro_waitgroup_add(&wg, N);
	for (int i = 0; i < N; i++)
		go(write_at_random, fd, i, &wg);
	goro_waitgroup_wait(&wg);
	uncache(fd);
	for (size_t i = 0; i < N; i++) {
		CHECK_EQ(goro_pread(fd, block, BLOCK, (off_t)(i * BLOCK)), BLOCK);
		check_block(block, i);
	}
	goro_close(fd);
}

static bool closing;

/* A reader gets whole blocks until the file is closed. (A read that begins then may meet
 * any other file.) */
static void read_until_closed(int fd, goro_waitgroup *wg)
{
	uint64_t block[BLOCK / 8];

	for (size_t i = 0; !load_seqcst(&closing); i = (i + 17) % 256) {
		ssize_t r;

		uncache(fd);
		r = goro_pread(fd, block, BLOCK, (off_t)(i * BLOCK));
		if (r == BLOCK)
			check_block(block, i);
		else if (!load_seqcst(&closing))
			FAIL("%zd", r);
	}
	goro_waitgroup_done(wg);
}

static void close_while_reading(void)
{
	for (int round = 0; round < SCALED(20); round++) {
		goro_waitgroup wg = { 0 };
		int fd = file_of(256);

		store_seqcst(&closing, false);
		goro_waitgroup_add(&wg, 8);
		for (int i = 0; i < 8; i++)
			go(read_until_closed, fd, &wg);
		goro_sleep(round * 100 * GORO_MICROSECOND);
		store_seqcst(&closing, true);
		CHECK_EQ(goro_close(fd), 0);
		goro_waitgroup_wait(&wg);
	}
}

static void deadlines(void)
{
	uint64_t block[BLOCK / 8];
	int fd = file_of(8);

	goro_set_deadline(fd, goro_now() - 1, goro_now() - 1);
	CHECK_EQ(goro_pread(fd, block, BLOCK, 0), -ETIMEDOUT);
	CHECK_EQ(goro_pwrite(fd, block, BLOCK, 0), -ETIMEDOUT);
	goro_set_deadline(fd, goro_now() + seconds(20), goro_now() + seconds(20));
	uncache(fd);
	for (size_t i = 0; i < 8; i++) {
		CHECK_EQ(goro_pread(fd, block, BLOCK, (off_t)(i * BLOCK)), BLOCK);
		check_block(block, i);
	}
	CHECK_EQ(goro_fsync(fd), 0);
	goro_close(fd);
}

/* ------------------------------------------------------------ with and without */

static void (*body)(void);

static void body_or_skip(void)
{
	if (!ring_or_none())
		SKIP("no io_uring here");
	body();
}

/* In this process, with the ring or without. */
static void each_way(void (*f)(void), const char *switches)
{
	body = f;
	in_runtime(body_or_skip, switches);
}

#define EACH_WAY(name)                                                      \
	TEST(name) { each_way(name, ""); }                                 \
	TEST(name##_by_ring) { each_way(name, "ringfirst=1"); }            \
	TEST(name##_without_ring) { each_way(name, "nouring=1"); }

EACH_WAY(write_and_read)
EACH_WAY(vectors)
EACH_WAY(reads_are_full)
EACH_WAY(errors)
EACH_WAY(pseudo_files)
EACH_WAY(one_position)
EACH_WAY(thousand_readers)
EACH_WAY(many_writers)
EACH_WAY(close_while_reading)
EACH_WAY(deadlines)

TEST(it_can_be_switched_off)
{
	each_way(write_and_read, "nouring=1");
	CHECK(!uring_works());
	CHECK_EQ(uring_threads(), 0);
}

/* As in a container that forbids it. */
static int forbidden_main(int argc, char **argv)
{
	(void)argc, (void)argv;
	CHECK(!uring_works());
	write_and_read();
	reads_are_full();
	thousand_readers();
	return 0;
}

TEST(it_may_be_forbidden)
{
	filter_answer(SYS_io_uring_setup, -EPERM);
	goro_run(forbidden_main, 0, NULL);
}

/* Out of descriptors when the ring is made: it is made later. */
GO_TEST(a_lack_of_descriptors_passes)
{
	struct rlimit now, few;
	int fd = temporary();

	CHECK_EQ(write(fd, "x", 1), 1);
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &now), 0);
	few = (struct rlimit){ (rlim_t)fd + 1, now.rlim_max };
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
	CHECK(!uring_works());
	CHECK_EQ(goro_fsync(fd), 0);
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &now), 0);
	needs_ring();
	CHECK_EQ(goro_fsync(fd), 0);
	goro_close(fd);
}

/* There are places for a few blocking calls. The ring is for more than these. */
GO_TEST(calls_one_after_the_other_never_need_the_ring)
{
	int fd = temporary();

	for (int i = 0; i < 100; i++)
		CHECK_EQ(goro_fsync(fd), 0);
	CHECK_EQ(uring_threads(), 0);
	goro_close(fd);
}

/* The kernel's thread does not count as one that could wake a goroutine. */
static int deadlock_after_reading(int argc, char **argv)
{
	char byte;
	int fd = temporary();

	(void)argc, (void)argv;
	CHECK_EQ(write(fd, "x", 1), 1);
	CHECK_EQ(fsync(fd), 0);
	uncache(fd);
	CHECK_EQ(goro_pread(fd, &byte, 1, 0), 1);
	uring_works();
	goro_chan_recv(goro_chan_of(int, 0), NULL);
	return 0;
}

TEST(deadlocks_are_found_beside_a_ring)
{
	struct test_output o;

	check_deadlock(deadlock_after_reading, &o);
}

/* ---------------------------------------------------------- the ring itself */

/* What blocks for good is a pipe; file.c never passes one on. */
static ssize_t ring_read(int fd, char *buf, int64_t deadline)
{
	struct iovec iov = { buf, 1 };

	return uring_run(&(struct file_op){ .what = FILE_READ, .fd = fd, .iov = &iov, .iov_n = 1,
	                                    .off = -1, .deadline = deadline });
}

static int done_n;

static void ring_reader(int fd, ssize_t expected)
{
	char c = 0;
	ssize_t r = ring_read(fd, &c, GORO_FOREVER);

	CHECK_EQ(r, expected);
	if (r == 1)
		CHECK_EQ(c, 'x');
	fetch_add_seqcst(&done_n, 1);
}

GO_TEST(operations_wait_without_threads)
{
	enum { N = 200 };
	int fd[2], before;

	needs_ring();
	CHECK_EQ(pipe(fd), 0);
	before = threads();
	for (int i = 0; i < N; i++)
		go(ring_reader, fd[0], (ssize_t)1);
	goro_sleep(20 * GORO_MILLISECOND);
	CHECK_EQ(load_seqcst(&done_n), 0);
	CHECK(threads() < before + 50);
	for (int i = 0; i < N; i++)
		CHECK_EQ(write(fd[1], "x", 1), 1);
	AWAIT(load_seqcst(&done_n) == N);
	close(fd[0]);
	close(fd[1]);
}

GO_TEST(a_deadline_cancels)
{
	int64_t start = goro_now();
	int fd[2];
	char c;

	needs_ring();
	CHECK_EQ(pipe(fd), 0);
	CHECK_EQ(ring_read(fd[0], &c, start + 20 * GORO_MILLISECOND), -ECANCELED);
	CHECK(goro_now() - start >= 20 * GORO_MILLISECOND);
	CHECK_EQ(ring_read(fd[0], &c, goro_now() - 1), -ECANCELED);
	CHECK_EQ(write(fd[1], "x", 1), 1);
	CHECK_EQ(ring_read(fd[0], &c, goro_now() + seconds(50)), 1);
	close(fd[0]);
	close(fd[1]);
}

GO_TEST(a_cancellation_ends_all_on_the_descriptor)
{
	enum { N = 20 };
	int fd[2], other[2];

	needs_ring();
	CHECK_EQ(pipe(fd), 0);
	CHECK_EQ(pipe(other), 0);
	for (int i = 0; i < N; i++)
		go(ring_reader, fd[0], (ssize_t)-ECANCELED);
	go(ring_reader, other[0], (ssize_t)1);
	goro_sleep(10 * GORO_MILLISECOND);	/* else it finds none to cancel */
	AWAIT((uring_cancel(fd[0]), load_seqcst(&done_n) == N));
	CHECK_EQ(write(other[1], "x", 1), 1);
	AWAIT(load_seqcst(&done_n) == N + 1);
	for (int i = 0; i < 2; i++) {
		close(fd[i]);
		close(other[i]);
	}
}

/* Completions disturb no system call of any thread. */
static void read_pipe_for_ever(int fd)
{
	char c;

	while (ring_read(fd, &c, GORO_FOREVER) == 1)
		fetch_add_seqcst(&done_n, 1);
}

static void wait_in_epoll(int *interrupted, bool *over)
{
	struct epoll_event ev;
	int ep = epoll_create1(0);

	while (!load_relaxed(over))
		if (epoll_wait(ep, &ev, 1, 5) < 0)
			fetch_add_seqcst(interrupted, 1);
	close(ep);
	store_relaxed(over, false);
}

GO_TEST(completions_interrupt_no_system_call)
{
	int fd[2], interrupted = 0;
	bool over = false;

	needs_ring();
	CHECK_EQ(pipe(fd), 0);
	go(read_pipe_for_ever, fd[0]);
	go(wait_in_epoll, &interrupted, &over);
	for (int i = 0; i < SCALED(200); i++) {
		CHECK_EQ(write(fd[1], "x", 1), 1);
		goro_sleep(500 * GORO_MICROSECOND);
	}
	store_relaxed(&over, true);
	AWAIT(!load_relaxed(&over));
	CHECK_EQ(interrupted, 0);
	CHECK(load_seqcst(&done_n) > 0);
	close(fd[1]);
}

/* ------------------------------------------------ a kernel's thread that cannot be
 * woken */

static void let_ring_sleep(void)
{
	goro_sleep(10 * GORO_MILLISECOND);	/* it sleeps, most likely */
}

/* Reads until the kernel's thread has to be woken, which is denied. */
static void read_until_denied(int fd)
{
	ssize_t r;
	char c;

	do {
		let_ring_sleep();
		r = ring_read(fd, &c, goro_now() + 10 * GORO_MILLISECOND);
	} while (r == -ECANCELED);
	CHECK_EQ(r, -ENOSYS);
}

/* What the kernel has taken goes on; the rest is done in another way. */
static void what_is_queued_comes_back(int error)
{
	enum { N = 20 };
	int fd[2];
	char c;

	needs_ring();
	CHECK_EQ(pipe(fd), 0);
	for (int i = 0; i < N; i++)
		go(ring_reader, fd[0], (ssize_t)1);
	let_ring_sleep();
	filter_everywhere(SYS_io_uring_enter, -error);
	read_until_denied(fd[0]);
	CHECK(!uring_works());
	CHECK_EQ(uring_threads(), 1);
	CHECK_EQ(load_seqcst(&done_n), 0);
	for (int i = 0; i < N; i++)
		CHECK_EQ(write(fd[1], "x", 1), 1);
	AWAIT(load_seqcst(&done_n) == N);
	CHECK_EQ(ring_read(fd[0], &c, GORO_FOREVER), -ENOSYS);
}

static void denied(void) { what_is_queued_comes_back(EPERM); }
static void missing(void) { what_is_queued_comes_back(ENOSYS); }
static void busy_for_good(void) { what_is_queued_comes_back(EBUSY); }

TEST(what_is_queued_comes_back_if_the_ring_is_denied) { in_runtime(denied, ""); }
TEST(what_is_queued_comes_back_if_the_ring_is_gone) { in_runtime(missing, ""); }
TEST(what_is_queued_comes_back_if_the_ring_stays_busy) { in_runtime(busy_for_good, ""); }

/* The same at once, while many read: nothing is lost and nothing comes twice. */
static void forbid_among_readers(void)
{
	enum { N = 64 };
	goro_waitgroup wg = { 0 };
	int fd;

	needs_ring();
	fd = file_of(BLOCKS_MANY);
	goro_waitgroup_add(&wg, N);
	posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	uncache(fd);
	for (int i = 0; i < N; i++)
		go(read_at_random, fd, (uint64_t)i * 7919 + 1, 30, &wg);
	goro_gosched();
	goro_sleep((getpid() & 7) * 200 * GORO_MICROSECOND);
	filter_everywhere(SYS_io_uring_enter, -EPERM);
	goro_waitgroup_wait(&wg);
	for (bool worked = true; worked;) {	/* once more after it was seen */
		worked = uring_works();
		let_ring_sleep();
		uncache(fd);
		goro_waitgroup_add(&wg, N);
		for (int k = 0; k < N; k++)
			go(read_at_random, fd, (uint64_t)k * 7919 + 1, 5, &wg);
		goro_waitgroup_wait(&wg);
	}
	CHECK_EQ(goro_close(fd), 0);
}

TEST(a_ring_that_is_forbidden_among_readers) { in_runtime(forbid_among_readers, "ringfirst=1"); }

static int deadlock_after_denial(int argc, char **argv)
{
	int fd[2];

	(void)argc, (void)argv;
	if (uring_works()) {
		CHECK_EQ(pipe(fd), 0);
		filter_everywhere(SYS_io_uring_enter, -EPERM);
		read_until_denied(fd[0]);
	}
	goro_chan_recv(goro_chan_of(int, 0), NULL);
	return 0;
}

TEST(deadlocks_are_found_beside_a_ring_that_was_denied)
{
	struct test_output o;

	check_deadlock(deadlock_after_denial, &o);
}

/* The next wakes_refused calls that wake the kernel's thread get this error. */
static int wake_error, wakes_refused;

static void refuse_wakes(const struct seccomp_notif *n, struct seccomp_notif_resp *r)
{
	if (n->data.args[3] & IORING_ENTER_SQ_WAKEUP && load_seqcst(&wakes_refused) > 0) {
		fetch_add_seqcst(&wakes_refused, -1);
		r->error = -load_seqcst(&wake_error);
	} else {
		r->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	}
}

static void read_after_refusals(void)
{
	static const int errors[] = { EINTR, EAGAIN, EBUSY };
	int fd[2];
	char c;

	needs_ring();
	CHECK_EQ(pipe(fd), 0);
	for (int i = 0; i < 3; i++) {
		store_seqcst(&wake_error, errors[i]);
		store_seqcst(&wakes_refused, i + 1);
		while (load_seqcst(&wakes_refused) > 0) {
			let_ring_sleep();
			CHECK_EQ(write(fd[1], "x", 1), 1);
			CHECK_EQ(ring_read(fd[0], &c, goro_now() + seconds(50)), 1);
		}
	}
	CHECK(uring_works());
}

TEST(a_refusal_that_passes_is_no_end)
{
	filter_supervise(SYS_io_uring_enter, refuse_wakes);
	in_runtime(read_after_refusals, "");
}

/*
 * file_map_test.c - files that are read from a mapping: the answers are pread's.
 *
 * In /dev/shm, which is a tmpfs everywhere.
 */
/* test: procs */
#define _GNU_SOURCE
#include <fcntl.h>
#include <goro.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "await.h"
#include "config.h"
#include "copy.h"
#include "debug.h"
#include "fault.h"
#include "fd.h"
#include "file_map.h"
#include "os.h"
#include "runtime.h"
#include "temporary.h"
#include "test.h"

#define BLOCK  4096
#define BLOCKS 512	/* 2 MiB */
#define BYTES  (BLOCKS * BLOCK)

/* Every 8 bytes are their own index, plus salt. */
static int file_of(uint64_t salt)
{
	static uint64_t block[BLOCK / 8];
	int fd = temporary_in("/dev/shm");

	if (fd < 0)
		SKIP("no /dev/shm");
	for (uint64_t i = 0; i < BLOCKS; i++) {
		for (uint64_t k = 0; k < BLOCK / 8; k++)
			block[k] = i * (BLOCK / 8) + k + salt;
		CHECK_EQ(write(fd, block, BLOCK), BLOCK);
	}
	return fd;
}

static bool read_block(int fd, uint64_t i, uint64_t salt)
{
	uint64_t block[BLOCK / 8];

	if (goro_pread(fd, block, BLOCK, (off_t)(i * BLOCK)) != BLOCK)
		return false;
	for (uint64_t k = 0; k < BLOCK / 8; k++)
		CHECK_EQ(block[k], i * (BLOCK / 8) + k + salt);
	return true;
}

static uint32_t cached(int fd)
{
	return load_relaxed(&fd_more(fd_at(fd))->cached);
}

/* Often enough: tmpfs knows no RWF_NOWAIT, and it counts how soon the answers come. */
static void read_often(int fd)
{
	for (uint64_t i = 0; i < FILE_CACHED_ENOUGH + 10 || cached(fd) < FILE_CACHED_ENOUGH; i++)
		CHECK(read_block(fd, i * 31 % BLOCKS, 0));
}

static bool is_mapped(int fd)
{
	return load_relaxed(&fd_more(fd_at(fd))->map) != NULL;
}

/* In a sanitizer's build the faults are its own. */
static void needs_faults(void)
{
	if (!fault_is_ours(SIGBUS) || !fault_is_ours(SIGSEGV) || !os_membarrier_works)
		SKIP("faults are not ours, or no membarrier");
}

static int mapped_file(void)
{
	int fd;

	needs_faults();
	fd = file_of(0);
	read_often(fd);
	CHECK(is_mapped(fd));
	return fd;
}

static void end(int fd)
{
	CHECK_EQ(goro_close(fd), 0);
	CHECK_EQ(file_maps, 0);
}

GO_TEST(what_is_read_often_is_mapped_until_it_is_closed)
{
	char byte;
	int fd = mapped_file();

	CHECK_EQ(file_maps, 1);
	read_often(fd);
	end(fd);
	CHECK_EQ(goro_pread(fd, &byte, 1, 0), -EBADF);
}

GO_TEST(writes_are_seen)
{
	int fd = mapped_file();

	for (uint64_t i = 0; i < 1000; i++) {
		uint64_t in, out = i;

		CHECK_EQ(goro_pwrite(fd, &out, sizeof out, 4096), 8);
		CHECK_EQ(goro_pread(fd, &in, sizeof in, 4096), 8);
		CHECK_EQ(in, out);
	}
	end(fd);
}

/* The rest of the last page is there to be read from the mapping. */
GO_TEST(the_end_is_where_it_is_now)
{
	char buf[BLOCK], bytes[3 * BLOCK];
	int fd = mapped_file();

	CHECK_EQ(ftruncate(fd, 100 * BLOCK + 10), 0);
	CHECK_EQ(goro_pread(fd, buf, BLOCK, 100 * BLOCK), 10);
	CHECK_EQ(goro_pread(fd, buf, 20, 100 * BLOCK + 10), 0);
	CHECK_EQ(goro_pread(fd, buf, BLOCK, 200 * BLOCK), 0);
	CHECK_EQ(goro_pread(fd, bytes, 3 * BLOCK, 99 * BLOCK), BLOCK + 10);
	CHECK(read_block(fd, 99, 0));

	CHECK_EQ(ftruncate(fd, BYTES), 0);
	CHECK_EQ(goro_pread(fd, buf, BLOCK, 200 * BLOCK), BLOCK);
	for (int i = 0; i < BLOCK; i++)
		CHECK_EQ(buf[i], 0);

	memset(bytes, 7, sizeof bytes);		/* beyond what it had, within what is mapped, and beyond */
	CHECK_EQ(goro_pwrite(fd, bytes, sizeof bytes, BYTES + 5), (int)sizeof bytes);
	CHECK_EQ(goro_pread(fd, buf, BLOCK, BYTES + BLOCK), BLOCK);
	CHECK_EQ(buf[BLOCK - 1], 7);
	CHECK_EQ(goro_pwrite(fd, "end", 3, 3 * BYTES), 3);
	CHECK_EQ(goro_pread(fd, buf, BLOCK, 3 * BYTES), 3);
	CHECK(memcmp(buf, "end", 3) == 0);
	end(fd);
}

GO_TEST(arguments_are_checked_as_by_pread)
{
	char byte;
	int fd = mapped_file();

	CHECK_EQ(goro_pread(fd, (void *)16, 100, 0), -EFAULT);
	CHECK_EQ(goro_pread(fd, &byte, 1, -1), -EINVAL);
	CHECK_EQ(goro_pread(fd, &byte, 1, INT64_MAX), -EINVAL);
	CHECK_EQ(goro_pread(fd, &byte, 1, INT64_MAX / 2), 0);
	CHECK_EQ(goro_pread(fd, &byte, 0, 0), 0);
	goro_set_deadline(fd, goro_now() - 1, GORO_FOREVER);
	CHECK_EQ(goro_pread(fd, &byte, 1, 0), -ETIMEDOUT);
	goro_set_deadline(fd, GORO_FOREVER, GORO_FOREVER);
	CHECK_EQ(goro_pread(fd, &byte, 1, 0), 1);
	end(fd);
}

/* Not allowed, but no reason to read from what is not there any more. */
GO_TEST(another_file_under_the_number_is_that_file)
{
	int fd = mapped_file(), other = file_of(1000);

	CHECK_EQ(dup2(other, fd), fd);
	for (uint64_t i = 0; i < BLOCKS; i++)
		CHECK(read_block(fd, i, 1000));
	CHECK_EQ(goro_close(other), 0);
	end(fd);
}

GO_TEST(a_copy_that_faults_fails)
{
	static char to[4 * BLOCK];
	char *at;
	int fd;

	needs_faults();
	fd = file_of(0);
	at = mmap(NULL, 4 * BLOCK, PROT_READ, MAP_SHARED, fd, 0);
	CHECK_EQ(ftruncate(fd, BLOCK), 0);
	for (int i = 0; i < 1000; i++) {
		CHECK(copy_or_fail(to, at, BLOCK));
		CHECK(!copy_or_fail(to, at, BLOCK + 1));
		CHECK(!copy_or_fail(to, at + BLOCK - 3, 100));
		CHECK(!copy_or_fail(NULL, at, 1));
	}
	CHECK(copy_or_fail(to, at + 100, 7) && memcmp(to, at + 100, 7) == 0);
	munmap(at, 4 * BLOCK);
	goro_close(fd);
}

/* In the middle of it, too. */
static uint32_t stop;

static void cut_and_restore(int fd, goro_waitgroup *wg)
{
	while (!load_relaxed(&stop)) {
		CHECK_EQ(ftruncate(fd, BYTES / 2 + 10), 0);
		CHECK_EQ(ftruncate(fd, BYTES), 0);
	}
	goro_waitgroup_done(wg);
}

static void read_while_cut(int fd, goro_waitgroup *wg)
{
	char buf[16 * BLOCK];

	for (int i = 0; i < SCALED(20000); i++) {
		ssize_t n = goro_pread(fd, buf, sizeof buf, BYTES / 2 - BLOCK);

		CHECK(n >= BLOCK && n <= (int)sizeof buf);	/* some may be gone, as with pread(2) */
	}
	goro_waitgroup_done(wg);
}

GO_TEST_TIMEOUT(a_file_that_is_cut_while_it_is_read, 60)
{
	goro_waitgroup readers = { 0 }, cutter = { 0 };
	int fd = mapped_file();

	stop = 0;
	goro_waitgroup_add(&cutter, 1);
	go(cut_and_restore, fd, &cutter);
	goro_waitgroup_add(&readers, 4);
	for (int i = 0; i < 4; i++)
		go(read_while_cut, fd, &readers);
	goro_waitgroup_wait(&readers);
	store_relaxed(&stop, 1);
	goro_waitgroup_wait(&cutter);
	end(fd);
}

/* Who reads while it is closed reads from this file, or is told. */
static void read_until_closed(int fd, goro_waitgroup *wg)
{
	uint64_t i = 0;

	while (read_block(fd, i++ % BLOCKS, 0))
		;
	goro_waitgroup_done(wg);
}

GO_TEST_TIMEOUT(closed_while_it_is_read, 60)
{
	needs_faults();
	for (int round = 0; round < SCALED(40); round++) {
		goro_waitgroup wg = { 0 };
		int fd = mapped_file(), was = debug.linger;
		char *other;

		store_relaxed(&debug.linger, round % 2 * 20);
		goro_waitgroup_add(&wg, 4);
		for (int i = 0; i < 4; i++)
			go(read_until_closed, fd, &wg);
		goro_sleep(200 * GORO_MICROSECOND);
		end(fd);
		/* Mostly where the mapping was. */
		other = mmap(NULL, BYTES + BYTES / 4, PROT_READ | PROT_WRITE,
		             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memset(other, 0xee, BYTES);
		goro_waitgroup_wait(&wg);
		munmap(other, BYTES + BYTES / 4);
		store_relaxed(&debug.linger, was);
	}
}

/* ---------------------------------------------------------------- in company */

/* Many who read at once ask together what the file is (fd_post.c). */
#define COMPANY 48

struct company {
	int fd;
	uint64_t salt;
	ssize_t at_end;		/* so much of the block at END is there */
	goro_waitgroup wg;
};
#define END (BYTES / 2)

static void read_in_company(struct company *c, uint64_t first)
{
	char buf[BLOCK];

	for (uint64_t i = 0; i < 20; i++) {
		CHECK(read_block(c->fd, (first + i * 31) % (END / BLOCK), c->salt));
		CHECK_EQ(goro_pread(c->fd, buf, BLOCK, END), c->at_end);
	}
	goro_waitgroup_done(&c->wg);
}

static void all_read(struct company *c)
{
	goro_waitgroup_add(&c->wg, COMPANY);
	for (uint64_t i = 0; i < COMPANY; i++)
		go(read_in_company, c, i);
	goro_waitgroup_wait(&c->wg);
}

/* Whatever the turns of others take. */
static int post_always(void)
{
	int was = debug.post;

	store_relaxed(&debug.post, 1);
	return was;
}

GO_TEST_TIMEOUT(many_ask_together, 60)
{
	struct company c = { .fd = mapped_file(), .at_end = BLOCK };
	int was = post_always();
	uint64_t before = load_relaxed(&fd_answered);

	while (load_relaxed(&fd_answered) - before < 1000)
		all_read(&c);
	debug.post = was;
	end(c.fd);
}

/* No answer is older than who gets it. */
GO_TEST_TIMEOUT(in_company_the_end_is_where_it_is_now, 60)
{
	struct company c = { .fd = mapped_file() };
	int was = post_always();

	for (int round = 0; round < SCALED(200); round++) {
		c.at_end = round % 2 ? BLOCK : 10;
		CHECK_EQ(ftruncate(c.fd, round % 2 ? BYTES : END + 10), 0);
		all_read(&c);
	}
	debug.post = was;
	end(c.fd);
}

GO_TEST_TIMEOUT(in_company_another_file_under_the_number_is_that_file, 60)
{
	struct company c = { .fd = mapped_file(), .at_end = BLOCK };
	int was = post_always(), file[2] = { dup(c.fd), file_of(1000) };

	for (int round = 0; round < SCALED(100); round++) {
		c.salt = round % 2 ? 1000 : 0;
		CHECK_EQ(dup2(file[round % 2], c.fd), c.fd);
		all_read(&c);
	}
	debug.post = was;
	close(file[0]);
	CHECK_EQ(goro_close(file[1]), 0);
	end(c.fd);
}

/* It has the same number as a rule, and the same place in our table. goro_close closes it even
 * if one who comes then is the last to leave. */
GO_TEST_TIMEOUT(in_company_one_that_is_closed_is_not_the_next, 60)
{
	for (int round = 0; round < SCALED(20); round++) {
		goro_waitgroup wg = { 0 };
		int fd = mapped_file(), was = post_always(), other;

		goro_waitgroup_add(&wg, COMPANY);
		for (int i = 0; i < COMPANY; i++)
			go(read_until_closed, fd, &wg);
		goro_sleep(200 * GORO_MICROSECOND);
		CHECK_EQ(goro_close(fd), 0);
		debug.post = was;
		goro_waitgroup_wait(&wg);
		other = file_of(1000);
		for (uint64_t i = 0; !is_mapped(other); i++)
			CHECK(read_block(other, i % BLOCKS, 1000));
		end(other);
	}
}

static void read_until_stopped(int fd, goro_waitgroup *wg)
{
	while (!load_relaxed(&stop))
		CHECK(read_block(fd, 7, 0));
	goro_waitgroup_done(wg);
}

#define OTHERS 500
#define ROUNDS 10

static void take_turns(goro_waitgroup *wg)
{
	for (int i = 0; i < ROUNDS; i++)
		goro_gosched();
	goro_waitgroup_done(wg);
}

/* Were they always first, each turn of another on their P would come after dozens of their reads. (Where
 * the kernel has taken the CPU away nobody waits in company for a while; who reads then is as
 * one who computes, and does not count here.) */
GO_TEST_TIMEOUT(those_who_go_round_let_others_run, 60)
{
	goro_waitgroup readers = { 0 }, others = { 0 };
	int fd = mapped_file(), was = post_always();
	uint64_t before;

	goro_gomaxprocs(1);
	stop = 0;
	goro_waitgroup_add(&readers, COMPANY);
	goro_waitgroup_add(&others, OTHERS);
	for (int i = 0; i < COMPANY; i++)
		go(read_until_stopped, fd, &readers);
	before = load_relaxed(&fd_answered);
	for (int i = 0; i < OTHERS; i++)
		go(take_turns, &others);
	goro_waitgroup_wait(&others);
	CHECK(load_relaxed(&fd_answered) - before < (uint64_t)OTHERS * ROUNDS * 24);
	store_relaxed(&stop, 1);
	goro_waitgroup_wait(&readers);
	debug.post = was;
	end(fd);
}

static int may_read;

static void compute_then_read(int fd, goro_waitgroup *wg)
{
	while (!load_relaxed(&may_read))
		;
	read_until_stopped(fd, wg);
}

/* Who was stopped waits in company again when it only reads, though all the others were stopped,
 * too. */
GO_TEST_TIMEOUT(in_company_after_a_stop, 60)
{
	goro_waitgroup readers = { 0 };
	int fd = mapped_file(), was = post_always();
	uint64_t before;

	if (GORO_RUNQ_CAP < COMPANY)
		SKIP("all wait in the global queue");
	goro_gomaxprocs(2);
	stop = may_read = 0;
	goro_waitgroup_add(&readers, COMPANY);
	for (int i = 0; i < COMPANY; i++)
		go(compute_then_read, fd, &readers);
	AWAIT(load_relaxed(&sched.bound.n) > COMPANY / 3);
	before = load_relaxed(&fd_answered);
	store_relaxed(&may_read, 1);
	AWAIT(load_relaxed(&fd_answered) - before > 10000);
	store_relaxed(&stop, 1);
	goro_waitgroup_wait(&readers);
	debug.post = was;
	end(fd);
}

static void pin(int tid, void *cpus)
{
	CHECK_EQ(sched_setaffinity(tid, sizeof(cpu_set_t), cpus), 0);
}

static void *compute(void *arg)
{
	while (!load_relaxed(&stop))
		;
	return arg;
}

/* Threads of the program's own take their CPU away for milliseconds, over and over. That is no
 * reason not to wait in company for long: it is some ms then, and would be hundreds. */
GO_TEST_TIMEOUT(in_company_without_a_cpu, 60)
{
	struct company c = { .fd = mapped_file(), .at_end = BLOCK };
	int64_t longest = 0;
	pthread_t t[2];
	cpu_set_t one, all;

	if (TOOL_TSAN)
		SKIP("turns are not short");
	CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	goro_gomaxprocs(1);
	AWAIT(runtime_is_whole());
	CHECK(os_thread_each(pin, &one) >= 0);
	stop = 0;
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, compute, NULL), 0);
	for (int64_t began = goro_now(); goro_now() - began < GORO_SECOND;) {
		all_read(&c);
		if (load_relaxed(&p_at(0)->posts.pause) > longest)
			longest = load_relaxed(&p_at(0)->posts.pause);
	}
	CHECK(longest < 64 * GORO_MILLISECOND);
	store_relaxed(&stop, 1);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	CHECK(os_thread_each(pin, &all) >= 0);
	end(c.fd);
}

/* --------------------------------------------------------------- not mapped */

static void not_mapped(int fd)
{
	read_often(fd);
	CHECK(!is_mapped(fd));
	read_often(fd);
	end(fd);
}

GO_TEST(not_if_it_is_switched_off)
{
	int was = debug.nomap;

	debug.nomap = 1;
	not_mapped(file_of(0));
	debug.nomap = was;
}

static void on_bus(int sig)
{
	(void)sig;
}

GO_TEST(not_if_faults_are_the_programs)
{
	struct sigaction was, own = { .sa_handler = on_bus };

	CHECK_EQ(sigaction(SIGBUS, &own, &was), 0);
	not_mapped(file_of(0));
	CHECK_EQ(sigaction(SIGBUS, &was, NULL), 0);
}

GO_TEST(not_if_memory_is_locked)
{
	int fd = file_of(0);

	needs_faults();
	if (TOOL_ASAN || TOOL_TSAN || mlockall(MCL_FUTURE) != 0)	/* those do without */
		SKIP("not allowed to lock memory");
	not_mapped(fd);
	munlockall();
}

GO_TEST(not_if_the_program_opened_it)
{
	int ours = file_of(0), fd = dup(ours);

	not_mapped(fd);
	end(ours);
}

GO_TEST(not_if_it_is_small)
{
	int fd = file_of(0);
	char byte;

	CHECK_EQ(ftruncate(fd, 100 * BLOCK), 0);
	while (cached(fd) < FILE_CACHED_ENOUGH)
		CHECK_EQ(goro_pread(fd, &byte, 1, 99), 1);
	CHECK(!is_mapped(fd));
	end(fd);
}

/* ------------------------------------------------------------ what to expect */

/* One read that the page cache does not have, and all is doubted. */
GO_TEST(a_miss_begins_anew)
{
	char block[BLOCK];
	int fd = temporary_in("/tmp");

	CHECK(fd >= 0);
	memset(block, 1, sizeof block);
	CHECK_EQ(goro_pwrite(fd, block, BLOCK, 0), BLOCK);
	for (int i = 1; i <= 100; i++) {
		CHECK_EQ(goro_pread(fd, block, BLOCK, 0), BLOCK);
		CHECK_EQ(cached(fd), (uint32_t)i);
	}
	CHECK_EQ(goro_fsync(fd), 0);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	CHECK_EQ(goro_pread(fd, block, BLOCK, 0), BLOCK);
	if (cached(fd) == 101)
		SKIP("it stays in the page cache");
	CHECK_EQ(cached(fd), 0);
	goro_close(fd);
}

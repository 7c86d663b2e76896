/*
 * file_test.c - reads and writes of files are those of pread(2) and pwrite(2), whatever
 * happens to the file meanwhile.
 *
 * In /dev/shm, which is a tmpfs everywhere and does not know RWF_NOWAIT.
 */
/* test: procs */
#define _GNU_SOURCE
#include <goro.h>
#include <linux/fs.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "platform/atomic.h"
#include "await.h"
#include "io/fd.h"
#include "temporary.h"
#include "test.h"

#define BLOCK  4096
#define BLOCKS 512
#define BYTES  ((off_t)BLOCKS * BLOCK)

static int sparse_file(void)
{
	int fd = temporary_in("/dev/shm");

	if (fd < 0)
		SKIP("no /dev/shm");
	CHECK_EQ(ftruncate(fd, BYTES), 0);
	return fd;
}

/* More than any number of reads after which a file may be taken for cached. */
static void read_often(int fd)
{
	char block[BLOCK];

	for (int i = 0; i < 3000; i++) {
		memset(block, 1, sizeof block);
		CHECK_EQ(goro_pread(fd, block, BLOCK, (off_t)(i * 31 % BLOCKS) * BLOCK), BLOCK);
		CHECK_EQ(block[i % BLOCK], 0);
	}
}

GO_TEST(reading_a_sparse_file_allocates_nothing)
{
	int fd = sparse_file();
	struct stat st;

	read_often(fd);
	CHECK_EQ(fstat(fd, &st), 0);
	CHECK_EQ(st.st_blocks, 0);
	CHECK_EQ(goro_close(fd), 0);
}

static bool cutting;

static void *cut_and_grow(void *arg)
{
	int fd = *(int *)arg;

	while (load_relaxed(&cutting)) {
		CHECK_EQ(ftruncate(fd, 0), 0);
		CHECK_EQ(ftruncate(fd, BYTES), 0);
	}
	return NULL;
}

/* SIGBUS is what a mapping would have for it, and blocked it ends the process. */
GO_TEST(a_file_that_is_cut_short_while_it_is_read_is_no_fault)
{
	char block[BLOCK];
	sigset_t all, old;
	pthread_t thread;
	int fd = sparse_file();

	read_often(fd);
	store_relaxed(&cutting, true);
	CHECK_EQ(pthread_create(&thread, NULL, cut_and_grow, &fd), 0);
	goro_lock_os_thread();
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	for (int i = 0; i < SCALED(20000); i++) {
		ssize_t n = goro_pread(fd, block, BLOCK, (off_t)(i * 31 % BLOCKS) * BLOCK);

		CHECK(n >= 0 && n <= BLOCK);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	goro_unlock_os_thread();
	store_relaxed(&cutting, false);
	pthread_join(thread, NULL);
	CHECK_EQ(goro_close(fd), 0);
}

static unsigned no_nowait(int fd)
{
	struct fd_more *more = fd_more(fd_at(fd));

	CHECK(more);
	return load_relaxed(&more->no_nowait);
}

/* Where a kernel has it for tmpfs nothing is remembered. */
GO_TEST(what_does_not_know_nowait_is_remembered_until_it_is_closed)
{
	struct iovec v = { (char[]){ 0 }, 1 };
	int fd = sparse_file(), again;

	if (syscall(SYS_preadv2, fd, &v, 1, 0L, 0L, RWF_NOWAIT) == 1)
		SKIP("tmpfs knows RWF_NOWAIT");
	CHECK_EQ(no_nowait(fd), 0);
	read_often(fd);
	CHECK_EQ(no_nowait(fd), 1 << FD_READ);
	CHECK_EQ(goro_pwrite(fd, "x", 1, 0), 1);
	CHECK_EQ(goro_close(fd), 0);
	again = sparse_file();
	CHECK_EQ(no_nowait(again), 0);
	CHECK_EQ(goro_close(again), 0);
}

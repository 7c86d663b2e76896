/*
 * m_end.c - threads of ours that end, and the end of the process.
 *
 * A thread that ends runs destructors of libraries. exit() runs handlers of the same
 * libraries, which are not made to run beside those: OpenSSL's handler frees the locks
 * that its destructors take. A program joins its threads before it exits, but it does not
 * know ours. So no thread of ours ends while exit() runs:
 *
 *	a thread that is to end             exit(), and goro_run before it returns
 *	locks ending                        stopped = 1
 *	if stopped: unlocks, waits,         locks ending: waits until the thread that
 *	 and begins again                    ends is gone
 *	ends as the owner of ending         unlocks
 *
 * ending is a robust mutex: the kernel takes it from its owner when the owner is gone,
 * after all destructors. So threads end one after the other.
 *
 * exit() calls the newest handler first, so ours must be newer than that of a library. It
 * is registered when the first thread ends, and again at the second, fourth, eighth end
 * and so on, for libraries that were initialised later. A destructor may wait for a lock
 * that the caller of exit() holds, so exit() waits for END_TRIES times END_TRY_NS at
 * most.
 *
 * Rejected: joining the threads. They are detached, since ThreadSanitizer reports each
 * thread that a program did not join.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform/atomic.h"
#include "platform/os.h"
#include "platform/sim.h"
#include "base/throw.h"
#include "sched/runtime.h"

/* A second. */
#define END_TRIES  10000
#define END_TRY_NS 100000

static pthread_mutex_t ending;
static bool works;		/* the kernel has robust mutexes; an emulator may not */
static uint32_t ended;		/* threads; written by the owner of ending */
static uint32_t stopped;	/* no thread may end now */
static uint32_t runs;		/* calls of goro_run under way */

static void init(void)
{
	pthread_mutexattr_t attr;
	size_t length;
	void *list;

	works = syscall(SYS_get_robust_list, 0, &list, &length) == 0;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	works &= pthread_mutex_init(&ending, &attr) == 0;
	pthread_mutexattr_destroy(&attr);
}

static void init_once(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, init);
}

/* The result of locking: the last owner may be gone. */
static bool is_locked(int error)
{
	return error == 0 || (error == EOWNERDEAD && pthread_mutex_consistent(&ending) == 0);
}

/* The thread that ends may be the caller: a destructor can call exit(). */
static void stop(void)
{
	init_once();
	/* seqcst: a thread that locks ending after us sees it */
	store_seqcst(&stopped, 1);
	for (int i = 0, error = EBUSY; works && error == EBUSY && i < END_TRIES; i++) {
		error = pthread_mutex_trylock(&ending);
		if (is_locked(error))
			pthread_mutex_unlock(&ending);
		else
			os_sleep(END_TRY_NS);
	}
}

bool m_may_end(void)
{
	return !load_relaxed(&stopped);
}

void m_end_begin(void)
{
	uint32_t n;

	if (sim)
		return;		/* no thread of the kernel ends */
	init_once();
	if (!works)
		return;
	while (is_locked(pthread_mutex_lock(&ending)) && load_seqcst(&stopped)) {
		pthread_mutex_unlock(&ending);
		os_futex_wait(&stopped, 1, -1);
	}
	n = load_relaxed(&ended) + 1;
	store_relaxed(&ended, n);
	if ((n & (n - 1)) == 0)
		atexit(stop);
}

void m_ends_allow(void)
{
	fetch_add_seqcst(&runs, 1);
	store_seqcst(&stopped, 0);
	os_futex_wake(&stopped, INT32_MAX);
}

void m_ends_stop(void)
{
	uint32_t before = fetch_add_seqcst(&runs, -1);

	check(before > 0);
	if (before == 1)
		stop();
}

void m_ends_forked(void)
{
	init();
}

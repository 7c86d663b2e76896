/*
 * m_test.c - the runtime's threads have room for the program's thread-local
 * variables, and come in no greater number than needed.
 */
/* test: procs */
#include <goro.h>
#include <sched.h>

#include "await.h"
#include "runtime.h"
#include "test.h"

/* Much more than a thread's stack: it is taken from the same mapping. */
static __thread char large[3 << 20];

__attribute__((noinline)) static char *my_large(void)
{
	char *p = large;

	__asm__ volatile("" : "+r"(p));
	return p;
}

static void use_large(goro_waitgroup *wg)
{
	char *p = my_large();

	for (size_t i = 0; i < sizeof large; i += 4096)
		p[i] = 1;
	goro_waitgroup_done(wg);
}

GO_TEST(threads_have_room_for_large_thread_local_variables)
{
	goro_waitgroup wg = { 0 };

	goro_waitgroup_add(&wg, 20);
	for (int i = 0; i < 20; i++)
		go(use_large, &wg);
	goro_waitgroup_wait(&wg);
}

static int threads(void)
{
	int n;

	lock_acquire(&sched.lock);
	n = sched.m_n;
	lock_release(&sched.lock);
	return n;
}

static void yield_some(goro_waitgroup *wg)
{
	for (int i = 0; i < 10; i++)
		goro_gosched();
	goro_waitgroup_done(wg);
}

GO_TEST(no_more_threads_are_made_than_there_are_ps_and_a_few)
{
	for (int round = 0; round < 20; round++) {
		goro_waitgroup wg = { 0 };

		goro_waitgroup_add(&wg, 200);
		for (int i = 0; i < 200; i++)
			go(yield_some, &wg);
		goro_waitgroup_wait(&wg);
	}
	CHECK(threads() <= goro_gomaxprocs(0) + 4);
}

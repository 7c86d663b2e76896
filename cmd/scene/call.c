/*
 * A goroutine blocks in the kernel, and its processor goes on with another.
 */
#include <goro.h>
#include <stdatomic.h>
#include <unistd.h>

static goro_waitgroup both;
static atomic_bool woken;

static void sleeper(void)
{
	goro_set_name("sleeper");
	usleep(30000);			/* as any C library might */
	atomic_store(&woken, true);
	goro_waitgroup_done(&both);
}

static void worker(void)
{
	goro_set_name("worker");
	while (!atomic_load(&woken))
		;
	goro_waitgroup_done(&both);
}

static int start(int argc, char **argv)
{
	(void)argc, (void)argv;
	goro_set_name("main");
	goro_waitgroup_add(&both, 2);
	go(worker);
	go(sleeper);		/* the last that was started is the first to run */
	goro_waitgroup_wait(&both);
	return 0;
}

GORO_MAIN(start)

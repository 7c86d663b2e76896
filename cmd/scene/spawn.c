/*
 * Four goroutines are started: how they get into a queue, and from there onto a
 * processor.
 */
#include <goro.h>

static goro_waitgroup workers;

static void compute(int64_t ns)
{
	for (int64_t end = goro_now() + ns; goro_now() < end;)
		;
}

static void worker(void)
{
	goro_set_name("worker");
	compute(300 * GORO_MICROSECOND);
	goro_waitgroup_done(&workers);
}

static int start(int argc, char **argv)
{
	(void)argc, (void)argv;
	goro_set_name("main");
	goro_waitgroup_add(&workers, 4);
	for (int i = 0; i < 4; i++)
		go(worker);
	goro_waitgroup_wait(&workers);
	return 0;
}

GORO_MAIN(start)

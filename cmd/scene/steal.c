/*
 * One processor has all the work, and its goroutine does not stop: the other
 * processor steals.
 */
#include <goro.h>
#include <stdatomic.h>

static atomic_int done;

static void compute(int64_t ns)
{
	for (int64_t end = goro_now() + ns; goro_now() < end;)
		;
}

static void worker(void)
{
	goro_set_name("worker");
	compute(300 * GORO_MICROSECOND);
	atomic_fetch_add(&done, 1);
}

static int start(int argc, char **argv)
{
	(void)argc, (void)argv;
	goro_set_name("main");
	for (int i = 0; i < 6; i++)
		go(worker);
	while (atomic_load(&done) < 6)
		;			/* it neither waits nor lets others run */
	return 0;
}

GORO_MAIN(start)

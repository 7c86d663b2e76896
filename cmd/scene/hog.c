/*
 * A goroutine that never stops, on the only processor: it is preempted.
 */
#include <goro.h>
#include <stdatomic.h>

static goro_waitgroup both;
static atomic_bool stop;

static void hog(void)
{
	goro_set_name("hog");
	while (!atomic_load(&stop))
		;			/* no call, in which it could be stopped */
	goro_waitgroup_done(&both);
}

static void patient(void)
{
	goro_set_name("patient");
	atomic_store(&stop, true);
	goro_waitgroup_done(&both);
}

static int start(int argc, char **argv)
{
	(void)argc, (void)argv;
	goro_set_name("main");
	goro_waitgroup_add(&both, 2);
	go(patient);
	go(hog);		/* the last that was started is the first to run */
	goro_waitgroup_wait(&both);
	return 0;
}

GORO_MAIN(start)

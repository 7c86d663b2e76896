/*
 * 13_steal.c - work is stolen.
 *
 * One goroutine starts a hundred others, all into the queue of its own processor. The
 * other processor has nothing to do, looks into that queue and takes its share. So more
 * than one thread runs them.
 */
#define _GNU_SOURCE
#include <goro.h>
#include <stdatomic.h>
#include <unistd.h>

static atomic_int first, others;

static void work(goro_waitgroup *wg)
{
	int64_t until = goro_now() + GORO_MILLISECOND;
	int me = gettid(), nobody = 0;

	while (goro_now() < until)
		continue;
	if (!atomic_compare_exchange_strong(&first, &nobody, me) && nobody != me)
		atomic_fetch_add(&others, 1);
	goro_waitgroup_done(wg);
}

static int start(int argc, char **argv)
{
	goro_waitgroup wg = { 0 };

	(void)argc, (void)argv;
	goro_gomaxprocs(2);
	goro_waitgroup_add(&wg, 100);
	for (int i = 0; i < 100; i++)
		go(work, &wg);
	goro_waitgroup_wait(&wg);
	printf("run by another thread than the first: %s\n", atomic_load(&others) > 0 ? "some" : "none");
	return 0;
}
GORO_MAIN(start)

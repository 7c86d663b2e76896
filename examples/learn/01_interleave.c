/*
 * 01_interleave.c - two goroutines run at the same time on two processors.
 *
 * Each counts until it has seen the other one's count move, and the other one its own.
 * With two processors (Ps), each has one of its own.
 */
#include <goro.h>
#include <stdatomic.h>

static atomic_long count[2];
static atomic_bool seen[2];

static void run(int me, goro_waitgroup *wg)
{
	long other = count[!me];

	while (!seen[0] || !seen[1]) {
		count[me]++;
		if (count[!me] >= other + 1000)
			seen[me] = true;
	}
	goro_waitgroup_done(wg);
}

static int start(int argc, char **argv)
{
	goro_waitgroup wg = { 0 };

	(void)argc, (void)argv;
	goro_gomaxprocs(2);
	goro_waitgroup_add(&wg, 2);
	go(run, 0, &wg);
	go(run, 1, &wg);
	goro_waitgroup_wait(&wg);
	puts("each saw the other one count");
	return 0;
}
GORO_MAIN(start)

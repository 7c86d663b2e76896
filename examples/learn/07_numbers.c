/*
 * 07_numbers.c - two goroutines print numbers in turn.
 *
 * One prints the odd numbers, one the even ones. A channel without a buffer hands the
 * turn over: the send waits until the other one receives.
 */
#include <goro.h>

static void print(const char *kind, int first, goro_chan *mine, goro_chan *theirs, goro_waitgroup *wg)
{
	for (int n = first; n <= 10; n += 2) {
		goro_chan_recv(mine, NULL);
		printf("%s %d\n", kind, n);
		if (n < 10)
			goro_chan_send(theirs, &n);
	}
	goro_waitgroup_done(wg);
}

static int start(int argc, char **argv)
{
	goro_chan *odd = goro_chan_of(int, 0), *even = goro_chan_of(int, 0);
	goro_waitgroup wg = { 0 };

	(void)argc, (void)argv;
	goro_waitgroup_add(&wg, 2);
	go(print, "odd", 1, odd, even, &wg);
	go(print, "even", 2, even, odd, &wg);
	goro_chan_send(odd, &(int){ 0 });	/* the first turn */
	goro_waitgroup_wait(&wg);
	goro_chan_unref(odd);
	goro_chan_unref(even);
	return 0;
}
GORO_MAIN(start)

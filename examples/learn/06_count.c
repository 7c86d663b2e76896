/*
 * 06_count.c - how many goroutines there are.
 *
 * Ten wait for a channel to be closed. A goroutine counts until its function has
 * returned.
 */
#include <goro.h>

static void wait_for(goro_chan *gate, goro_waitgroup *wg)
{
	goro_waitgroup_done(wg);
	goro_chan_recv(gate, NULL);
}

static int start(int argc, char **argv)
{
	goro_chan *gate = goro_chan_of(int, 0);
	goro_waitgroup wg = { 0 };

	(void)argc, (void)argv;
	printf("at first %zu\n", goro_num_goroutine());
	goro_waitgroup_add(&wg, 10);
	for (int i = 0; i < 10; i++)
		go(wait_for, gate, &wg);
	goro_waitgroup_wait(&wg);
	printf("while ten wait %zu\n", goro_num_goroutine());
	goro_chan_close(gate);
	while (goro_num_goroutine() > 1)
		goro_gosched();
	printf("at last %zu\n", goro_num_goroutine());
	goro_chan_unref(gate);
	return 0;
}
GORO_MAIN(start)

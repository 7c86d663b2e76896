/*
 * 04_sleep.c - a goroutine sleeps beside main.
 *
 * A goroutine that sleeps waits for a timer and needs no thread. Main goes on at once.
 */
#include <goro.h>

static void sleeper(goro_chan *done)
{
	goro_sleep(30 * GORO_MILLISECOND);
	puts("sleeper: awake");
	goro_chan_close(done);
	goro_chan_unref(done);
}

static int start(int argc, char **argv)
{
	goro_chan *done = goro_chan_of(int, 0);

	(void)argc, (void)argv;
	go(sleeper, goro_chan_ref(done));
	puts("main: goes on");
	goro_sleep(5 * GORO_MILLISECOND);
	puts("main: waits");
	goro_chan_recv(done, NULL);
	puts("main: done");
	goro_chan_unref(done);
	return 0;
}
GORO_MAIN(start)

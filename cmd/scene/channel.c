/*
 * Two goroutines and a channel without room: each value is handed from one to
 * the other.
 */
#include <goro.h>

static void consumer(goro_chan *values, goro_waitgroup *done)
{
	int value;

	goro_set_name("consumer");
	while (goro_chan_recv(values, &value))
		;
	goro_waitgroup_done(done);
}

static int start(int argc, char **argv)
{
	goro_chan *values = goro_chan_of(int, 0);
	goro_waitgroup done = { 0 };

	(void)argc, (void)argv;
	goro_set_name("producer");
	goro_waitgroup_add(&done, 1);
	go(consumer, values, &done);
	for (int i = 1; i <= 3; i++)
		goro_chan_send(values, &i);
	goro_chan_close(values);
	goro_waitgroup_wait(&done);
	goro_chan_unref(values);
	return 0;
}

GORO_MAIN(start)

/* 1_hello.c - goroutines and a channel. */
#include <goro.h>

static void square(goro_chan *results, int n)
{
	int result = n * n;

	goro_chan_send(results, &result);
	goro_chan_unref(results);
}

static int start(int argc, char **argv)
{
	goro_chan *results = goro_chan_of(int, 0);
	int sum = 0, result;

	(void)argc, (void)argv;
	for (int n = 1; n <= 3; n++)
		go(square, goro_chan_ref(results), n);
	for (int n = 1; n <= 3; n++) {
		goro_chan_recv(results, &result);
		sum += result;
	}
	goro_chan_unref(results);
	printf("%d\n", sum);
	return 0;
}
GORO_MAIN(start)

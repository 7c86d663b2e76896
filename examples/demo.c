/*
 * demo.c - what goro does, with figures it measures itself. `make demo`.
 */
#include <goro.h>

static void leaf(goro_chan *done, int i)
{
	goro_chan_send(done, &i);
}

static void many_goroutines(int n)
{
	goro_chan *done = goro_chan_of(int, 0);
	int64_t begin = goro_now(), started;
	int64_t sum = 0;

	for (int i = 0; i < n; i++)
		go(leaf, done, i);
	started = goro_now();
	for (int i = 0; i < n; i++) {
		int v;

		goro_chan_recv(done, &v);
		sum += v;
	}
	printf("%d goroutines started in %.1f ms, each sent a number on one channel; "
	       "the sum came out %s after %.1f ms in all\n",
	       n, (double)(started - begin) / 1e6,
	       sum == (int64_t)n * (n - 1) / 2 ? "right" : "WRONG",
	       (double)(goro_now() - begin) / 1e6);
	goro_chan_unref(done);
}

static int start(int argc, char **argv)
{
	(void)argc; (void)argv;
	printf("goro on %d processor(s)\n", goro_gomaxprocs(0));
	many_goroutines(100000);
	return 0;
}
GORO_MAIN(start)

/*
 * 10_select.c - select with a default, with a timeout, and with a nil channel.
 */
#include <goro.h>

static void count(goro_chan *c)
{
	for (int i = 1; i <= 2; i++)
		goro_chan_send(c, &i);
	goro_chan_close(c);
	goro_chan_unref(c);
}

static int start(int argc, char **argv)
{
	goro_chan *a = goro_chan_of(int, 0), *b = goro_chan_of(int, 0), *from_a = a, *from_b = b;
	int value, sum = 0;
	bool ok;

	(void)argc, (void)argv;
	/* A default: a deadline that has passed. */
	if (goro_select_until(GORO_NOW, GORO_RECV(a, &value)) == -1)
		puts("nothing on a");

	/* A timeout: a deadline in the future. */
	if (goro_select_until(goro_now() + 2 * GORO_MILLISECOND, GORO_RECV(a, &value)) == -1)
		puts("nothing on a for 2 ms");

	/* A nil channel is never ready: set to NULL, a case is switched off. */
	go(count, goro_chan_ref(a));
	go(count, goro_chan_ref(b));
	while (from_a || from_b) {
		switch (goro_select(GORO_RECV_OKP(from_a, &value, &ok), GORO_RECV_OKP(from_b, &value, &ok))) {
		case 0:
			from_a = ok ? a : NULL;
			break;
		case 1:
			from_b = ok ? b : NULL;
			break;
		}
		sum += value;	/* 0 from a closed channel */
	}
	printf("sum of both: %d\n", sum);
	goro_chan_unref(a);
	goro_chan_unref(b);
	return 0;
}
GORO_MAIN(start)

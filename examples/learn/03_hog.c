/*
 * 03_hog.c - an infinite loop holds up no other goroutine.
 *
 * There is one processor, and a goroutine on it that never calls anything. The main
 * goroutine sleeps and wakes all the same: the hog is preempted, by a signal, wherever it
 * is. When main returns the program ends, hog or no hog.
 */
#include <goro.h>

static volatile long spins;

static void hog(void)
{
	for (;;)
		spins++;
}

static int start(int argc, char **argv)
{
	(void)argc, (void)argv;
	goro_gomaxprocs(1);
	go(hog);
	for (int i = 1; i <= 3; i++) {
		goro_sleep(10 * GORO_MILLISECOND);
		printf("tick %d, and the hog %s\n", i, spins > 0 ? "runs" : "has not begun");
	}
	return 0;
}
GORO_MAIN(start)

/*
 * 11_blocking.c - blocking system calls beside a goroutine that computes.
 *
 * There is one processor. Twenty goroutines block in the kernel, in a call that knows
 * nothing of goroutines; each gives its processor up meanwhile. So they all block at
 * once, and main computes beside them.
 */
#include <goro.h>
#include <time.h>

static void block(goro_waitgroup *wg)
{
	nanosleep(&(struct timespec){ .tv_nsec = 100 * GORO_MILLISECOND }, NULL);
	goro_waitgroup_done(wg);
}

static int start(int argc, char **argv)
{
	goro_waitgroup wg = { 0 };
	int64_t begin = goro_now();
	volatile long computed = 0;

	(void)argc, (void)argv;
	goro_gomaxprocs(1);
	goro_waitgroup_add(&wg, 20);
	for (int i = 0; i < 20; i++)
		go(block, &wg);
	while (goro_now() - begin < 50 * GORO_MILLISECOND)
		computed++;
	goro_waitgroup_wait(&wg);
	printf("20 calls of 100 ms took less than a second: %s\n",
	       goro_now() - begin < GORO_SECOND ? "yes" : "no");
	printf("main computed meanwhile: %s\n", computed > 0 ? "yes" : "no");
	return 0;
}
GORO_MAIN(start)

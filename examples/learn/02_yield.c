/*
 * 02_yield.c - two goroutines take turns on one processor.
 *
 * goro_gosched puts the caller behind the others that are ready. With one processor and
 * two goroutines that means: each in turn.
 */
#include <goro.h>

static void say(const char *word, goro_waitgroup *wg)
{
	for (int i = 0; i < 3; i++) {
		puts(word);
		goro_gosched();
	}
	goro_waitgroup_done(wg);
}

static int start(int argc, char **argv)
{
	goro_waitgroup wg = { 0 };

	(void)argc, (void)argv;
	goro_gomaxprocs(1);
	goro_waitgroup_add(&wg, 2);
	go(say, "pong", &wg);
	go(say, "ping", &wg);	/* the newest goroutine goes first */
	goro_waitgroup_wait(&wg);
	return 0;
}
GORO_MAIN(start)

/*
 * crowd - thousands of goroutines in blocking calls at the same time, unannounced:
 * sockets, libcurl, OpenSSL; and the time until all of them sleep in poll, announced and
 * not. See crowd.h.
 *
 *	bench_crowd                all, with 100, 1,000 and 5,000 goroutines
 *	bench_crowd sockets 2000   one of sockets, curl, tls, poll, announced
 *
 * With LD_PRELOAD=libgoro-calls.so.0 the calls announce themselves: the program is linked
 * with the shared library for that.
 */
#include "bench.h"
#include "crowd.h"

static void one_of_many(crowd_fn *fn, int i, goro_waitgroup *wg)
{
	fn(i);
	goro_waitgroup_done(wg);
}

static void crowd_run(crowd_fn *fn, int n)
{
	goro_waitgroup wg = { 0 };

	goro_waitgroup_add(&wg, n);
	for (int i = 0; i < n; i++)
		BENCH_GO(one_of_many, fn, i, &wg);
	goro_waitgroup_wait(&wg);
}

static void poll_announced(void *arg)
{
	(void)arg;
	poll(NULL, 0, CROWD_POLL_MS);
}

static void sleep_announced(int i)
{
	(void)i;
	if (__atomic_add_fetch(&crowd.begun, 1, __ATOMIC_SEQ_CST) == crowd.n)
		crowd.all_begun_at = measure_now();
	goro_blocking(poll_announced, NULL);
}

static bool one(int procs, const char *what, int n)
{
	if (strcmp(what, "announced") != 0)
		return crowd_one(procs, what, n);
	crowd.n = n;
	crowd_sleepers(procs, what, sleep_announced);
	return true;
}

static int bench_main(int argc, char **argv)
{
	return crowd_main(goro_gomaxprocs(0), argc, argv, one) ? 0 : 1;
}

int main(int argc, char **argv)
{
	crowd_serve_if_asked(argc, argv);
	return goro_run(bench_main, argc, argv);
}

/*
 * hot_paths PATH N - goes N times over one of the runtime's hot paths, with one
 * processor, for somebody who counts instructions (see count).
 */
#include <goro.h>

#include <stdlib.h>
#include <string.h>

#define BATCH    100
#define CAPACITY 128

static void fail(const char *what)
{
	fprintf(stderr, "hot_paths: %s\n", what);
	exit(1);
}

/* ------------------------------------------------------------------ yield */

static void yielder(int n, goro_waitgroup *wg)
{
	for (int i = 0; i < n; i++)
		goro_gosched();
	goro_waitgroup_done(wg);
}

static void yield(int n)
{
	goro_waitgroup wg = { 0 };

	goro_waitgroup_add(&wg, 2);
	go(yielder, n / 2, &wg);
	go(yielder, n / 2, &wg);
	goro_waitgroup_wait(&wg);
}

/* --------------------------------------------------------------- channels */

static void ponger(goro_chan *ping, goro_chan *pong)
{
	int v;

	while (goro_chan_recv(ping, &v))
		goro_chan_send(pong, &v);
}

static void pingpong(int n)
{
	goro_chan *ping = goro_chan_of(int, 0), *pong = goro_chan_of(int, 0);

	go(ponger, ping, pong);
	for (int i = 0; i < n; i++) {
		goro_chan_send(ping, &i);
		goro_chan_recv(pong, NULL);
	}
	goro_chan_close(ping);
}

static void producer(goro_chan *c, int n)
{
	for (int i = 0; i < n; i++)
		goro_chan_send(c, &i);
	goro_chan_close(c);
}

static void buffered(int n)
{
	goro_chan *c = goro_chan_of(int, CAPACITY);
	int v;

	go(producer, c, n);
	while (goro_chan_recv(c, &v))
		;
	goro_chan_unref(c);
}

/* ------------------------------------------------------------------ spawn */

static void spawn(int n)
{
	for (int done = 0; done < n; done += BATCH) {
		goro_waitgroup wg = { 0 };

		goro_waitgroup_add(&wg, BATCH);
		for (int i = 0; i < BATCH; i++)
			go(goro_waitgroup_done, &wg);
		goro_waitgroup_wait(&wg);
	}
}

/* ------------------------------------------------------------------ mutex */

static void mutex(int n)
{
	goro_mutex lock = { 0 };

	for (int i = 0; i < n; i++) {
		goro_mutex_lock(&lock);
		goro_mutex_unlock(&lock);
	}
}

static const struct path {
	const char *name;
	void (*run)(int n);
} paths[] = {
	{ "yield", yield },       { "pingpong", pingpong }, { "spawn", spawn },
	{ "buffered", buffered }, { "mutex", mutex },
};

static int run_path(int argc, char **argv)
{
	if (argc != 3)
		fail("usage: hot_paths PATH N");
	for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
		if (strcmp(argv[1], paths[i].name) == 0) {
			paths[i].run(atoi(argv[2]));
			return 0;
		}
	fail("no such path");
	return 1;
}

GORO_MAIN(run_path)

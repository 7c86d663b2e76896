/*
 * glib.c - a main loop of GLib's beside goroutines, and 1,000 requests under way.
 *
 * The loop runs in a goroutine of its own, as it is: it blocks in poll, and keeps its one
 * thread, as a thread of its own would. Here goroutines wait for what the loop does (a
 * timer of a second stands for any source of GLib's), and the loop's callbacks hand over
 * to goroutines.
 *
 *	glib park [CLIENTS [QUICK]]
 *
 * Who gives the loop something to do may be on any thread: g_timeout_add, g_idle_add and
 * g_source_attach are made for that. Callbacks run on the loop's thread and must not
 * wait: go(), goro_chan_try_send and goro_chan_close never do. goro_lock_os_thread keeps
 * the loop where it began even if one does: GLib knows a loop's owner by its thread.
 */
#include <glib.h>
#include <goro.h>

#include "measure.h"

static GMainLoop *loop;

static void run_loop(void)
{
	goro_lock_os_thread();
	g_main_loop_run(loop);
	goro_unlock_os_thread();
}

static void begin(void *unused)
{
	(void)unused;
	loop = g_main_loop_new(NULL, FALSE);
	go(run_loop);
}

static void *open_one(int i)
{
	static goro_once once;

	(void)i;
	goro_once_do(&once, begin, NULL);
	return NULL;
}

/* The loop's callback. */
static gboolean on_time(void *done)
{
	goro_chan_close(done);
	return G_SOURCE_REMOVE;
}

static void wait_for_timer(unsigned ms)
{
	goro_chan *done = goro_chan_of(char, 0);

	g_timeout_add(ms, on_time, done);
	goro_chan_recv(done, NULL);
	goro_chan_unref(done);
}

static void slow(void *unused, int i)
{
	(void)unused, (void)i;
	wait_for_timer(1000);
}

static void quick(void *unused, int i)
{
	(void)unused, (void)i;
	wait_for_timer(0);
}

int main(int argc, char **argv)
{
	static const struct client client = { open_one, slow, quick, NULL };

	if (argc < 2 || g_strcmp0(argv[1], "park") != 0)
		die("usage: %s park [CLIENTS [QUICK]]", argv[0]);
	return measure_main(argc, argv, &client, &client);
}

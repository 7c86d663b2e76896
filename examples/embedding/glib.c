/*
 * glib.c - an event loop in a program of goroutines, here glib's.
 *
 *	glib [-t SECONDS] HOST:PORT...  which of these can be reached, and how quickly
 *
 * What to look at: the loop is a goroutine of its own, locked to its thread, with a stack
 * as large as callbacks may want. It blocks in poll as it does anywhere, which holds
 * nobody up. Goroutines dial all addresses at once; each hands its result to the loop as
 * a source, and the loop runs it, where all of the "user interface" is: results, and a
 * dot for each tenth of a second that it waits. SIGINT is a source of the loop's, and
 * cancels a context.
 */
#include <glib-unix.h>
#include <glib.h>
#include <goro.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define STACK_SIZE ((size_t)8 << 20)

struct result {
	const char *address;
	int err;
	int64_t took;
};

static GMainContext *context;
static GMainLoop *loop;
static int64_t timeout = 2 * GORO_SECOND;

/* From any goroutine or thread: the loop calls fn(data), and then frees it. A call of
 * g_main_context_invoke would run fn here, were the loop not running yet, or any more. */
static void in_loop(GSource *source, GSourceFunc fn, gpointer data, GDestroyNotify destroy)
{
	g_source_set_callback(source, fn, data, destroy);
	g_source_attach(source, context);
	g_source_unref(source);
}

/* ------------------------------------------------------------ in the loop */

static gboolean show(gpointer arg)
{
	struct result *r = arg;

	if (r->err < 0)
		g_print("%s: %s\n", r->address,
		        r->err == -ENOENT ? "no such host" : g_strerror(-r->err));
	else
		g_print("%s: %.1f ms\n", r->address, (double)r->took / 1e6);
	return G_SOURCE_REMOVE;
}

static gboolean show_that_it_waits(gpointer unused)
{
	(void)unused;
	g_printerr(".");
	return G_SOURCE_CONTINUE;
}

static gboolean cancel(gpointer ctx)
{
	goro_ctx_cancel(ctx);
	return G_SOURCE_CONTINUE;
}

static gboolean quit(gpointer unused)
{
	(void)unused;
	g_main_loop_quit(loop);
	return G_SOURCE_REMOVE;
}

static void run_loop(void *ended)
{
	goro_lock_os_thread();		/* glib knows the loop by its thread */
	g_main_context_push_thread_default(context);
	g_main_loop_run(loop);
	g_main_context_pop_thread_default(context);
	goro_unlock_os_thread();
	goro_waitgroup_done(ended);
}

/* ---------------------------------------------------------- in goroutines */

static void check(const char *address, goro_chan *done)
{
	struct result *r = g_new0(struct result, 1);
	int64_t begin = goro_now();

	r->address = address;
	r->err = goro_dial("tcp", address, goro_deadline_in(timeout));
	r->took = goro_now() - begin;
	if (r->err >= 0)
		goro_close(r->err);
	in_loop(g_idle_source_new(), show, r, g_free);
	goro_chan_send(done, NULL);
	goro_chan_unref(done);
}

static int start(int argc, char **argv)
{
	struct goro_attr attr = { .stack_size = STACK_SIZE, .name = "main loop" };
	goro_ctx *ctx = goro_ctx_with_cancel(goro_ctx_background());
	goro_chan *done = goro_chan_make(0, 0);
	goro_waitgroup ended = { 0 };
	int left;

	if (argc > 2 && strcmp(argv[1], "-t") == 0) {
		timeout = atoi(argv[2]) * GORO_SECOND;
		argc -= 2;
		argv += 2;
	}
	left = argc - 1;
	context = g_main_context_new();
	loop = g_main_loop_new(context, FALSE);
	in_loop(g_timeout_source_new(100), show_that_it_waits, NULL, NULL);
	in_loop(g_unix_signal_source_new(SIGINT), cancel, ctx, NULL);
	goro_waitgroup_add(&ended, 1);
	goro_go_attr(&attr, run_loop, &ended);

	for (int i = 1; i < argc; i++)
		go(check, argv[i], goro_chan_ref(done));
	while (left > 0 && goro_select(GORO_RECV(done, NULL),
	                               GORO_RECV(goro_ctx_done(ctx), NULL)) == 0)
		left--;
	in_loop(g_idle_source_new(), quit, NULL, NULL);
	goro_waitgroup_wait(&ended);
	if (left > 0)
		return 130;		/* some still dial, and hand in results */
	g_main_loop_unref(loop);
	g_main_context_unref(context);
	goro_chan_unref(done);
	goro_ctx_unref(ctx);
	return 0;
}
GORO_MAIN(start)

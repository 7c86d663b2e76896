/*
 * context - cancellation.
 *
 * context.tree: a context with a hundred children of a hundred children each is
 * made, cancelled at its root and dropped; time per context.
 * context.wait: a thousand goroutines wait for work or for the end of a context
 * that is then cancelled; time per goroutine, from its start to its end.
 */
#include "bench.h"

#include <stdatomic.h>

#define DEGREE  100
#define WAITERS 1000            /* per round */

static uint64_t tree_round(void)
{
	static goro_ctx *child[DEGREE], *leaf[DEGREE][DEGREE];
	goro_ctx *root = goro_ctx_with_cancel(goro_ctx_background());
	uint64_t cancelled = 0;

	for (int i = 0; i < DEGREE; i++) {
		child[i] = goro_ctx_with_cancel(root);
		for (int j = 0; j < DEGREE; j++)
			leaf[i][j] = goro_ctx_with_cancel(child[i]);
	}
	goro_ctx_cancel(root);
	for (int i = 0; i < DEGREE; i++) {
		for (int j = 0; j < DEGREE; j++) {
			cancelled += goro_ctx_err(leaf[i][j]) == -ECANCELED;
			goro_ctx_unref(leaf[i][j]);
		}
		goro_ctx_unref(child[i]);
	}
	goro_ctx_unref(root);
	return cancelled;
}

struct waiters {
	goro_ctx *ctx;
	goro_chan *work;
	goro_waitgroup ready, ended;
	atomic_uint_fast64_t cancelled;
};

static void waiter(struct waiters *w)
{
	goro_waitgroup_done(&w->ready);
	if (goro_select(GORO_RECV(goro_ctx_done(w->ctx), NULL),
	                GORO_RECV(w->work, NULL)) == 0)
		atomic_fetch_add(&w->cancelled, 1);
	goro_waitgroup_done(&w->ended);
}

static uint64_t wait_round(void)
{
	struct waiters w = {
		.ctx = goro_ctx_with_cancel(goro_ctx_background()),
		.work = goro_chan_of(int, 0),
	};

	goro_waitgroup_add(&w.ready, WAITERS);
	goro_waitgroup_add(&w.ended, WAITERS);
	for (int i = 0; i < WAITERS; i++)
		BENCH_GO(waiter, &w);
	goro_waitgroup_wait(&w.ready);
	goro_ctx_cancel(w.ctx);
	goro_waitgroup_wait(&w.ended);
	goro_ctx_unref(w.ctx);
	goro_chan_unref(w.work);
	return atomic_load(&w.cancelled);
}

static int bench_main(int argc, char **argv)
{
	struct measurement m = measure(tree_round, 1 + DEGREE + DEGREE * DEGREE);

	(void)argc, (void)argv;
	bench_report("context.tree", m.ns_per_op, "ns", "%" PRIu64, m.check);
	m = measure(wait_round, WAITERS);
	bench_report("context.wait", m.ns_per_op, "ns", "%" PRIu64, m.check);
	return 0;
}

GORO_MAIN(bench_main)

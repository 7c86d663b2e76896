/*
 * group.c - goroutines that work on one thing together, as golang.org/x/sync/errgroup.
 *
 * Made of existing parts: a context to cancel, a waitgroup to wait on and, for a limit, a
 * channel with that capacity, in which each goroutine of the group has an element. A
 * goroutine's last access to the group is Done on the waitgroup, after which the group
 * may be gone.
 */
#include <goro.h>
#include <stdlib.h>

#include "sync/freed.h"
#include "sched/runtime.h"
#include "goroutine/panic.h"

struct goro_group {
	goro_ctx *ctx;
	goro_chan *limit;	/* NULL: none */
	goro_waitgroup wg;
	int err;		/* the first; atomic */
};

goro_group *goro_group_make(goro_ctx *parent, int limit)
{
	goro_group *g = calloc(1, sizeof *g);

	if (!g)
		return NULL;
	g->ctx = goro_ctx_with_cancel(parent ? parent : goro_ctx_background());
	if (limit > 0)
		g->limit = goro_chan_make(0, (size_t)limit);
	if (g->ctx && (g->limit || limit <= 0))
		return g;
	goro_ctx_unref(g->ctx);
	goro_chan_unref(g->limit);
	free(g);
	return NULL;
}

goro_ctx *goro_group_ctx(goro_group *g)
{
	return g->ctx;
}

static void leave(void *arg)
{
	goro_group *g = arg;

	if (g->limit)
		goro_chan_recv(g->limit, NULL);
	goro_waitgroup_done(&g->wg);
}

/* Leaves by a defer, also if fn ends by goexit. */
static void member(goro_group *g, int (*fn)(goro_ctx *, void *), void *arg)
{
	int err, none = 0;
	struct defer last;

	panic_defer(&last, leave, g);
	err = fn(g->ctx, arg);
	if (err != 0 && cas_acqrel(&g->err, &none, err))
		goro_ctx_cancel_cause(g->ctx, err);
	panic_run_defers(m_self()->curg, NULL);
}

/* The limit allows it. */
static int start(goro_group *g, int (*fn)(goro_ctx *, void *), void *arg)
{
	int err;

	goro_waitgroup_add(&g->wg, 1);
	/* As goro_go, where clang would warn of an argument that is a function. */
	err = goro_start((void (*)(void))member, (uintptr_t)g, (uintptr_t)fn, (uintptr_t)arg, 0, 0, 0);
	if (err < 0)
		leave(g);
	return err;
}

int goro_group_go(goro_group *g, int (*fn)(goro_ctx *, void *), void *arg)
{
	if (unlikely(!fn))
		g_of_nil();
	if (g->limit)
		goro_chan_send(g->limit, NULL);
	return start(g, fn, arg);
}

bool goro_group_try_go(goro_group *g, int (*fn)(goro_ctx *, void *), void *arg)
{
	if (unlikely(!fn))
		g_of_nil();
	if (g->limit && !goro_chan_try_send(g->limit, NULL))
		return false;
	return start(g, fn, arg) == 0;
}

int goro_group_wait(goro_group *g)
{
	int err;

	goro_waitgroup_wait(&g->wg);
	err = g->err;
	goro_ctx_cancel_cause(g->ctx, err);
	goro_ctx_unref(g->ctx);
	goro_chan_unref(g->limit);
	freed_release(g, NULL);		/* its context finds a later use */
	return err;
}

/*
 * task.c - goroutines that are waited for: a task, whose result is wanted, as a thread's
 * is by pthread_join; and sync.WaitGroup.Go.
 *
 * A task is shared by its handle and its goroutine; the second to leave it frees it. A
 * channel is closed at the goroutine's end, so that a join may have a deadline and a
 * select may wait for it. What is to be done at the end is deferred: the goroutine may
 * end by goexit.
 */
#include <goro.h>
#include <stdlib.h>

#include "sched/runtime.h"

struct goro_task {
	goro_chan *done;	/* closed when the goroutine has ended */
	void *(*fn)(void *arg);
	void *arg;
	void *result;		/* written before done is closed */
	uint32_t users;		/* atomic: the handle and the goroutine */
};

static void leave(goro_task *t)
{
	/* acqrel: what one did comes before the other's free; pairs with itself */
	if (fetch_add_acqrel(&t->users, (uint32_t)-1) > 1)
		return;
	goro_chan_unref(t->done);
	free(t);
}

static void end(void *task)
{
	goro_task *t = task;

	goro_chan_close(t->done);
	leave(t);
}

static void run(goro_task *t)
{
	goro_defer(end, t);
	t->result = t->fn(t->arg);
}

goro_task *goro_task_go(void *(*fn)(void *arg), void *arg)
{
	goro_task *t;

	if (unlikely(!fn))
		g_of_nil();
	t = calloc(1, sizeof *t);
	if (!t)
		return NULL;
	*t = (goro_task){ .done = goro_chan_make(0, 0), .fn = fn, .arg = arg, .users = 2 };
	if (t->done && goro_start((void (*)(void))run, (uintptr_t)t, 0, 0, 0, 0, 0) == 0)
		return t;
	goro_chan_unref(t->done);
	free(t);
	return NULL;
}

goro_chan *goro_task_done(goro_task *t)
{
	return t->done;
}

int goro_task_join(goro_task *t, int64_t deadline, void **result)
{
	if (goro_select_until(deadline, GORO_RECV(t->done, NULL)) < 0)
		return -ETIMEDOUT;
	if (result)
		*result = t->result;
	leave(t);
	return 0;
}

void goro_task_detach(goro_task *t)
{
	leave(t);
}

/* -------------------------------------------------------------- wait groups */

static void done(void *wg)
{
	goro_waitgroup_done(wg);
}

static void run_counted(goro_waitgroup *wg, void (*fn)(void *), void *arg)
{
	goro_defer(done, wg);
	fn(arg);
}

int goro_waitgroup_go(goro_waitgroup *wg, void (*fn)(void *arg), void *arg)
{
	int err;

	if (unlikely(!fn))
		g_of_nil();
	goro_waitgroup_add(wg, 1);
	err = goro_start((void (*)(void))run_counted, (uintptr_t)wg, (uintptr_t)fn, (uintptr_t)arg,
	                 0, 0, 0);
	if (err < 0)
		goro_waitgroup_done(wg);
	return err;
}

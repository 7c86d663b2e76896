/*
 * run.c - goro_run: a goroutine for main, and the caller asleep until it is over.
 */
#include <goro.h>

#include "m_end.h"
#include "os.h"
#include "run.h"
#include "runtime.h"
#include "stack.h"
#include "trace.h"

/* Lies in the caller's frame. The last thing done to it is unlocking it: the
 * caller may return at that moment. */
struct run {
	struct lock lock;
	int (*fn)(int, char **);
	int argc;
	char **argv;
	int result;
	uint32_t done;
	struct g *waiter;
};

void run_main(struct run *r)
{
	struct g *waiter;
	struct m *mp;
	int result;

	m_self()->curg->is_main = true;
	store_relaxed(&m_self()->curg->untidy, true);
	result = r->fn(r->argc, r->argv);
	mp = rt_enter();
	lock_acquire(&r->lock);
	r->result = result;
	store_relaxed(&r->done, 1);
	waiter = r->waiter;
	lock_release(&r->lock);
	if (waiter)
		g_ready(mp, waiter);
	else
		os_futex_wake(&r->done, 1);	/* harmless if it is gone */
	rt_exit(mp);
}

void (*run_main_fn(const struct g *gp))(void)
{
	return (void (*)(void))gp->arg[1];
}

int goro_run(int (*main_fn)(int argc, char **argv), int argc, char **argv)
{
	struct run r = {
		.lock = LOCK_INIT(RANK_RUN), .fn = main_fn, .argc = argc, .argv = argv,
	};
	struct m *mp;
	struct g *gp;

	runtime_init();
	if (unlikely(!main_fn))
		g_of_nil();
	m_ends_allow();
	trace_start_by_environment();
	m_make_first();
	mp = foreign_enter_early();
	gp = g_get(mp, stack_default_class);
	if (!gp)
		fatal("out of memory for the main goroutine");
	gp->fn = (void (*)(void))run_main;
	gp->arg[0] = (uintptr_t)&r;
	gp->arg[1] = (uintptr_t)main_fn;	/* r may be gone before gp is */
	g_launch(mp, gp, __builtin_return_address(0));
	rt_exit(mp);
	os_futex_wait(&r.done, 0, RUN_SHORT_NS);
	if (!load_relaxed(&r.done))
		runtime_threads();	/* see init.c */
	mp = rt_enter();
	lock_acquire(&r.lock);
	if (!r.done) {
		r.waiter = mp->curg;
		mp = park(mp, park_unlock, &r.lock, WAIT_RUN);
	} else {
		lock_release(&r.lock);
	}
	rt_exit(mp);
	m_ends_stop();
	return r.result;
}

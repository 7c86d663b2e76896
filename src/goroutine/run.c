/*
 * run.c - goro_run: starts a goroutine for main, and the caller sleeps until that
 * returns.
 */
#include <goro.h>

#include "platform/os.h"
#include "goroutine/run.h"
#include "sched/runtime.h"
#include "stack/stack.h"

/* A program that ends within this time does without sysmon and the spawner. */
#define RUN_SHORT_NS 200000

/* In goro_run's frame: run_main's last access is the unlock, after which it may be
 * gone. */
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
		os_futex_wake(&r->done, 1);	/* harmless if goro_run has returned */
	rt_exit(mp);
}

void (*run_main_fn(const struct g *gp))(void)
{
	return (void (*)(void))gp->arg[1];
}

struct hook *at_run;

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
	hook_run(at_run);
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
	mp = foreign_enter_again();
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

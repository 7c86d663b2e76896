/*
 * leak.c - goroutines that a piece of the program has left behind.
 *
 * Since the mark
 *
 * Ids ascend, so the goroutines started since the mark are those with a greater id, and
 * starting a goroutine costs nothing extra. But a P takes its ids in batches, and after
 * the mark would go on with lower ones. So a mark stops the world and makes all Ps drop
 * their batches. That is why a mark takes some microseconds, and why ids have gaps.
 *
 * Waiting for their ends
 *
 * A check looks at all goroutines with the world stopped, and counts those that are left.
 * If there are any, it sleeps for a part of the time that it has taken so far, and looks
 * again. So it is late by that part at most, and the world runs for most of the time.
 *
 * Rejected: a counter of live goroutines, which every start and end would update; checks
 * that are told of the ends of the goroutines that they have counted, which is exact, and
 * as much again as all of this file.
 */
#include <goro.h>

#include "sync/deadline.h"
#include "observe/dump.h"
#include "platform/os.h"
#include "sched/g.h"
#include "sched/runtime.h"
#include "stack/stack.h"

/* The longest sleep between two looks. */
#define PAUSE_MAX_NS (50 * GORO_MILLISECOND)

struct look {
	uint64_t mark;
	const struct g *self;	/* the caller is not counted */
	size_t left;
};

static void drop_ids(void)
{
	check(load_relaxed(&sched.stopping));
	for (int i = 0; i < sched.all_p_n; i++)
		p_at(i)->ids.next = p_at(i)->ids.end;
}

uint64_t goro_leak_mark(void)
{
	struct m *mp = rt_enter_free();
	uint64_t mark;

	mp = world_stop(mp);
	drop_ids();
	mark = load_relaxed(&sched.id_next);
	mp = world_start(mp, sched.gomaxprocs);
	rt_exit_free(mp);
	return mark;
}

static bool is_left(const void *look, const struct g *gp)
{
	const struct look *l = look;

	/* acquire: a plain thread may start gp; pairs with store_release in launch */
	return load_acquire(&gp->status) != G_DEAD && gp->id > l->mark && gp != l->self &&
	       !gp->is_internal;
}

static void count_one(struct g *gp, void *arg)
{
	struct look *l = arg;

	l->left += is_left(l, gp);
}

/* Counts the goroutines that are left. Notes them if these are the final ones. */
static bool look_is_final(struct look *l, int64_t deadline, struct dump_list *noted)
{
	struct m *mp = world_stop(rt_enter_free());
	bool over;

	l->self = mp->is_foreign ? NULL : mp->curg;
	l->left = 0;
	stack_each(count_one, l);
	over = l->left == 0 || os_now() >= deadline;
	if (over && noted)
		dump_note_those(noted, is_left, l);
	mp = world_start(mp, sched.gomaxprocs);
	rt_exit_free(mp);
	return over;
}

size_t goro_leak_check(uint64_t mark, int64_t grace, FILE *out)
{
	struct look look = { .mark = mark };
	struct dump_list left = { .noted.bytes = 0 };
	int64_t start = os_now(), deadline = deadline_after(start, grace);

	while (!look_is_final(&look, deadline, out ? &left : NULL)) {
		int64_t now = os_now(), pause = (now - start) / 4 + 50 * GORO_MICROSECOND;

		if (pause > PAUSE_MAX_NS)
			pause = PAUSE_MAX_NS;
		goro_sleep(pause < deadline - now ? pause : deadline - now);
	}
	if (out)
		dump_print(&left, out);
	return look.left;
}

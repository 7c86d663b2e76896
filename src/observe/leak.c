/*
 * leak.c - goroutines that a piece of the program has left behind.
 *
 * Since the mark
 *
 * Ids are given out in ascending order, so those started since the mark are those
 * with a greater id, and starting a goroutine costs nothing for it. A P takes its
 * ids some at a time, though, and would go on with low ones after the mark: with the
 * world stopped all Ps drop what they have. That is why a mark is a call that takes
 * some microseconds, and why ids have gaps.
 *
 * Waiting for their ends
 *
 * A check looks at all goroutines with the world stopped, counts those that are left,
 * and marks them as untidy, which makes them say so when they end (leak_ended); the
 * end of all others costs nothing. The check sleeps until the last of those it has
 * counted has ended, and looks again, since they may have started more.
 *
 * Several checks may be under way. Each look has a number, and a goroutine that of
 * the look that found it first. So who ends is counted by those checks whose last
 * look was that one or a later one, and whose mark came before it: exactly those that
 * have seen it.
 *
 * Rejected: a counter of goroutines alive that every start and end would keep.
 */
#include "leak.h"

#include <goro.h>

#include "deadline.h"
#include "dump.h"
#include "os.h"
#include "runtime.h"
#include "stack.h"
#include "world.h"

/* A check that is under way; lies in the caller's frame. */
struct check {
	struct check *next;
	uint64_t mark;
	const struct g *self;	/* the caller is not counted */
	uint32_t look;		/* the number of its last look */
	size_t left;		/* of those found then */
	struct g *waiter;	/* the caller, while it sleeps */
};

static struct {
	struct lock lock;
	uint32_t looks;
	struct check *checks;
} leak = { .lock = LOCK_INIT(RANK_LEAK) };

/* -------------------------------------------------------------------- mark */

/* World stopped. */
static void drop_ids(void)
{
	for (int i = 0; i < sched.all_p_n; i++)
		p_at(i)->id_next = p_at(i)->id_end;
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

/* -------------------------------------------------------------------- ends */

static bool has_seen(const struct check *c, const struct g *gp)
{
	return gp->id > c->mark && (int32_t)(c->look - gp->watched) >= 0;
}

void leak_ended(struct m *mp, struct g *gp)
{
	lock_acquire(&leak.lock);
	for (struct check *c = leak.checks, *next; c; c = next) {
		next = c->next;
		if (has_seen(c, gp) && --c->left == 0 && c->waiter) {
			struct g *waiter = c->waiter;

			c->waiter = NULL;
			g_ready_in_order(mp, waiter);	/* cannot leave without the lock */
		}
	}
	lock_release(&leak.lock);
	gp->watched = 0;
}

static void check_begin(struct check *c)
{
	lock_acquire(&leak.lock);
	c->next = leak.checks;
	leak.checks = c;
	lock_release(&leak.lock);
}

static void check_end(struct check *c)
{
	struct check **at = &leak.checks;

	lock_acquire(&leak.lock);
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	lock_release(&leak.lock);
}

/* The time is up; see "Who wakes" in deadline.c. */
static void time_is_up(struct m *mp, struct timer *t, int64_t now)
{
	struct g *gp = deadline_g(t);
	struct check *c = gp->waiter.key;
	bool first;

	(void)now;
	lock_acquire(&leak.lock);
	first = c->waiter == gp;
	c->waiter = NULL;
	lock_release(&leak.lock);
	timer_fired(t);
	if (first)
		g_ready_in_order(mp, gp);
}

static struct m *check_sleep(struct m *mp, struct check *c, int64_t deadline)
{
	lock_acquire(&leak.lock);
	if (c->left == 0) {
		lock_release(&leak.lock);
		return mp;
	}
	mp->curg->waiter.key = c;
	c->waiter = mp->curg;
	return park_until(mp, &leak.lock, WAIT_SEMACQUIRE, deadline, time_is_up);
}

/* ------------------------------------------------------------------- looks */

static bool is_left(const void *check, const struct g *gp)
{
	const struct check *c = check;

	/* acquire: plain threads may be starting one; pairs with store_release in launch */
	return load_acquire(&gp->status) != G_DEAD && gp->id > c->mark && gp != c->self &&
	       !gp->is_internal;
}

static void watch_one(struct g *gp, void *arg)
{
	struct check *c = arg;

	if (!is_left(c, gp))
		return;
	c->left++;
	if (gp->watched)
		return;
	gp->watched = c->look;
	store_relaxed(&gp->untidy, true);
}

/* World stopped. */
static void check_look(struct check *c)
{
	lock_acquire(&leak.lock);
	if (++leak.looks == 0)
		leak.looks = 1;
	c->look = leak.looks;
	c->left = 0;
	stack_each(watch_one, c);
	lock_release(&leak.lock);
}

size_t goro_leak_check(uint64_t mark, int64_t grace, FILE *out)
{
	struct check c = { .mark = mark };
	struct dump_list left = { NULL, NULL };
	int64_t deadline = deadline_after(os_now(), grace);
	struct m *mp = rt_enter_free();
	bool over;
	size_t n;

	c.self = mp->is_foreign ? NULL : mp->curg;
	check_begin(&c);
	for (;;) {
		mp = world_stop(mp);
		check_look(&c);
		n = c.left;
		over = n == 0 || os_now() >= deadline;
		if (over && out)
			dump_note_those(&left, is_left, &c);
		mp = world_start(mp, sched.gomaxprocs);
		if (over)
			break;
		mp = check_sleep(mp, &c, deadline);
	}
	check_end(&c);
	rt_exit_free(mp);
	if (out)
		dump_print(&left, out);
	return n;
}

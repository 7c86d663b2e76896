/*
 * cond.c - sync.Cond.
 *
 * A wait draws a ticket while it still has the mutex. notified is the number of tickets
 * called so far. A signal calls the next ticket, whether its holder sleeps already or is
 * on its way there; a holder whose ticket was called does not sleep. So a signal goes to
 * the goroutine that has waited longest, and none that comes later takes it away.
 *
 * Invariants, under the lock:
 *	- notified <= tickets, as distances: both may wrap around;
 *	- a sleeper's ticket is not called yet.
 *
 * Lifetimes: a woken goroutine may free the condition. So the unlock is the last access
 * to it, and making goroutines ready comes after.
 */
#include <goro.h>

#include "sched/linger.h"
#include "sync/mutex.h"
#include "sync/wait_profile.h"
#include "sync/waitq.h"

struct cond {
	uint32_t tickets;	/* drawn so far */
	uint32_t notified;	/* called so far; written under lock, read without */
	struct lock lock;
	struct waitq q;		/* nearly in order of tickets */
};
_Static_assert(sizeof(struct cond) == sizeof(goro_cond), "public size");

static inline bool was_called(const struct cond *c, uint32_t ticket)
{
	return (int32_t)(ticket - c->notified) < 0;
}

void goro_cond_wait(goro_cond *cond, goro_mutex *m)
{
	struct cond *c = (struct cond *)cond;
	uint32_t ticket = fetch_add_seqcst(&c->tickets, 1);
	struct waiter *w;
	struct m *mp;

	mutex_unlock((struct mutex *)m);
	linger();
	mp = rt_enter_free();
	lock_acquire(&c->lock);
	if (was_called(c, ticket)) {
		lock_release(&c->lock);
	} else {
		int64_t since = profile_wait_start();

		check((int32_t)(load_seqcst(&c->tickets) - ticket) > 0);
		w = &mp->curg->waiter;
		w->gp = mp->curg;
		w->ticket = ticket;
		w->elem = c;		/* for reach.c */
		waitq_put(&c->q, w);
		mp = park(mp, park_unlock, &c->lock, WAIT_COND_WAIT);
		profile_block_event(mp, since);
	}
	rt_exit_free(mp);
	mutex_lock((struct mutex *)m);
}

/* No goroutine waits that a notification must reach. A wait that happened before this
 * call, by the mutex or otherwise, is seen. */
static bool nobody_waits(const struct cond *c)
{
	return load_seqcst(&c->tickets) == load_seqcst(&c->notified);
}

/* Takes the holder of a ticket off the queue; NULL: it is on its way. It is the first,
 * unless a goroutine that drew later was faster. */
static struct waiter *take_ticket(struct cond *c, uint32_t ticket)
{
	struct waiter *w = c->q.first;

	for (; w && w->ticket != ticket; w = w->next)
		check(!was_called(c, w->ticket));
	if (w)
		waitq_remove(&c->q, w);
	return w;
}

static void notify(struct cond *c, bool all)
{
	struct waiter *w = NULL;
	struct m *mp;

	if (nobody_waits(c))
		return;
	mp = rt_enter_lock(&c->lock);
	check((int32_t)(load_seqcst(&c->tickets) - c->notified) >= 0);
	if (all) {
		w = c->q.first;
		c->q = (struct waitq){ .first = NULL };
		store_seqcst(&c->notified, load_seqcst(&c->tickets));
	} else if (!nobody_waits(c)) {
		w = take_ticket(c, c->notified);
		store_seqcst(&c->notified, c->notified + 1);
	}
	lock_release(&c->lock);
	linger();
	if (all)
		ready_in_order(mp, w);
	else if (w)
		g_ready(mp, w->gp);
	rt_exit(mp);
}

void goro_cond_signal(goro_cond *cond)
{
	notify((struct cond *)cond, false);
}

void goro_cond_broadcast(goro_cond *cond)
{
	notify((struct cond *)cond, true);
}

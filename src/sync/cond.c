/*
 * cond.c - sync.Cond.
 *
 * Every wait draws a ticket while it still has the mutex; notified is how many
 * tickets were called so far. A signal calls the next ticket, whether its holder
 * sleeps already or is on its way: who arrives with a ticket that was called does
 * not sleep. So a signal goes to one who waited when it was given, the longest
 * of them, and nobody who comes later can take it away.
 *
 * Invariants, under the lock:
 *	- notified <= tickets, as distances: both may wrap around;
 *	- a sleeper's ticket is not called yet.
 *
 * Lifetimes: who is called may free the condition, so the unlock is the last
 * access to it, and making the goroutines ready comes after.
 */
#include <goro.h>

#include "linger.h"
#include "mutex.h"
#include "profile_hooks.h"
#include "waitq.h"

struct cond {
	uint32_t tickets;	/* drawn so far */
	uint32_t notified;	/* called so far; under lock, but read without */
	struct lock lock;
	struct waitq q;		/* in order of tickets, almost */
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

		w = &mp->curg->waiter;
		w->gp = mp->curg;
		w->ticket = ticket;
		w->elem = c;		/* for who looks: reach.c */
		waitq_put(&c->q, w);
		mp = park(mp, park_unlock, &c->lock, WAIT_COND_WAIT);
		profile_block_event(mp, since);
	}
	rt_exit_free(mp);
	mutex_lock((struct mutex *)m);
}

/* Nobody waits whom a notification would have to reach. A wait that another
 * thread has put before this, by the mutex or otherwise, is seen. */
static bool nobody_waits(const struct cond *c)
{
	return load_seqcst(&c->tickets) == load_seqcst(&c->notified);
}

/* Takes the holder of a ticket off the queue; NULL: it is on its way. It is at
 * the head, unless those who drew later were faster. */
static struct waiter *take_ticket(struct cond *c, uint32_t ticket)
{
	struct waiter *w = c->q.first;

	while (w && w->ticket != ticket)
		w = w->next;
	if (w)
		waitq_remove(&c->q, w);
	return w;
}

void goro_cond_signal(goro_cond *cond)
{
	struct cond *c = (struct cond *)cond;
	struct waiter *w = NULL;
	struct m *mp;

	if (nobody_waits(c))
		return;
	mp = rt_enter();
	lock_acquire(&c->lock);
	if (!nobody_waits(c)) {
		uint32_t ticket = c->notified;

		store_seqcst(&c->notified, ticket + 1);
		w = take_ticket(c, ticket);
	}
	lock_release(&c->lock);
	linger();
	if (w)
		g_ready(mp, w->gp);
	rt_exit(mp);
}

void goro_cond_broadcast(goro_cond *cond)
{
	struct cond *c = (struct cond *)cond;
	struct waiter *w;
	struct m *mp;

	if (nobody_waits(c))
		return;
	mp = rt_enter();
	lock_acquire(&c->lock);
	w = c->q.first;
	c->q = (struct waitq){ .first = NULL };
	store_seqcst(&c->notified, load_seqcst(&c->tickets));
	lock_release(&c->lock);
	linger();
	ready_in_order(mp, w);
	rt_exit(mp);
}

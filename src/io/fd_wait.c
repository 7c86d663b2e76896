/*
 * fd_wait.c - waiting for a descriptor: events, deadlines.
 *
 * Waiting
 *
 * The poller reports edges. A caller notes the number of events so far (seq), tries,
 * and if there was nothing waits for an event after seq:
 *
 *	caller                          fd_event (edge)
 *	s = seq                         lock
 *	try: EAGAIN                     seq++
 *	lock                            takes a waiter off the queue
 *	seq != s: unlock, try again     unlock
 *	onto the queue, park, unlock
 *
 * An edge before the try needs no attention, one after it is seen under the lock. A
 * descriptor is watched from the first wait on, and for writing only from the
 * first wait for that on: netpoll_add of a ready one makes an edge as well.
 *
 * Several who wait
 *
 * An edge may stand for several connections or for more bytes than one read takes,
 * but waking all who wait would be for nothing, mostly. It wakes the first; who was
 * woken and got something wakes the next when it leaves (fd_leave). One that finds
 * nothing waits again and wakes nobody: there was nothing left at that moment, and
 * an edge comes after it.
 *
 * Deadlines
 *
 * A side has one deadline and one timer, which wakes all who wait when it fires. The
 * timer is started when somebody waits, and left running when the wait is over or
 * the deadline moves to a later time: when it fires too early it is started again,
 * if anybody waits. A server that sets a deadline for every request thus starts a
 * timer once in a while. Calls look at the deadline themselves when they begin.
 *
 * A deadline is one of the file's that had the number when it was set. Where the number may have
 * changed hands unseen, the poller is asked (renew) before one is set, or it would be forgotten with
 * what is known of the old file, and before one that has passed ends a call.
 */
#include <errno.h>
#include <sys/uio.h>

#include "deadline.h"
#include "fd.h"
#include "linger.h"
#include "os.h"
#include "own_fd.h"
#include "runq.h"
#include "runtime.h"

/* lock held. What tells its events from those of files that had the number before. */
static uint64_t fd_tag(const struct fd *f)
{
	return (uint64_t)f->epoch << 32 | (uint32_t)f->number;
}

/* ------------------------------------------------------------------- waking */

/* lock held. Off both queues, if it is in both. */
static void take_off(struct fd *f, struct g *gp, int why, struct ready_list *list)
{
	for (int i = 0; i < 2; i++) {
		if (!gp->waiters[i].queued)
			continue;
		fd_queue_remove(&f->waiters[i], &gp->waiters[i]);
		gp->waiters[i].queued = false;
	}
	gp->waiters[0].index = why;
	ready_list_put(list, gp);
}

void fd_take_off_first(struct fd *f, enum fd_way way, struct ready_list *list)
{
	struct waiter *w = f->waiters[way].first;

	if (way == FD_READ)
		f->untried = 0;
	if (w)
		take_off(f, w->gp, WOKEN_READY, list);
}

void fd_take_off_all(struct fd *f, enum fd_way way, int why, struct ready_list *list)
{
	struct waiter *w;

	while ((w = f->waiters[way].first))
		take_off(f, w->gp, why, list);
}

void fd_ready_all(struct m *mp, struct ready_list *list)
{
	struct g *next;

	for (struct g *gp = list->head; gp; gp = next) {
		next = gp->link;
		gp->link = NULL;
		g_ready_in_order(mp, gp);
	}
}

static void event(struct fd *f, enum fd_way way, struct ready_list *list)
{
	/* release: pairs with load_acquire in fd_seq */
	store_release(&f->seq[way], f->seq[way] + 1);
	fd_take_off_first(f, way, list);
}

void fd_event(uint64_t tag, unsigned what, struct ready_list *list, struct fd_batch *batch)
{
	struct fd *f = fd_at((int)(uint32_t)tag);

	lock_acquire(&f->lock);
	if (tag == fd_tag(f)) {
		struct waiter *w = f->waiters[FD_READ].first;

		if (what & NETPOLL_READ) {
			event(f, FD_READ, list);
			if (w && w->elem)
				batch->gp[batch->n++] = w->gp;
		}
		if (what & NETPOLL_WRITE)
			event(f, FD_WRITE, list);
	}
	lock_release(&f->lock);
}

void fd_pass_on(struct fd *f, unsigned what)
{
	struct ready_list list = { NULL, NULL };
	struct m *mp = rt_enter();

	lock_acquire(&f->lock);
	for (int i = 0; i < 2; i++)
		if (what & 1u << i)
			fd_take_off_first(f, i, &list);
	lock_release(&f->lock);
	fd_ready_all(mp, &list);
	rt_exit(mp);
}

/* ---------------------------------------------------------------- watching */

/* lock held. The poller watches f for what, from now at the latest. 0 or -errno;
 * -ENOENT: it is another file than before. */
static int watch(struct fd *f, unsigned what)
{
	int r;

	if (likely((f->watched & what) == what && f->own))
		return 0;
	what |= f->watched;
	if ((r = netpoll_start()) < 0)
		return r;
	if (f->watched) {
		r = netpoll_modify(f->number, fd_tag(f), what);
		/* The poller is another one, and fd_watch_again has not come here yet, for want
		 * of the lock. */
		if (r == -ENOENT && load_seqcst(&netpoll.renewing))
			r = netpoll_add(f->number, fd_tag(f), what);
	} else {
		r = netpoll_add(f->number, fd_tag(f), what);
		if (r == -EEXIST)
			r = netpoll_modify(f->number, fd_tag(f), what);
	}
	if (r == 0)
		f->watched = what & (NETPOLL_READ | NETPOLL_WRITE);
	return r;
}

/* The number may be nobody's, or another file's, that the poller cannot watch. Or the poller is
 * lost again. */
static void watch_again(struct fd *f, void *list)
{
	lock_acquire(&f->lock);
	if (f->watched) {
		int r = netpoll_add(f->number, fd_tag(f), f->watched);

		if (r < 0 && r != -EEXIST && netpoll_is_whole())
			fd_forget(f, -EBADF, list);
	}
	lock_release(&f->lock);
}

void fd_watch_again(struct ready_list *list)
{
	fd_each(watch_again, list);
}

/* -EBADF was the poller's answer: it is lost, or else the descriptor is not open, which the
 * next try says. */
static int poller_failed(struct m *mp)
{
	struct ready_list list = { NULL, NULL };
	int r = netpoll_renew(&list);

	fd_ready_all(mp, &list);
	return r;
}

/* lock held. What is known is known of the file that has the number now: see "Numbers that
 * change hands" in fd.c. */
static void renew(struct fd *f, struct ready_list *list)
{
	if (!f->own && watch(f, NETPOLL_READ) == -ENOENT) {
		fd_forget(f, -EBADF, list);
		watch(f, NETPOLL_READ);
	}
}

/* ---------------------------------------------------------------- deadlines */

static bool expired(const struct fd *f, enum fd_way way, int64_t now)
{
	int64_t d = fd_deadline(f, way);

	return d != 0 && d <= now;
}

/* .. of the file that has the number now. */
static __attribute__((noinline)) bool has_expired(struct fd *f, enum fd_way way)
{
	struct ready_list list = { NULL, NULL };
	struct m *mp = rt_enter();
	bool yes;

	lock_acquire(&f->lock);
	renew(f, &list);
	yes = expired(f, way, os_now());
	lock_release(&f->lock);
	fd_ready_all(mp, &list);
	rt_exit(mp);
	return yes;
}

int fd_check_deadline(struct fd *f, enum fd_way way)
{
	if (likely(fd_deadline(f, way) == 0) || !expired(f, way, os_now()))
		return 0;
	return has_expired(f, way) ? -ETIMEDOUT : 0;
}

static deadline_fire fire_read, fire_write;

/* lock held: somebody waits, or will when the lock is released. A fire that is under
 * way comes for the lock and sees for itself; it is told from a move to another heap
 * by being due. */
static void deadline_start(struct m *mp, struct timer *t, int64_t d, enum fd_way way)
{
	while (!timer_try_stop(t)) {
		if (!timer_is_firing(t))
			break;
		if (t->when <= os_now())
			return;
		cpu_relax();
	}
	t->fire = way == FD_READ ? fire_read : fire_write;
	timer_start(mp, t, d);
}

/* lock held. .. unless the timer wakes in time as it is. */
static void deadline_arm_side(struct m *mp, struct fd *f, enum fd_way way)
{
	int64_t d = fd_deadline(f, way);
	struct timer *t;

	if (d == 0)
		return;
	t = &f->more->timer[way];
	if (!load_acquire(&t->heap) || t->when > d)
		deadline_start(mp, t, d, way);
}

/* The fire is over while the lock is held, as whoever starts the timer again holds
 * it too. */
static void fire_side(struct m *mp, struct fd_more *more, enum fd_way way, int64_t now)
{
	struct ready_list list = { NULL, NULL };
	struct fd *f = more->f;

	lock_acquire(&f->lock);
	timer_fired(&more->timer[way]);
	if (expired(f, way, now))
		fd_take_off_all(f, way, -ETIMEDOUT, &list);
	else if (f->waiters[way].first)
		deadline_arm_side(mp, f, way);
	lock_release(&f->lock);
	fd_ready_all(mp, &list);
}

static void fire_read(struct m *mp, struct timer *t, int64_t now)
{
	fire_side(mp, (struct fd_more *)((char *)t - offsetof(struct fd_more, timer[FD_READ])),
	          FD_READ, now);
}

static void fire_write(struct m *mp, struct timer *t, int64_t now)
{
	fire_side(mp, (struct fd_more *)((char *)t - offsetof(struct fd_more, timer[FD_WRITE])),
	          FD_WRITE, now);
}

static void set_deadline(struct m *mp, struct fd *f, enum fd_way way, int64_t d,
                         struct ready_list *list)
{
	if (!f->more)		/* there was none, and there is to be none */
		return;
	d = d == GORO_FOREVER ? 0 : d > 0 ? d : 1;
	store_relaxed(&f->more->deadline[way], d);
	if (!f->waiters[way].first)
		return;
	if (expired(f, way, os_now()))
		fd_take_off_all(f, way, -ETIMEDOUT, list);
	else
		deadline_arm_side(mp, f, way);
}

int goro_set_deadline(int fd, int64_t read_deadline, int64_t write_deadline)
{
	struct ready_list list = { NULL, NULL };
	struct fd_use u;
	struct m *mp;
	int r = fd_enter(&u, fd);

	if (r < 0)
		return r;
	if ((read_deadline != GORO_FOREVER || write_deadline != GORO_FOREVER) && !fd_more(u.f)) {
		fd_leave(&u);
		return -ENOMEM;
	}
	mp = rt_enter();
	lock_acquire(&u.f->lock);
	if (u.f->more)
		renew(u.f, &list);
	set_deadline(mp, u.f, FD_READ, read_deadline, &list);
	set_deadline(mp, u.f, FD_WRITE, write_deadline, &list);
	lock_release(&u.f->lock);
	fd_ready_all(mp, &list);
	rt_exit(mp);
	fd_leave(&u);
	return 0;
}

/* ------------------------------------------------------------------ waiting */

/* lock held. WAIT: it is to wait; LOST: see poller_failed; 0: to try again; or -errno. */
enum { WAIT = 1, LOST = 2 };

static __attribute__((noinline)) int watch_failed(struct m *mp, struct fd *f, int r)
{
	struct ready_list list = { NULL, NULL };

	/* (-EINVAL is also the answer for the poller's own number, for ever.) */
	if (r == -EBADF || (r == -EINVAL && !own_fd_is(f->number, OWN_FD_POLLER)))
		return LOST;
	if (r == -ENOENT) {
		/* Who waits has renewed the registration before: for the old file. */
		fd_forget(f, -EBADF, &list);
		fd_ready_all(mp, &list);
		return 0;
	}
	if (r == -EPERM)
		store_relaxed(&f->kind, FD_FILE);
	return r == -EPERM ? 0 : r;
}

static int may_wait(struct m *mp, const struct fd_use *u, unsigned what, const uint32_t seq[2])
{
	struct fd *f = u->f;
	uint64_t word = load_relaxed(&f->word);
	int r;

	if (gen_of(word) != u->gen)
		return -EBADF;
	if (word & F_CLOSED)
		return -ECANCELED;
	r = watch(f, what);
	if (unlikely(r < 0))
		return watch_failed(mp, f, r);
	for (int i = 0; i < 2; i++)
		if (what & 1u << i && f->seq[i] != seq[i])
			return 0;
	return WAIT;
}

void fd_enqueue(struct fd *f, struct g *gp, unsigned what)
{
	for (int i = 0; i < 2; i++) {
		struct waiter *w = &gp->waiters[i];

		w->key = f;
		w->elem = NULL;
		w->queued = what & 1u << i;
		if (!w->queued)
			continue;
		w->gp = gp;
		fd_queue_put(&f->waiters[i], w);
	}
}

static void count_wait(struct m *mp, bool over)
{
	if (mp->p)
		count_up(over ? &mp->p->count.io_returns : &mp->p->count.io_parks, 1);
	else
		fetch_add_seqcst(over ? &sched.io_returns : &sched.io_parks, 1);
}

/* The deadline of a wait of its own has come. The keys of a G's waiters stay as they
 * are until it has stopped this timer. */
static void fire_own(struct m *mp, struct timer *t, int64_t now)
{
	struct ready_list list = { NULL, NULL };
	struct g *gp = deadline_g(t);
	struct fd *f = gp->waiters[0].key;

	(void)now;
	lock_acquire(&f->lock);
	if (gp->waiters[0].queued || gp->waiters[1].queued)
		take_off(f, gp, -ETIMEDOUT, &list);
	lock_release(&f->lock);
	timer_fired(t);
	fd_ready_all(mp, &list);
}

/* Past the lock: parks, if r says so, and says why it goes on. */
static int finish_wait(struct fd_use *u, struct m *mp, int r, unsigned what, int64_t own)
{
	struct fd *f = u->f;
	struct g *gp = mp->curg;

	if (unlikely(r != WAIT)) {
		lock_release(&f->lock);
		if (r == LOST)
			r = poller_failed(mp);
		rt_exit_free(mp);
		return r;
	}
	fd_enqueue(f, gp, what);
	if (u->offer) {
		gp->waiters[FD_READ].elem = u->offer->iov_base;
		gp->waiters[FD_WRITE].index = (int)u->offer->iov_len;
	}
	count_wait(mp, false);
	if (likely(mp->p))
		runq_prefetch(mp->p);
	mp = park_until(mp, &f->lock, WAIT_IO, own, fire_own);
	count_wait(mp, true);
	r = gp->waiters[0].index;
	u->hurried = r == WOKEN_TO_TRY;
	u->done = r == WOKEN_DONE;
	if (u->done)
		u->result = gp->waiters[FD_WRITE].index;
	if (r >= 0) {
		u->woken |= what;
		r = 0;
	}
	rt_exit_free(mp);
	return r;
}

int fd_wait_until(struct fd_use *u, unsigned what, const uint32_t seq[2], int64_t deadline)
{
	struct m *mp = rt_enter_free();

	linger();
	lock_acquire(&u->f->lock);
	return finish_wait(u, mp, may_wait(mp, u, what, seq), what, deadline);
}

int fd_wait(struct fd_use *u, enum fd_way way, uint32_t seq)
{
	struct m *mp = rt_enter_free();
	int r;

	if (unlikely(u->hurried) && mp->p)
		fd_guess_in_vain(mp->p);
	linger();
	lock_acquire(&u->f->lock);
	r = may_wait(mp, u, 1u << way, (const uint32_t[]){ seq, seq });
	if (r == WAIT && u->guessed && !fd_guess_wait(mp, u->f))
		r = 0;
	if (r == WAIT && fd_deadline(u->f, way) != 0)
		r = expired(u->f, way, os_now()) ? -ETIMEDOUT : (deadline_arm_side(mp, u->f, way), WAIT);
	return finish_wait(u, mp, r, 1u << way, GORO_FOREVER);
}

/*
 * fd_wait.c - waiting for a descriptor: events, deadlines.
 *
 * Waiting
 *
 * The poller reports edges. A caller reads the number of events so far (seq), tries, and
 * if there was nothing waits for an event after seq:
 *
 *	caller                          fd_event (edge)
 *	s = seq                         lock
 *	try: EAGAIN                     seq++
 *	lock                            takes a waiter off the queue
 *	seq != s: unlock, try again     unlock
 *	onto the queue, park, unlock
 *
 * An edge before the try can be ignored, and the caller sees one after it under the lock.
 * A descriptor is watched from the first wait on, and for writing from the first wait to
 * write on: netpoll_add of a ready descriptor makes an edge as well.
 *
 * Several who wait
 *
 * An edge may stand for several connections, or for more bytes than one read takes. But
 * to wake all waiters would mostly be for nothing. So an edge wakes the first waiter, and
 * a woken goroutine that got something wakes the next when it leaves (fd_leave). A
 * goroutine that finds nothing waits again and wakes nobody: nothing was left at that
 * moment, and an edge follows it.
 *
 * Deadlines
 *
 * A way has one deadline and one timer, which wakes all waiters when it fires. The timer
 * is started when a goroutine waits, and left running when the wait is over or the
 * deadline moves to a later time. If it fires too early it is started again, if a
 * goroutine waits. So a server that sets a deadline for every request rarely starts a
 * timer. Calls check the deadline themselves when they begin.
 *
 * A deadline is one of the file that had the number when it was set. Where the number may
 * have changed hands unseen, the poller is asked (renew) before a deadline is set, and
 * before one that has passed ends a call.
 */
#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/hook.h"
#include "sync/deadline.h"
#include "io/batch.h"
#include "io/fd.h"
#include "io/uring.h"
#include "sched/deadlock.h"
#include "sched/linger.h"
#include "platform/os.h"
#include "platform/own_fd.h"
#include "base/throw.h"
#include "sched/runtime.h"

/* The tag of f's events: other than of files that had the number before. lock held. */
static uint64_t fd_tag(const struct fd *f)
{
	return (uint64_t)f->epoch << 32 | (uint32_t)f->number;
}

/* ------------------------------------------------------------------- waking */

/* Takes gp off the queues that it is in. lock held. */
static void take_off(struct fd *f, struct g *gp, int why, struct ready_list *list)
{
	check(lock_is_held(&f->lock) && gp->io.fd == f);
	for (int i = 0; i < 2; i++) {
		if (gp->io.in[i].next)
			fd_queue_remove(&f->waiters[i], &gp->io.in[i]);
	}
	gp->io.why = why;
	ready_list_put(list, gp);
}

void fd_take_off_first(struct fd *f, enum fd_way way, struct ready_list *list)
{
	struct io_link *w = f->waiters[way].first;

	if (way == FD_READ)
		f->untried = 0;
	if (w)
		take_off(f, fd_waiter(w, way), WOKEN_READY, list);
}

void fd_take_off_all(struct fd *f, enum fd_way way, int why, struct ready_list *list)
{
	struct io_link *w;

	if (way == FD_READ)
		f->untried = 0;
	while ((w = f->waiters[way].first))
		take_off(f, fd_waiter(w, way), why, list);
}

static void event(struct fd *f, enum fd_way way, struct ready_list *list)
{
	/* release: pairs with load_acquire in fd_seq */
	store_release(&f->seq[way], f->seq[way] + 1);
	fd_take_off_first(f, way, list);
}

/* An event of the poller: appends the goroutines that it wakes to list. */
static void fd_event(uint64_t tag, unsigned what, struct ready_list *list)
{
	struct fd *f = fd_at((int)(uint32_t)tag);

	lock_acquire(&f->lock);
	for (int i = 0; tag == fd_tag(f) && i < 2; i++)
		if (what & 1u << i)
			event(f, i, list);
	lock_release(&f->lock);
}

/* With hundreds of busy connections each is in no cache when its turn comes. What an
 * event needs is prefetched while earlier ones are handled. */
#define AHEAD 4

static void prefetch(const struct netpoll_events *ev, int i)
{
	struct fd *f;
	struct io_link *w;

	if (i + 2 * AHEAD < ev->n)
		__builtin_prefetch(fd_known((int)(uint32_t)ev->at[i + 2 * AHEAD].tag), 1);
	if (i + AHEAD >= ev->n || !(f = fd_known((int)(uint32_t)ev->at[i + AHEAD].tag)) ||
	    !(w = load_relaxed(&f->waiters[FD_READ].first)))
		return;
	__builtin_prefetch(w, 1);
	__builtin_prefetch(fd_waiter(w, FD_READ), 1);
}

static void events(const struct netpoll_events *ev, struct ready_list *list)
{
	for (int i = 0; i < ev->n; i++) {
		prefetch(ev, i);
		if (unlikely(ev->at[i].tag == URING_TAG))
			uring_event(list);
		else
			fd_event(ev->at[i].tag, ev->at[i].what, list);
	}
}

void fd_pass_on(struct fd *f, unsigned what)
{
	struct fd_section s = fd_lock(f);

	for (int i = 0; i < 2; i++)
		if (what & 1u << i)
			fd_take_off_first(f, i, &s.list);
	fd_unlock(&s, f);
}

/* ---------------------------------------------------------------- watching */

/* Has the poller watch f. -errno; -ENOENT: another file has the number. lock held. */
static int watch(struct fd *f, unsigned what)
{
	int r;

	check(lock_is_held(&f->lock));
	if (likely((f->watched & what) == what && f->own))
		return 0;
	what |= f->watched;
	if ((r = netpoll_start()) < 0)
		return r;
	if (f->watched) {
		r = netpoll_modify(f->number, fd_tag(f), what);
		/* The poller was made anew, and watch_again has not come to f yet. */
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

/* If it cannot be watched the number is closed, or another file's that cannot be polled;
 * or the poller is lost again. */
static void watch_one_again(struct fd *f, void *list)
{
	lock_acquire(&f->lock);
	if (f->watched) {
		int r = netpoll_add(f->number, fd_tag(f), f->watched);

		if (r < 0 && r != -EEXIST && netpoll_is_whole())
			fd_forget(f, -EBADF, list);
	}
	lock_release(&f->lock);
}

/* The poller was made anew: adds what is watched. Waiters of closed files go on list. */
static void watch_again(struct ready_list *list)
{
	fd_each(watch_one_again, list);
	uring_watch_again(list);
}

static void fill_netpoll_client(void)
{
	netpoll_client.events = events;
	netpoll_client.watch_again = watch_again;
	netpoll_client.polled = batch_polled;
}
AT_LOAD(fill_netpoll_client);

/* The poller said -EBADF: it is made anew; or the descriptor is not open. */
static int poller_failed(struct m *mp)
{
	struct ready_list list = { NULL, NULL };
	int r = netpoll_renew(&list);

	ready_list_all(mp, &list);
	return r;
}

/* Makes sure that what is known is of the file that has the number now: see "Numbers that
 * change hands" in fd.c. lock held. */
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

/* The same, after making sure that the deadline is of the file that has the number. */
static __attribute__((noinline)) bool has_expired(struct fd *f, enum fd_way way)
{
	struct fd_section s = fd_lock(f);
	bool yes;

	renew(f, &s.list);
	yes = expired(f, way, os_now());
	fd_unlock(&s, f);
	return yes;
}

int fd_check_deadline(struct fd *f, enum fd_way way)
{
	if (likely(fd_deadline(f, way) == 0) || !expired(f, way, os_now()))
		return 0;
	return has_expired(f, way) ? -ETIMEDOUT : 0;
}

static deadline_fire fire_read, fire_write;

/* Starts the way's timer. A goroutine waits, or will when the lock is released. A fire
 * that is under way waits for the lock and then looks at the deadline itself. A timer
 * that is moved to another heap looks like one that fires, but is not due. lock held. */
static void deadline_start(struct m *mp, struct timer *t, int64_t d, enum fd_way way)
{
	check(d != 0 && d != GORO_FOREVER);
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

/* Starts the way's timer, unless it fires in time as it is. lock held. */
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

/* timer_fired is called under the lock, as timers are started again under it. */
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
	ready_list_all(mp, &list);
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

static void set_deadline(struct fd_section *s, struct fd *f, enum fd_way way, int64_t d)
{
	if (!f->more)		/* no deadline was ever set, and none is to be */
		return;
	d = d == GORO_FOREVER ? 0 : d > 0 ? d : 1;
	store_relaxed(&f->more->deadline[way], d);
	if (!f->waiters[way].first)
		return;
	if (expired(f, way, os_now()))
		fd_take_off_all(f, way, -ETIMEDOUT, &s->list);
	else
		deadline_arm_side(s->mp, f, way);
}

int goro_set_deadline(int fd, int64_t read_deadline, int64_t write_deadline)
{
	struct fd_section s;
	struct fd_use u;
	int r = fd_enter(&u, fd);

	if (r < 0)
		return r;
	if ((read_deadline != GORO_FOREVER || write_deadline != GORO_FOREVER) && !fd_more(u.f)) {
		fd_leave(&u);
		return -ENOMEM;
	}
	s = fd_lock(u.f);
	if (u.f->more)
		renew(u.f, &s.list);
	set_deadline(&s, u.f, FD_READ, read_deadline);
	set_deadline(&s, u.f, FD_WRITE, write_deadline);
	fd_unlock(&s, u.f);
	fd_leave(&u);
	return 0;
}

/* ------------------------------------------------------------------ waiting */

/* What may_wait says. WAIT: park; LOST: see poller_failed; 0: try again; or -errno. */
enum { WAIT = 1, LOST = 2 };

static __attribute__((noinline)) int watch_failed(struct m *mp, struct fd *f, int r)
{
	struct ready_list list = { NULL, NULL };

	/* (The poller's own number gets -EINVAL, too, for good.) */
	if (r == -EBADF || (r == -EINVAL && !own_fd_is(f->number, OWN_FD_POLLER)))
		return LOST;
	if (r == -ENOENT) {
		/* The waiters wait for the old file. */
		fd_forget(f, -EBADF, &list);
		ready_list_all(mp, &list);
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
	check(lock_is_held(&f->lock) && what != 0);
	gp->io = (struct io_wait){ .fd = f };
	for (int i = 0; i < 2; i++)
		if (what & 1u << i)
			fd_queue_put(&f->waiters[i], &gp->io.in[i]);
}

void fd_count_wait(struct m *mp, bool over)
{
	if (mp->p)
		count_up(over ? &mp->p->count.io_returns : &mp->p->count.io_parks, 1);
	else
		fetch_add_seqcst(over ? &sched.plain.io_returns : &sched.plain.io_parks, 1);
}

/* The deadline of fd_wait_until. The goroutine's io_wait stays until the timer stops. */
static void fire_own(struct m *mp, struct timer *t, int64_t now)
{
	struct ready_list list = { NULL, NULL };
	struct g *gp = deadline_g(t);
	struct fd *f = gp->io.fd;

	(void)now;
	lock_acquire(&f->lock);
	if (gp->io.in[FD_READ].next || gp->io.in[FD_WRITE].next)
		take_off(f, gp, -ETIMEDOUT, &list);
	lock_release(&f->lock);
	timer_fired(t);
	ready_list_all(mp, &list);
}

/* Releases the lock, parks if r is WAIT, and returns what fd_wait does. */
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
	if (u->untried) {
		gp->io.buf = u->untried->iov_base;
		gp->io.bytes = u->untried->iov_len;
		gp->io.flags = MSG_DONTWAIT;
	}
	fd_count_wait(mp, false);
	mp = park_until(mp, &f->lock, WAIT_IO, own, fire_own);
	fd_count_wait(mp, true);
	r = gp->io.why;
	u->done = r == WOKEN_DONE;
	if (u->done)
		u->result = gp->io.result;
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

	linger();
	lock_acquire(&u->f->lock);
	r = may_wait(mp, u, 1u << way, (const uint32_t[]){ seq, seq });
	if (r == WAIT && u->untried && !batch_leave_untried(mp, u->f))
		r = 0;
	if (r == WAIT && fd_deadline(u->f, way) != 0)
		r = expired(u->f, way, os_now()) ? -ETIMEDOUT : (deadline_arm_side(mp, u->f, way), WAIT);
	return finish_wait(u, mp, r, 1u << way, GORO_FOREVER);
}

/* ---------------------------------------------------------------- deadlock */

bool fd_is_awaited(void)
{
	uint64_t waiting = load_seqcst(&sched.plain.io_parks) - load_seqcst(&sched.plain.io_returns);

	for (int i = 0, n = load_acquire(&sched.all_p_n); i < n; i++) {
		const struct p_counts *c = &p_at(i)->count;

		waiting += load_relaxed(&c->io_parks) - load_relaxed(&c->io_returns);
	}
	return waiting != 0;
}

DEADLOCK_WITNESS(fd, .expects = fd_is_awaited);

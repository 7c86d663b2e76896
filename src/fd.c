/*
 * fd.c - descriptors: who uses them, who waits for them, until when, and how they
 * are closed.
 *
 * A descriptor is known by its number, and what is known of a number lies in a
 * table that grows and never shrinks: finding it is two loads, and nobody ever
 * looks at freed memory.
 *
 * The word
 *
 * Everybody in a call on a descriptor is counted in its word, so that close(2) is
 * called after the last has left, and the number, which the kernel may give away
 * again at once, is in nobody's hands then:
 *
 *	open            refs users
 *	CLOSED          goro_close was called; users are leaving, those who wait are
 *	                woken with -ECANCELED, who comes now gets -EBADF
 *	CLOSING         the last has left and close(2) is being called; gen is one more
 *	open            the next file with this number
 *
 * During CLOSING the number may belong to another file already, and who comes may
 * mean that one: it waits until close(2) has returned, and then uses whatever there
 * is, as if it had come later. A call of ours that was given the number by the
 * kernel (fd_made) knows that it is free and ends CLOSING itself; gen, in the same
 * word, keeps the one who closes from ending the next CLOSING instead of its own.
 *
 * goro_close waits for the users to leave, so that the descriptor is closed when it
 * returns; but not for those of a file or of a device that blocks, who may take
 * long: then the last to leave closes it. Either way the users do not wait for
 * anybody.
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
 * Numbers that change hands
 *
 * A program may close a descriptor with close(2) although it was used here, and get
 * the number again for another file, which starts with what was known of the old
 * one. For what our own calls made (own) it is enough that the calls that make
 * descriptors start afresh (fd_made): who closes those with close(2) and opens the
 * next with a call of libc's is asked not to, by goro.h. For what the program made
 * itself, everything that could hang is looked at again:
 *	- before a wait the registration is renewed (netpoll_modify, 0.2 us), which
 *	  fails when another file has the number, since the poller knows files;
 *	- a file taken for one that never waits is looked at again at each call;
 *	- a socket that is none any more says so (-ENOTSOCK), and a file that is asked
 *	  for RWF_NOWAIT and is of another kind either works or says so.
 * Then gen goes up, so that events of the old file are told from the new one's, and
 * those who still wait for the old one get -EBADF. (Where the old file is still open
 * under another number the kernel goes on to report its events; their gen is old.)
 *
 * Rejected: asking fstat for the identity at every call (0.2 us, and inode numbers
 * are used again, too); a table by file instead of number (there is no name for an
 * open file).
 */
#include "fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "deadline.h"
#include "file.h"
#include "linger.h"
#include "mem.h"
#include "os.h"
#include "runtime.h"
#include "syscall_raw.h"
#include "waitq.h"

/* ---------------------------------------------------------------- the table */

#define CHUNK_FDS 256
#define CHUNKS    65536		/* 16.7 million descriptors; the kernel's default limit
				 * is one million */

static struct fd *chunks[CHUNKS];
static struct lock chunk_lock = LOCK_INIT(RANK_FD);

static struct fd *chunk_make(unsigned i)
{
	struct m *mp = rt_enter();
	struct fd *c;

	lock_acquire(&chunk_lock);
	c = chunks[i];
	if (!c && (c = mem_alloc(CHUNK_FDS * sizeof *c))) {
		for (int k = 0; k < CHUNK_FDS; k++) {
			c[k].number = (int)i * CHUNK_FDS + k;
			c[k].lock = (struct lock)LOCK_INIT(RANK_FD);
		}
		/* release: pairs with load_acquire in fd_at */
		store_release(&chunks[i], c);
	}
	lock_release(&chunk_lock);
	rt_exit(mp);
	return c;
}

/* NULL: no memory, or not a number for a descriptor. */
static inline struct fd *fd_at(int fd)
{
	unsigned i = (unsigned)fd / CHUNK_FDS;
	struct fd *c;

	if (unlikely(i >= CHUNKS))
		return NULL;
	/* acquire: pairs with store_release in chunk_make */
	c = load_acquire(&chunks[i]);
	if (unlikely(!c) && !(c = chunk_make(i)))
		return NULL;
	return c + (unsigned)fd % CHUNK_FDS;
}

/* ----------------------------------------------------------------- the word */

#define REF       UINT64_C(1)
#define REFS      UINT64_C(0xffffff)
#define F_CLOSED  (UINT64_C(1) << 24)
#define F_CLOSING (UINT64_C(1) << 25)
#define F_WAITED  (UINT64_C(1) << 26)	/* with CLOSED: who closes waits, and is counted */
#define FLAGS     (F_CLOSED | F_CLOSING | F_WAITED)
#define GEN       (UINT64_C(1) << 32)

static inline uint32_t gen_of(uint64_t word)
{
	return (uint32_t)(word >> 32);
}

/* lock held. What tells its events from those of files that had the number before. */
static inline uint64_t fd_tag(const struct fd *f)
{
	return (uint64_t)f->epoch << 32 | (uint32_t)f->number;
}

/* ------------------------------------------------------------------- waking */

/* Why a waiter was taken off its queue. */
enum { WOKEN_READY = 0 };

/* lock held. Off both queues, if it is in both. */
static void take_off(struct fd *f, struct g *gp, int why, struct ready_list *list)
{
	for (int i = 0; i < 2; i++) {
		if (!gp->waiters[i].queued)
			continue;
		waitq_remove(&f->side[i].waiters, &gp->waiters[i]);
		gp->waiters[i].queued = false;
	}
	gp->waiters[0].index = why;
	gp->link = NULL;
	if (list->head)
		list->tail->link = gp;
	else
		list->head = gp;
	list->tail = gp;
}

static void take_off_first(struct fd *f, enum fd_way way, struct ready_list *list)
{
	struct waiter *w = f->side[way].waiters.first;

	if (w)
		take_off(f, w->gp, WOKEN_READY, list);
}

static void take_off_all(struct fd *f, enum fd_way way, int why, struct ready_list *list)
{
	struct waiter *w;

	while ((w = f->side[way].waiters.first))
		take_off(f, w->gp, why, list);
}

static void ready_all(struct m *mp, struct ready_list *list)
{
	struct g *next;

	for (struct g *gp = list->head; gp; gp = next) {
		next = gp->link;
		gp->link = NULL;
		g_ready_in_order(mp, gp);
	}
}

static void event(struct fd_side *s)
{
	/* release: pairs with load_acquire in fd_seq */
	store_release(&s->seq, s->seq + 1);
}

void fd_event(uint64_t tag, unsigned what, struct ready_list *list)
{
	struct fd *f = fd_at((int)(uint32_t)tag);

	lock_acquire(&f->lock);
	if (tag == fd_tag(f)) {
		if (what & NETPOLL_READ) {
			event(&f->side[FD_READ]);
			take_off_first(f, FD_READ, list);
		}
		if (what & NETPOLL_WRITE) {
			event(&f->side[FD_WRITE]);
			take_off_first(f, FD_WRITE, list);
		}
	}
	lock_release(&f->lock);
}

/* ---------------------------------------------------------------- forgetting */

/* lock held. What was known was of another file. Who waits for that is woken with
 * why; the word is the caller's. */
static void forget(struct fd *f, int why, struct ready_list *list)
{
	store_relaxed(&f->kind, FD_UNKNOWN);
	store_relaxed(&f->own, 0);
	f->watched = 0;
	f->epoch++;
	for (int i = 0; i < 2; i++) {
		store_relaxed(&f->side[i].deadline, 0);
		timer_try_stop(&f->side[i].timer);
		take_off_all(f, i, why, list);
	}
}

/* (Were somebody closing it, and were it closed by close(2) meanwhile, there would be
 * nothing left to close for that one.) */
void fd_made(int fd, enum fd_kind kind)
{
	struct ready_list list = { NULL, NULL };
	struct fd *f = fd_at(fd);
	struct g *closer;
	struct m *mp;
	uint64_t word;

	if (!f)
		return;
	mp = rt_enter();
	lock_acquire(&f->lock);
	forget(f, -EBADF, &list);
	store_relaxed(&f->kind, kind);
	store_relaxed(&f->own, 1);
	word = load_relaxed(&f->word);
	while (!cas_acqrel(&f->word, &word, (word & ~FLAGS) + GEN))
		;
	closer = f->closer;
	f->closer = NULL;
	lock_release(&f->lock);
	ready_all(mp, &list);
	if (closer)
		g_ready_in_order(mp, closer);
	rt_exit(mp);
}

/* ------------------------------------------------------------- who uses it */

static int finish_close(struct fd *f, bool counted);

/* Who was woken wakes the next. */
static __attribute__((noinline)) void pass_on(struct fd *f, unsigned what)
{
	struct ready_list list = { NULL, NULL };
	struct m *mp = rt_enter();

	lock_acquire(&f->lock);
	for (int i = 0; i < 2; i++)
		if (what & 1u << i)
			take_off_first(f, i, &list);
	lock_release(&f->lock);
	ready_all(mp, &list);
	rt_exit(mp);
}

/* All users have left but the one who closes. */
static void wake_closer(struct fd *f)
{
	struct m *mp = rt_enter();
	struct g *gp;

	lock_acquire(&f->lock);
	gp = f->closer;
	f->closer = NULL;
	lock_release(&f->lock);
	if (gp)
		g_ready_in_order(mp, gp);
	rt_exit(mp);
}

/* What close(2) said, if it fell to us to call it, else 0. */
static int leave(struct fd *f)
{
	/* release: we are done with it; pairs with cas_acqrel in finish_close */
	uint64_t word = fetch_add_acqrel(&f->word, -REF) - REF;

	if (likely(!(word & F_CLOSED)))
		return 0;
	if ((word & REFS) == 0)
		return finish_close(f, false);
	if ((word & REFS) == 1 && word & F_WAITED)
		wake_closer(f);
	return 0;
}

void fd_leave(struct fd_use *u)
{
	struct fd *f = u->f;

	if (u->woken && (!waitq_empty(&f->side[FD_READ].waiters) ||
	                 !waitq_empty(&f->side[FD_WRITE].waiters)))
		pass_on(f, u->woken);
	leave(f);
}

static enum fd_kind kind_of_mode(mode_t mode)
{
	if (S_ISSOCK(mode))
		return FD_SOCKET;
	if (S_ISREG(mode) || S_ISDIR(mode) || S_ISBLK(mode))
		return FD_FILE;
	return FD_NOWAIT;
}

/* The kind of file that has the number now, or -EBADF. */
static int kind_now(int fd)
{
	struct stat st;
	int saved = errno, r;

	r = fstat(fd, &st) == 0 ? (int)kind_of_mode(st.st_mode) : -errno;
	errno = saved;
	return r;
}

int fd_look_again(struct fd_use *u)
{
	struct fd *f = u->f;
	int kind = kind_now(f->number);

	if (kind >= 0)
		store_relaxed(&f->kind, (uint8_t)kind);
	return kind < 0 ? kind : 0;
}

static struct m *wait_closed(struct m *mp, struct fd *f);

/* It is being closed. 0: it is the next file's turn; or -EBADF. */
static int closed_or_next(struct fd *f)
{
	struct m *mp = rt_enter_free();
	uint64_t word;

	lock_acquire(&f->lock);
	word = load_relaxed(&f->word);
	if (word & F_CLOSING)
		mp = wait_closed(mp, f);
	else
		lock_release(&f->lock);
	rt_exit_free(mp);
	return word & F_CLOSED ? -EBADF : 0;
}

/* A file that our calls did not make: is it still one that never waits? */
static int check_known(struct fd_use *u)
{
	struct fd *f = u->f;
	uint8_t kind = load_relaxed(&f->kind);

	if (kind == FD_UNKNOWN || (kind == FD_FILE && !load_relaxed(&f->own)))
		return fd_look_again(u);
	return 0;
}

int fd_enter(struct fd_use *u, int fd)
{
	struct fd *f = fd_at(fd);
	uint64_t word;
	int r;

	*u = (struct fd_use){ .f = f };
	if (unlikely(!f))
		return fd < 0 ? -EBADF : -ENOMEM;
	for (;;) {
		/* acquire: what is known; pairs with cas_acqrel in fd_made */
		word = fetch_add_acqrel(&f->word, REF);
		if (likely(!(word & FLAGS)))
			break;
		leave(f);
		if ((r = closed_or_next(f)) < 0)
			return r;
	}
	u->gen = gen_of(word);
	if (unlikely(load_relaxed(&f->kind) == FD_UNKNOWN || load_relaxed(&f->kind) == FD_FILE) &&
	    (r = check_known(u)) < 0) {
		fd_leave(u);
		return r;
	}
	return 0;
}

/* ---------------------------------------------------------------- deadlines */

static bool expired(const struct fd_side *s, int64_t now)
{
	int64_t d = load_relaxed(&s->deadline);

	return d != 0 && d <= now;
}

int fd_check_deadline(const struct fd *f, enum fd_way way)
{
	const struct fd_side *s = &f->side[way];

	if (likely(load_relaxed(&s->deadline) == 0))
		return 0;
	return expired(s, os_now()) ? -ETIMEDOUT : 0;
}

static deadline_fire fire_read, fire_write;

/* lock held: somebody waits, or will when the lock is released. A fire that is under
 * way comes for the lock and sees for itself; it is told from a move to another heap
 * by being due. */
static void deadline_start(struct m *mp, struct fd_side *s, enum fd_way way)
{
	int64_t d = s->deadline;

	if (d == 0)
		return;
	while (!timer_try_stop(&s->timer)) {
		if (!timer_is_firing(&s->timer))
			break;
		if (s->timer.when <= os_now())
			return;
		cpu_relax();
	}
	s->timer.fire = way == FD_READ ? fire_read : fire_write;
	timer_start(mp, &s->timer, d);
}

/* lock held. .. unless the timer wakes in time as it is. */
static void deadline_arm_side(struct m *mp, struct fd_side *s, enum fd_way way)
{
	if (s->deadline && !(load_acquire(&s->timer.heap) && s->timer.when <= s->deadline))
		deadline_start(mp, s, way);
}

/* The fire is over while the lock is held, as whoever starts the timer again holds
 * it too. */
static void fire_side(struct m *mp, struct fd *f, enum fd_way way, int64_t now)
{
	struct ready_list list = { NULL, NULL };
	struct fd_side *s = &f->side[way];

	lock_acquire(&f->lock);
	timer_fired(&s->timer);
	if (expired(s, now))
		take_off_all(f, way, -ETIMEDOUT, &list);
	else if (s->waiters.first)
		deadline_arm_side(mp, s, way);
	lock_release(&f->lock);
	ready_all(mp, &list);
}

static void fire_read(struct m *mp, struct timer *t, int64_t now)
{
	fire_side(mp, (struct fd *)((char *)t - offsetof(struct fd, side[FD_READ].timer)),
	          FD_READ, now);
}

static void fire_write(struct m *mp, struct timer *t, int64_t now)
{
	fire_side(mp, (struct fd *)((char *)t - offsetof(struct fd, side[FD_WRITE].timer)),
	          FD_WRITE, now);
}

static void set_deadline(struct m *mp, struct fd *f, enum fd_way way, int64_t d,
                         struct ready_list *list)
{
	struct fd_side *s = &f->side[way];

	d = d == GORO_FOREVER ? 0 : d > 0 ? d : 1;
	store_relaxed(&s->deadline, d);
	if (!s->waiters.first)
		return;
	if (expired(s, os_now()))
		take_off_all(f, way, -ETIMEDOUT, list);
	else
		deadline_arm_side(mp, s, way);
}

int goro_set_deadline(int fd, int64_t read_deadline, int64_t write_deadline)
{
	struct ready_list list = { NULL, NULL };
	struct fd_use u;
	struct m *mp;
	int r = fd_enter(&u, fd);

	if (r < 0)
		return r;
	mp = rt_enter();
	lock_acquire(&u.f->lock);
	set_deadline(mp, u.f, FD_READ, read_deadline, &list);
	set_deadline(mp, u.f, FD_WRITE, write_deadline, &list);
	lock_release(&u.f->lock);
	ready_all(mp, &list);
	rt_exit(mp);
	fd_leave(&u);
	return 0;
}

/* ------------------------------------------------------------------ waiting */

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
	} else {
		r = netpoll_add(f->number, fd_tag(f), what);
		if (r == -EEXIST)
			r = netpoll_modify(f->number, fd_tag(f), what);
	}
	if (r == 0)
		f->watched = (uint8_t)what;
	return r;
}

/* lock held. WAIT: it is to wait; 0: to try again; or -errno. */
enum { WAIT = 1 };

static int may_wait(struct m *mp, const struct fd_use *u, unsigned what, const uint32_t seq[2])
{
	struct ready_list list = { NULL, NULL };
	struct fd *f = u->f;
	uint64_t word = load_relaxed(&f->word);
	int r;

	if (gen_of(word) != u->gen)
		return -EBADF;
	if (word & F_CLOSED)
		return -ECANCELED;
	r = watch(f, what);
	if (r == -ENOENT) {
		/* Who waits has renewed the registration before: for the old file. */
		forget(f, -EBADF, &list);
		ready_all(mp, &list);
		return 0;
	}
	if (r == -EPERM)
		store_relaxed(&f->kind, FD_FILE);
	if (r < 0)
		return r == -EPERM ? 0 : r;
	for (int i = 0; i < 2; i++)
		if (what & 1u << i && f->side[i].seq != seq[i])
			return 0;
	return WAIT;
}

/* lock held. */
static void enqueue(struct fd *f, struct g *gp, unsigned what)
{
	for (int i = 0; i < 2; i++) {
		struct waiter *w = &gp->waiters[i];

		w->key = f;
		w->queued = what & 1u << i;
		if (!w->queued)
			continue;
		w->gp = gp;
		waitq_put(&f->side[i].waiters, w);
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
	ready_all(mp, &list);
}

/* Past the lock: parks, if r says so, and says why it goes on. */
static int finish_wait(struct fd_use *u, struct m *mp, int r, unsigned what, int64_t own)
{
	struct fd *f = u->f;
	struct g *gp = mp->curg;

	if (unlikely(r != WAIT)) {
		lock_release(&f->lock);
		rt_exit_free(mp);
		return r;
	}
	enqueue(f, gp, what);
	count_wait(mp, false);
	mp = park_until(mp, &f->lock, WAIT_IO, own, fire_own);
	count_wait(mp, true);
	r = gp->waiters[0].index;
	if (r == WOKEN_READY)
		u->woken |= what;
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
	struct fd_side *s = &u->f->side[way];
	int r;

	linger();
	lock_acquire(&u->f->lock);
	r = may_wait(mp, u, 1u << way, (const uint32_t[]){ seq, seq });
	if (r == WAIT && s->deadline)
		r = expired(s, os_now()) ? -ETIMEDOUT : (deadline_arm_side(mp, s, way), WAIT);
	return finish_wait(u, mp, r, 1u << way, GORO_FOREVER);
}

/* ------------------------------------------------------------------ closing */

/* lock held; releases it. Until close(2) has returned. */
static struct m *wait_closed(struct m *mp, struct fd *f)
{
	enqueue(f, mp->curg, NETPOLL_READ);
	return park(mp, park_unlock, &f->lock, WAIT_IO);
}

/* close(2) has returned: who came meanwhile may go on. */
static void closing_over(struct fd *f, uint32_t gen)
{
	struct ready_list list = { NULL, NULL };
	struct m *mp = rt_enter();
	uint64_t word;

	lock_acquire(&f->lock);
	word = load_relaxed(&f->word);
	while (gen_of(word) == gen && word & F_CLOSING)
		if (cas_acqrel(&f->word, &word, word & ~F_CLOSING)) {
			take_off_all(f, FD_READ, WOKEN_READY, &list);
			break;
		}
	lock_release(&f->lock);
	ready_all(mp, &list);
	rt_exit(mp);
}

/* Nobody uses it, but the caller if it is counted. Everything is forgotten before the
 * number is free. */
static int finish_close(struct fd *f, bool counted)
{
	struct ready_list list = { NULL, NULL };
	struct m *mp = rt_enter();
	uint64_t word;
	int r;

	lock_acquire(&f->lock);
	word = load_relaxed(&f->word);
	for (;;) {
		uint64_t to = (word & ~FLAGS) + GEN;

		if (!(word & F_CLOSED)) {	/* the kernel gave the number away */
			lock_release(&f->lock);
			rt_exit(mp);
			if (counted)
				leave(f);
			return -EBADF;
		}
		if (counted)
			to -= REF;
		/* acquire: what its users did; pairs with fd_leave */
		if (cas_acqrel(&f->word, &word, to | F_CLOSING)) {
			word = to;
			break;
		}
	}
	if (f->watched)
		netpoll_remove(f->number);
	forget(f, -EBADF, &list);
	lock_release(&f->lock);
	ready_all(mp, &list);
	rt_exit(mp);
	r = (int)syscall_raw(SYS_close, f->number, 0, 0, 0, 0, 0);
	linger();
	closing_over(f, gen_of(word));
	return r == -EINTR ? 0 : r;	/* Linux has closed it by then */
}

/* The users are to leave soon, so that it is worth waiting for them. */
static bool users_leave_soon(const struct fd *f)
{
	uint8_t kind = load_relaxed(&f->kind);

	return kind == FD_SOCKET || kind == FD_NOWAIT || kind == FD_NONBLOCK;
}

/* Counted itself, with CLOSED and WAITED set: until it is the only one. */
static void wait_for_users(struct fd *f)
{
	struct m *mp = rt_enter_free();

	lock_acquire(&f->lock);
	if ((load_relaxed(&f->word) & REFS) > 1 && load_relaxed(&f->word) & F_CLOSED) {
		f->closer = mp->curg;
		mp = park(mp, park_unlock, &f->lock, WAIT_IO);
	} else {
		lock_release(&f->lock);
	}
	rt_exit_free(mp);
}

/* Sets CLOSED, for who is in it from then on; false: somebody else has. */
static bool mark_closed(struct fd *f, uint64_t flags)
{
	struct ready_list list = { NULL, NULL };
	struct m *mp = rt_enter();
	uint64_t word;
	bool done = false;

	lock_acquire(&f->lock);
	word = load_relaxed(&f->word);
	while (!(word & FLAGS) && !(done = cas_acqrel(&f->word, &word, word | F_CLOSED | flags)))
		;
	if (done)
		for (int i = 0; i < 2; i++)
			take_off_all(f, i, -ECANCELED, &list);
	lock_release(&f->lock);
	ready_all(mp, &list);
	rt_exit(mp);
	return done;
}

/* A number that is not open is found out by close(2). */
int goro_close(int fd)
{
	struct fd_use u;
	bool wait;
	int r = fd_enter(&u, fd);

	if (r < 0)
		return r;
	wait = users_leave_soon(u.f);
	if (!mark_closed(u.f, wait ? F_WAITED : 0)) {
		fd_leave(&u);
		return -EBADF;
	}
	if (!wait) {
		file_cancel(u.f);
		return leave(u.f);
	}
	wait_for_users(u.f);
	return finish_close(u.f, true);
}

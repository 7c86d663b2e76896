/*
 * fd.c - descriptors: who uses them, what they are, and how they are closed.
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
 * returns; but not for those of a file, nor while one is in a call that blocks its
 * thread, who may take long: then the last to leave closes it. Either way the users do not wait for
 * anybody.
 *
 * Numbers that change hands
 *
 * A program may close a descriptor with close(2) although it was used here, and get
 * the number again for another file, which starts with what was known of the old
 * one. For what our own calls made (own) it is enough that the calls that make
 * descriptors start afresh (fd_made): who closes those with close(2) and opens the
 * next with a call of libc's is asked not to, by goro.h. For what the program made
 * itself, everything that could hang is looked at again:
 *	- before a wait, and where a deadline is set or has passed, the registration is
 *	  renewed (netpoll_modify, 0.2 us), which fails when another file has the number,
 *	  since the poller knows files;
 *	- a file taken for one that never waits is looked at again at each call;
 *	- a socket that is none any more says so (-ENOTSOCK), and a file that is asked
 *	  for RWF_NOWAIT and is of another kind either works or says so.
 * Then everything is forgotten (fd_forget) and those who still wait for the old file
 * get -EBADF. Events of the old file are told from the new one's by their epoch: where
 * the old one is still open under another number the kernel goes on to report them.
 *
 * Who waits, and until when, is in fd_wait.c.
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

#include "file.h"
#include "linger.h"
#include "mem.h"
#include "runtime.h"
#include "syscall_raw.h"

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

struct fd *fd_at(int fd)
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

struct fd *fd_known(int fd)
{
	unsigned i = (unsigned)fd / CHUNK_FDS;
	struct fd *c = likely(i < CHUNKS) ? load_acquire(&chunks[i]) : NULL;

	return c ? c + (unsigned)fd % CHUNK_FDS : NULL;
}

void fd_each(void (*fn)(struct fd *f, void *arg), void *arg)
{
	for (unsigned i = 0; i < CHUNKS; i++) {
		/* acquire: pairs with store_release in chunk_make */
		struct fd *c = load_acquire(&chunks[i]);

		for (int k = 0; c && k < CHUNK_FDS; k++)
			fn(c + k, arg);
	}
}

void fd_prefetch(int fd)
{
	__builtin_prefetch(fd_known(fd), 1);
}

void fd_prefetch_waiter(int fd)
{
	struct fd *f = fd_known(fd);
	struct waiter *w = f ? load_relaxed(&f->waiters[FD_READ].first) : NULL;

	if (!w)
		return;
	__builtin_prefetch(w, 1);
	__builtin_prefetch((char *)w - offsetof(struct g, waiters[FD_READ]), 1);
}

struct fd_more *fd_more(struct fd *f)
{
	/* acquire: pairs with store_release below */
	struct fd_more *more = load_acquire(&f->more);
	struct m *mp;

	if (likely(more))
		return more;
	mp = rt_enter();
	lock_acquire(&f->lock);
	more = f->more;
	if (!more && (more = mem_alloc(sizeof *more))) {
		more->f = f;
		/* release: pairs with load_acquire above, in fd_deadline, users_leave_soon */
		store_release(&f->more, more);
	}
	lock_release(&f->lock);
	rt_exit(mp);
	return more;
}

/* ---------------------------------------------------------------- forgetting */

void fd_forget(struct fd *f, int why, struct ready_list *list)
{
	store_relaxed(&f->kind, FD_UNKNOWN);
	store_relaxed(&f->own, 0);
	f->watched = 0;
	f->epoch++;
	if (f->more)
		store_relaxed(&f->more->no_nowait, 0);
	for (int i = 0; i < 2; i++) {
		if (f->more) {
			store_relaxed(&f->more->deadline[i], 0);
			timer_try_stop(&f->more->timer[i]);
		}
		fd_take_off_all(f, i, why, list);
	}
}

/* (Were somebody closing it, and were it closed by close(2) meanwhile, there would be
 * nothing left to close for that one.) */
void fd_made(int fd, enum fd_kind kind)
{
	struct ready_list list = { NULL, NULL };
	struct fd *f = fd_at(fd);
	struct m *mp;
	uint64_t word;

	if (!f)
		return;
	mp = rt_enter();
	lock_acquire(&f->lock);
	fd_forget(f, -EBADF, &list);
	store_relaxed(&f->kind, kind);
	store_relaxed(&f->own, 1);
	word = load_relaxed(&f->word);
	while (!cas_acqrel(&f->word, &word, (word & ~FLAGS) + GEN))
		;
	lock_release(&f->lock);
	fd_ready_all(mp, &list);
	rt_exit(mp);
}

/* ------------------------------------------------------------- who uses it */

static int finish_close(struct fd *f, bool counted);

/* All users have left but the one who closes. */
static void wake_closer(struct fd *f)
{
	struct ready_list list = { NULL, NULL };
	struct m *mp = rt_enter();

	lock_acquire(&f->lock);
	fd_take_off_all(f, FD_WRITE, WOKEN_READY, &list);
	lock_release(&f->lock);
	fd_ready_all(mp, &list);
	rt_exit(mp);
}

/* What close(2) said, if it fell to us to call it (see finish_close), else 0. */
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

	if (u->woken && (!fd_queue_empty(&f->waiters[FD_READ]) ||
	                 !fd_queue_empty(&f->waiters[FD_WRITE])))
		fd_pass_on(f, u->woken);
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
	long r = syscall_raw(SYS_fstat, fd, (long)&st, 0, 0, 0, 0);

	return r < 0 ? (int)r : (int)kind_of_mode(st.st_mode);
}

int fd_look_again(struct fd_use *u)
{
	struct fd *f = u->f;
	int kind = kind_now(f->number);
	struct m *mp;

	if (kind < 0)
		return kind;
	mp = rt_enter();
	lock_acquire(&f->lock);
	if (gen_of(load_relaxed(&f->word)) == u->gen)	/* else somebody knows better */
		store_relaxed(&f->kind, (uint8_t)kind);
	lock_release(&f->lock);
	rt_exit(mp);
	return 0;
}

bool fd_is_closed(const struct fd *f)
{
	return load_relaxed(&f->word) & F_CLOSED;
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
		return (unsigned)fd / CHUNK_FDS >= CHUNKS ? -EBADF : -ENOMEM;
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

/* ------------------------------------------------------------------ closing */

/* lock held; releases it. Until close(2) has returned. */
static struct m *wait_closed(struct m *mp, struct fd *f)
{
	fd_enqueue(f, mp->curg, NETPOLL_READ);
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
			fd_take_off_all(f, FD_READ, WOKEN_READY, &list);
			break;
		}
	lock_release(&f->lock);
	fd_ready_all(mp, &list);
	rt_exit(mp);
}

/* Nobody uses it, but the caller if it is counted. Everything is forgotten before the
 * number is free. -EALREADY: somebody else is about to call close(2), who came when the last
 * had left, was sent away, and so was the last, too. */
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

		if (!(word & F_CLOSED)) {
			lock_release(&f->lock);
			rt_exit(mp);
			if (!counted)
				return -EALREADY;
			leave(f);
			return -EBADF;	/* the kernel gave the number away */
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
	fd_forget(f, -EBADF, &list);
	lock_release(&f->lock);
	fd_ready_all(mp, &list);
	rt_exit(mp);
	r = (int)syscall_raw(SYS_close, f->number, 0, 0, 0, 0, 0);
	linger();
	closing_over(f, gen_of(word));
	return r == -EINTR ? 0 : r;	/* Linux has closed it by then */
}

/* The users are to leave soon, so that it is worth waiting for them. */
static bool users_leave_soon(const struct fd *f)
{
	struct fd_more *more = load_acquire(&f->more);

	return load_relaxed(&f->kind) != FD_FILE && (!more || load_seqcst(&more->blocked) == 0);
}

/* Counted itself, with CLOSED and WAITED set: until it is the only one. Nobody else is
 * in the queue: who waited there was woken, and who comes is sent away. */
static void wait_for_users(struct fd *f)
{
	struct m *mp = rt_enter_free();

	lock_acquire(&f->lock);
	while ((load_relaxed(&f->word) & REFS) > 1 && load_relaxed(&f->word) & F_CLOSED) {
		fd_enqueue(f, mp->curg, NETPOLL_WRITE);
		mp = park(mp, park_unlock, &f->lock, WAIT_IO);
		lock_acquire(&f->lock);
	}
	lock_release(&f->lock);
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
	for (int i = 0; done && i < 2; i++)
		fd_take_off_all(f, i, -ECANCELED, &list);
	lock_release(&f->lock);
	fd_ready_all(mp, &list);
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
		r = leave(u.f);
		if (r == -EALREADY) {
			closed_or_next(u.f);
			r = 0;
		}
		return r;
	}
	wait_for_users(u.f);
	return finish_close(u.f, true);
}

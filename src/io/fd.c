/*
 * fd.c - descriptors: who uses them, what they are, and how they are closed.
 *
 * A descriptor is known by its number. struct fd lies in a table that grows and never
 * shrinks, so finding it takes two loads, and no thread ever reads freed memory.
 *
 * The word
 *
 * Every call on a descriptor, a user, is counted in its word. So close(2) is called after
 * the last user has left: no user holds a number that the kernel gives away again:
 *
 *	open            refs users
 *	CLOSED          goro_close was called; users are leaving, waiters are woken with
 *	                -ECANCELED, new calls get -EBADF
 *	CLOSING         the last user has left, close(2) is called; gen is one more
 *	open            the next file with this number
 *
 * During CLOSING the number may belong to another file already, and a new call may mean
 * that one. It waits until close(2) has returned, and then uses the file of that moment,
 * as if it had come later. A call of goro's that got the number from the kernel (fd_made)
 * knows that it is free and ends CLOSING itself. gen, in the same word, keeps the closer
 * from ending the next CLOSING instead of its own.
 *
 * goro_close waits for the users to leave, so that the descriptor is closed when it
 * returns. There are two exceptions, where users may take long: files, and users in a
 * call that blocks their thread. Then the last user to leave calls close(2). Users never
 * wait for the closer.
 *
 * Numbers that change hands
 *
 * A program may close a descriptor with close(2) although goro used it, and get the
 * number again for another file, of which goro then believes what it knew of the old one.
 * For descriptors that goro's calls made (own) it is enough that calls which make
 * descriptors start afresh (fd_made): goro.h asks programs not to close these with
 * close(2) and open the next one with libc. For descriptors that the program made,
 * everything that could hang is checked again:
 *
 * - Before a wait, before a deadline is set and when one has passed, the registration
 *   with the poller is renewed (netpoll_modify). That fails if another file has the
 *   number, since the poller knows files.
 * - A file that never waits, by what is known, is looked at again at each call.
 * - A socket that is none any more says -ENOTSOCK. RWF_NOWAIT on a file of another kind
 *   either works or fails.
 *
 * Then everything is forgotten (fd_forget) and waiters for the old file get -EBADF. If
 * the old file is still open under another number the kernel goes on reporting its
 * events; the epoch in their tag tells them from the new file's.
 *
 * Waiting and deadlines are in fd_wait.c.
 *
 * Rejected: fstat at every call to ask for the identity (inode numbers are used again,
 * too); a table by file instead of number (an open file has no name).
 */
#include "io/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "io/file.h"
#include "sched/linger.h"
#include "base/mem.h"
#include "sched/runtime.h"
#include "platform/sys.h"
#include "base/throw.h"

/* ---------------------------------------------------------------- the table */

#define CHUNK_FDS 256
#define CHUNKS    65536		/* 16.7 million descriptors */

static struct fd *chunks[CHUNKS];
static struct lock chunk_lock = LOCK_INIT(RANK_FD);

static bool chunk_make(unsigned i)
{
	struct m *mp = rt_enter_lock(&chunk_lock);
	struct fd *c = chunks[i];

	if (!c && (c = mem_alloc(CHUNK_FDS * sizeof *c))) {
		for (int k = 0; k < CHUNK_FDS; k++) {
			c[k].number = (int)i * CHUNK_FDS + k;
			c[k].lock = (struct lock)LOCK_INIT(RANK_FD);
		}
		/* release: pairs with load_acquire in fd_at */
		store_release(&chunks[i], c);
	}
	rt_unlock_exit(mp, &chunk_lock);
	return c != NULL;
}

struct fd *fd_known(int fd)
{
	unsigned i = (unsigned)fd / CHUNK_FDS;
	/* acquire: pairs with store_release in chunk_make */
	struct fd *c = likely(i < CHUNKS) ? load_acquire(&chunks[i]) : NULL;

	return likely(c) ? c + (unsigned)fd % CHUNK_FDS : NULL;
}

struct fd *fd_at(int fd)
{
	struct fd *f = fd_known(fd);

	if (unlikely(!f) && (unsigned)fd / CHUNK_FDS < CHUNKS &&
	    chunk_make((unsigned)fd / CHUNK_FDS))
		f = fd_known(fd);
	return f;
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

struct fd_more *fd_more(struct fd *f)
{
	/* acquire: pairs with store_release below */
	struct fd_more *more = load_acquire(&f->more);
	struct m *mp;

	if (likely(more))
		return more;
	mp = rt_enter_lock(&f->lock);
	more = f->more;
	if (!more && (more = mem_alloc(sizeof *more))) {
		more->f = f;
		/* release: pairs with load_acquire here, in fd_deadline and
		 * users_leave_soon */
		store_release(&f->more, more);
	}
	rt_unlock_exit(mp, &f->lock);
	return more;
}

/* ---------------------------------------------------------------- forgetting */

void fd_forget(struct fd *f, int why, struct ready_list *list)
{
	check(lock_is_held(&f->lock));
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

/* Ends CLOSING. Were it CLOSED, the program would have called close(2) itself, and
 * nothing would be left for the closer to close. */
void fd_made(int fd, enum fd_kind kind)
{
	struct fd *f = fd_at(fd);
	struct fd_section s;
	uint64_t word;

	if (!f)
		return;
	s = fd_lock(f);
	fd_forget(f, -EBADF, &s.list);
	store_relaxed(&f->kind, kind);
	store_relaxed(&f->own, 1);
	word = load_relaxed(&f->word);
	while (!cas_acqrel(&f->word, &word, (word & ~FLAGS) + GEN))
		;
	fd_unlock(&s, f);
}

/* ----------------------------------------------------------------- users */

static int finish_close(struct fd *f, bool counted);

/* Calls close(2) if the last user is to, and returns what that said, else 0. */
static int leave(struct fd *f)
{
	/* release: the use is over; pairs with cas_acqrel in finish_close */
	uint64_t word = fetch_add_acqrel(&f->word, -REF) - REF;

	check((word & REFS) != REFS);	/* the caller was counted */
	if (likely(!(word & F_CLOSED)))
		return 0;
	if ((word & REFS) == 0)
		return finish_close(f, false);
	if ((word & REFS) == 1 && word & F_WAITED)
		fd_pass_on(f, NETPOLL_WRITE);	/* the closer waits there, alone */
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

/* enum fd_kind of the file that has the number now, or -errno. */
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
	mp = rt_enter_lock(&f->lock);
	if (gen_of(load_relaxed(&f->word)) == u->gen)	/* else it is known better */
		store_relaxed(&f->kind, (uint8_t)kind);
	rt_unlock_exit(mp, &f->lock);
	return 0;
}

bool fd_is_closed(const struct fd *f)
{
	return load_relaxed(&f->word) & F_CLOSED;
}

static struct m *wait_closed(struct m *mp, struct fd *f);

/* fd is being closed. 0: it is over, and the number is the next file's; or -EBADF. */
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

/* Looks at the file if its kind is not known for sure. 0 or -errno. */
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
		/* acquire: the descriptor's fields; pairs with cas_acqrel in fd_made */
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

/* Parks until close(2) has returned. lock held; releases it. */
static struct m *wait_closed(struct m *mp, struct fd *f)
{
	fd_enqueue(f, mp->curg, NETPOLL_READ);
	return park(mp, park_unlock, &f->lock, WAIT_IO);
}

/* close(2) has returned: new calls, which wait with the readers, may go on. */
static void closing_over(struct fd *f, uint32_t gen)
{
	struct fd_section s = fd_lock(f);
	uint64_t word = load_relaxed(&f->word);

	while (gen_of(word) == gen && word & F_CLOSING)
		if (cas_acqrel(&f->word, &word, word & ~F_CLOSING)) {
			fd_take_off_all(f, FD_READ, WOKEN_READY, &s.list);
			break;
		}
	fd_unlock(&s, f);
}

/* The only user is the caller, if counted. Everything is forgotten before the number is
 * free. -EALREADY: a call that came after the last user had left found CLOSED, left
 * again, and closes the number. */
static int finish_close(struct fd *f, bool counted)
{
	struct fd_section s = fd_lock(f);
	uint64_t word = load_relaxed(&f->word);
	int r;

	for (;;) {
		uint64_t to = (word & ~FLAGS) + GEN;

		if (!(word & F_CLOSED)) {
			fd_unlock(&s, f);
			if (!counted)
				return -EALREADY;
			leave(f);
			return -EBADF;	/* fd_made: the kernel gave the number away */
		}
		if (counted)
			to -= REF;
		/* acquire: what the users did; pairs with fetch_add_acqrel in leave */
		if (cas_acqrel(&f->word, &word, to | F_CLOSING)) {
			word = to;
			break;
		}
	}
	if (f->watched)
		netpoll_remove(f->number);
	fd_forget(f, -EBADF, &s.list);
	fd_unlock(&s, f);
	r = (int)syscall_raw(SYS_close, f->number, 0, 0, 0, 0, 0);
	linger();
	closing_over(f, gen_of(word));
	return r == -EINTR ? 0 : r;	/* Linux has closed it by then */
}

/* Whether the users will leave soon enough to wait for them. */
static bool users_leave_soon(const struct fd *f)
{
	struct fd_more *more = load_acquire(&f->more);

	return load_relaxed(&f->kind) != FD_FILE && (!more || load_seqcst(&more->blocked) == 0);
}

/* Waits until the caller, a user itself, is the only one. CLOSED and WAITED are set: no
 * other goroutine is in the writers' queue. */
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

/* Sets CLOSED and wakes the waiters; false: another closer has. */
static bool mark_closed(struct fd *f, uint64_t flags)
{
	struct fd_section s = fd_lock(f);
	uint64_t word = load_relaxed(&f->word);
	bool done = false;

	while (!(word & FLAGS) && !(done = cas_acqrel(&f->word, &word, word | F_CLOSED | flags)))
		;
	for (int i = 0; done && i < 2; i++)
		fd_take_off_all(f, i, -ECANCELED, &s.list);
	fd_unlock(&s, f);
	return done;
}

/* If the number is not open, close(2) says so. */
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

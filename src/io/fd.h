/*
 * fd.h - descriptors: their users, their waiters, their deadlines. Defined in fd.c and
 * fd_wait.c.
 *
 * The room io makes calls on files and sockets that park the goroutine instead of
 * blocking its thread. It uses sync, preempt, goroutine, sched and the rooms below them.
 * To the rooms above it offers the public calls, files (file.h), signals on channels
 * (signal_notify.h), and what the poller's events mean (fd_wait.c).
 */
#ifndef GORO_FD_H
#define GORO_FD_H

#include <goro.h>
#include <sys/types.h>

#include "base/throw.h"
#include "sched/netpoll.h"
#include "sched/rt.h"
#include "sched/types.h"

/* ------------------------------------------------------------ what is known */

/* The kind of file decides how a call on it is made that must not block its thread. */
enum fd_kind {
	FD_UNKNOWN,		/* fstat was not called yet */
	FD_SOCKET,		/* recv and send with MSG_DONTWAIT */
	FD_NOWAIT,		/* RWF_NOWAIT; a file that has none becomes POLL_FIRST */
	FD_POLL_FIRST,		/* poll(2), then an announced blocking call */
	FD_FILE,		/* waits for the disk only, never for a peer: file.c */
};

enum fd_way { FD_READ, FD_WRITE };

/* The waiters of one way, a ring in the order in which they came. */
struct fd_queue {
	struct io_link *first;
};

/* What most descriptors never need. Made at first use by fd_more, and never freed. */
struct fd_more {
	struct fd *f;
	int64_t deadline[2];	/* 0: none; written under lock, read without */
	struct timer timer[2];	/* may run without a waiter, and for another time */
	goro_mutex turn[2];	/* FD_POLL_FIRST: held from poll(2) to the call's end */
	goro_mutex position;	/* held while the file's position is used: see file.c */
	uint8_t no_nowait;	/* bit 1 << way: does not take RWF_NOWAIT; atomic */
	uint32_t blocked;	/* users in a call that blocks their thread; atomic */
};

/* A descriptor number. Made at first use and never freed: see "The word" in fd.c. One
 * cache line, as a program with ten thousand connections goes from one to the next. */
struct fd {
	_Alignas(CACHE_LINE)
	uint64_t word;		/* gen:32 flags:8 refs:24 */
	int number;		/* constant */
	uint8_t kind;		/* enum fd_kind */
	uint8_t own;		/* goro made it: see "Numbers that change hands" */
	uint8_t quiet;		/* reads in a row that found nothing or were left out */
	/* Under lock. */
	uint8_t watched : 2,	/* NETPOLL_ bits that the poller watches */
	        untried : 1,	/* the first reader has not tried */
	        listed : 1;	/* on a P's list, p_io.untried */
	uint32_t untried_link;	/* number + 1 of the next in that list; the P's owner's */
	uint32_t epoch;		/* counts the number's files; part of the events' tags */
	struct lock lock;
	uint32_t seq[2];	/* events so far; written under lock, read without */
	struct fd_queue waiters[2];	/* goro_close waits with the writers */
	struct fd_more *more;	/* NULL: none yet */
};
_Static_assert(sizeof(struct fd) == CACHE_LINE, "fd: one line");

/* -------------------------------------------------------------- using it: fd.c */

/* A user of a descriptor: a call on it, from fd_enter to fd_leave. */
struct fd_use {
	struct fd *f;
	uint32_t gen;		/* the word's gen at fd_enter */
	bool done;		/* the wait's call was made by another thread (batch.c) */
	ssize_t result;		/* of that call */
	unsigned woken;		/* bit 1 << way: woken for an event of that way */
	const struct iovec *untried;	/* the next wait is for an untried read to it */
};

/* Makes the caller a user of fd. 0 or -EBADF, -ENOMEM. In user code. */
int fd_enter(struct fd_use *u, int fd);
void fd_leave(struct fd_use *u);

/* f's kind turned out to be wrong: asks fstat again. 0 or -errno. In user code. */
int fd_look_again(struct fd_use *u);

/* Whether goro_close was called since the caller became a user of f. */
bool fd_is_closed(const struct fd *f);

/* A call of goro's has just made fd. In user code. */
void fd_made(int fd, enum fd_kind kind);

/* f->more, made if there is none; NULL: no memory. In user code. */
struct fd_more *fd_more(struct fd *f);

/* ------------------------------------------------- waiting for it: fd_wait.c */

/* The deadline of a way; 0: none. */
static inline int64_t fd_deadline(const struct fd *f, enum fd_way way)
{
	/* acquire: pairs with store_release in fd_more */
	const struct fd_more *more = load_acquire(&f->more);

	return more ? load_relaxed(&more->deadline[way]) : 0;
}

/* -ETIMEDOUT if the deadline has passed, else 0. */
int fd_check_deadline(struct fd *f, enum fd_way way);

/* The events so far. A caller reads them before it tries, and passes them to fd_wait if
 * it found nothing. */
static inline uint32_t fd_seq(const struct fd *f, enum fd_way way)
{
	/* acquire: the try comes after; pairs with fd_event */
	return load_acquire(&f->seq[way]);
}
/* Parks until an event comes after seq. 0: try again, perhaps in another way, as f's kind
 * may have changed; or -ETIMEDOUT, -ECANCELED (closed), -EBADF (another file has the
 * number), -ENOMEM, -ENOSPC. In user code. */
int fd_wait(struct fd_use *u, enum fd_way way, uint32_t seq);

/* The same for one or both ways (NETPOLL_ bits), and with a deadline of the call's own
 * instead of the descriptor's. */
int fd_wait_until(struct fd_use *u, unsigned what, const uint32_t seq[2], int64_t deadline);

/* ----------------------------------------------------- for the batches: batch.h */

#define BATCH_GUESS_AFTER 2	/* tries in vain before the next is left out */

/* ----------------------------------------------------- between fd.c and fd_wait.c */

#define REF       UINT64_C(1)
#define REFS      UINT64_C(0xffffff)
#define F_CLOSED  (UINT64_C(1) << 24)
#define F_CLOSING (UINT64_C(1) << 25)
#define F_WAITED  (UINT64_C(1) << 26)	/* with CLOSED: the closer waits, as a user */
#define FLAGS     (F_CLOSED | F_CLOSING | F_WAITED)
#define GEN       (UINT64_C(1) << 32)

static inline uint32_t gen_of(uint64_t word)
{
	return (uint32_t)(word >> 32);
}

/* No goroutine waits. With lock or without. */
static inline bool fd_queue_empty(const struct fd_queue *q)
{
	return !load_relaxed(&q->first);
}

/* The goroutine whose link of that way w is. */
static inline struct g *fd_waiter(const struct io_link *w, enum fd_way way)
{
	return (struct g *)((uintptr_t)w - offsetof(struct g, io.in) - (size_t)way * sizeof *w);
}

static inline void fd_queue_put(struct fd_queue *q, struct io_link *w)
{
	struct io_link *first = q->first;

	check(!w->next && !w->prev);
	if (!first) {
		w->next = w->prev = w;
		store_relaxed(&q->first, w);
		return;
	}
	w->next = first;
	w->prev = first->prev;
	first->prev->next = w;
	first->prev = w;
}

static inline void fd_queue_remove(struct fd_queue *q, struct io_link *w)
{
	check(q->first && w->prev->next == w && w->next->prev == w);
	w->prev->next = w->next;
	w->next->prev = w->prev;
	if (q->first == w)
		store_relaxed(&q->first, w->next == w ? NULL : w->next);
	w->next = w->prev = NULL;
}

/* Work on f under its lock, begun and ended in user code. Goroutines that are put on list
 * become ready after the unlock. */
struct fd_section {
	struct m *mp;
	struct ready_list list;
};
static inline struct fd_section fd_lock(struct fd *f)
{
	return (struct fd_section){ .mp = rt_enter_lock(&f->lock) };
}
static inline void fd_unlock(struct fd_section *s, struct fd *f)
{
	lock_release(&f->lock);
	ready_list_all(s->mp, &s->list);
	rt_exit(s->mp);
}

/* The descriptor of a number, made if need be. NULL: no memory, or too large a number. */
struct fd *fd_at(int fd);
/* The same, but NULL if it was never used. */
struct fd *fd_known(int fd);
/* Calls fn for every descriptor that was ever made. */
void fd_each(void (*fn)(struct fd *f, void *arg), void *arg);
/* Forgets all about the file that had the number, and wakes its waiters with why. The
 * word stays. lock held. */
void fd_forget(struct fd *f, int why, struct ready_list *list);

/* Puts gp in the queues of what (NETPOLL_ bits). lock held. */
void fd_enqueue(struct fd *f, struct g *gp, unsigned what);

/* Why a waiter is taken off its queue: one of these, or -errno. DONE: its call has been
 * made, and io_wait.result is set. */
enum io_woken { WOKEN_READY = 0, WOKEN_DONE = 1 };
void fd_take_off_first(struct fd *f, enum fd_way way, struct ready_list *list);
void fd_take_off_all(struct fd *f, enum fd_way way, int why, struct ready_list *list);

/* Wakes the first waiter of each way in what. In user code. */
void fd_pass_on(struct fd *f, unsigned what);

/* Counts the begin or the end of a goroutine's wait for a descriptor or a disk. */
void fd_count_wait(struct m *mp, bool over);
/* Whether any goroutine waits so. Exact while no goroutine runs. */
bool fd_is_awaited(void);

#endif

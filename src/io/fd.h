/*
 * fd.h - descriptors: who uses them, who waits for them, until when. Defined in
 * fd.c.
 */
#ifndef GORO_FD_H
#define GORO_FD_H

#include <goro.h>
#include <sys/types.h>

#include "netpoll.h"
#include "types.h"

/* ------------------------------------------------------------ what is known */

/* What kind of file it is, which decides how a call on it is made that must not
 * block its thread. */
enum fd_kind {
	FD_UNKNOWN,		/* not looked at yet */
	FD_SOCKET,		/* recv and send with MSG_DONTWAIT */
	FD_NOWAIT,		/* preadv2 and pwritev2 with RWF_NOWAIT, until it is
				 * known whether the file supports that */
	FD_POLL_FIRST,		/* asked whether it is ready, and then an announced
				 * blocking call */
	FD_FILE,		/* never waits for others, only for the disk: file.c */
};

enum fd_way { FD_READ, FD_WRITE };

/* Those who wait for one way, in order: a ring, as two words would not fit. */
struct fd_queue {
	struct waiter *first;
};

/* What most descriptors never need. Made on first use (fd_more), and the number's for
 * good. */
struct fd_more {
	struct fd *f;
	int64_t deadline[2];	/* 0: none; under lock, may be read without */
	struct timer timer[2];	/* may wait longer than the deadline, or for nobody */
	goro_mutex turn[2];	/* FD_POLL_FIRST: one at a time asks and calls */
	goro_mutex position;	/* of the file's position: see file.c */
	uint8_t no_nowait;	/* bit 1 << way: a file that does not take RWF_NOWAIT; atomic */
	uint32_t blocked;	/* users in a call that blocks their thread; atomic */
};

/*
 * What is known of a descriptor number. Made on first use and never freed: see
 * "The word" in fd.c. One cache line: a program with ten thousand connections goes
 * from one to the next.
 */
struct fd {
	_Alignas(CACHE_LINE)
	uint64_t word;		/* gen:32 flags:8 refs:24 */
	int number;		/* constant */
	uint8_t kind;		/* enum fd_kind */
	uint8_t own;		/* made by a call of ours: see "Numbers that change hands" */
	uint8_t quiet;		/* tries to read that found nothing, or are guessed to: fd_guess.c */
	/* Under lock. */
	uint8_t watched : 2,	/* NETPOLL_ bits that the poller watches */
	        untried : 1,	/* who waits to read has not tried .. */
	        listed : 1,	/* .. and it is on a P's list: */
	        since : 4;	/* .. by the clock of fd_guess.c */
	uint32_t untried_link;	/* the next one's number + 1; the owner's of the list */
	uint32_t epoch;		/* of the file that is watched; under lock */
	struct lock lock;
	uint32_t seq[2];	/* events so far; under lock, may be read without */
	struct fd_queue waiters[2];	/* under lock; goro_close waits with the writers */
	struct fd_more *more;	/* NULL: none yet; set under lock */
};
_Static_assert(sizeof(struct fd) == CACHE_LINE, "fd: one line");

/* -------------------------------------------------------------- using it: fd.c */

/* A call on a descriptor, from fd_enter to fd_leave. */
struct fd_use {
	struct fd *f;
	uint32_t gen;		/* the descriptor's when it was entered */
	bool guessed;		/* it has not tried, but guesses that there is nothing */
	bool hurried;		/* .. and was told to try before there was an event */
	bool done;		/* it was read for us, see fd_batch.c: .. */
	int result;		/* .. with this result */
	unsigned woken;		/* ways for which an event was given to us: see
				 * "Several who wait" */
	const struct iovec *offer;	/* where to read to: for others to do; NULL: not so */
};

/* The caller uses fd until it leaves; close(2) will wait for it. 0, or -EBADF. In
 * user code. */
int fd_enter(struct fd_use *u, int fd);
void fd_leave(struct fd_use *u);

/* What f is turned out to be wrong (-ENOTSOCK, say): it is looked at anew. */
int fd_look_again(struct fd_use *u);

/* The caller uses f: goro_close was called since. */
bool fd_is_closed(const struct fd *f);

/* A descriptor that a call of ours has just made. */
void fd_made(int fd, enum fd_kind kind);

/* .. with what not all have; NULL: no memory. In user code. */
struct fd_more *fd_more(struct fd *f);

/* ------------------------------------------------- waiting for it: fd_wait.c */

/* 0: none. */
static inline int64_t fd_deadline(const struct fd *f, enum fd_way way)
{
	/* acquire: pairs with store_release in fd_more */
	const struct fd_more *more = load_acquire(&f->more);

	return more ? load_relaxed(&more->deadline[way]) : 0;
}

/* -ETIMEDOUT if the deadline has passed, else 0. */
int fd_check_deadline(struct fd *f, enum fd_way way);

/* The events so far: to be read before trying, and passed to fd_wait if there was
 * nothing. */
static inline uint32_t fd_seq(const struct fd *f, enum fd_way way)
{
	/* acquire: the try comes after; pairs with fd_event */
	return load_acquire(&f->seq[way]);
}
/* Parks until an event comes after seq. 0: try again (perhaps otherwise: f's kind may
 * be another now); -ETIMEDOUT, -ECANCELED (closed), -EBADF (another file has
 * the number), -ENOMEM, -ENOSPC. */
int fd_wait(struct fd_use *u, enum fd_way way, uint32_t seq);

/* The same for one or both ways (NETPOLL_ bits), and until a deadline of its own
 * instead of the descriptor's. */
int fd_wait_until(struct fd_use *u, unsigned what, const uint32_t seq[2], int64_t deadline);

/* Goroutines on a list who wait to read and have said where to. */
struct fd_batch {
	int n;
	struct g *gp[NETPOLL_BATCH];
};
/* Reads for them, if that is worth while: fd_batch.c. In state RUNTIME; pp may be NULL. */
void fd_batch_read(const struct p *pp, const struct fd_batch *b);
extern uint64_t fd_batch_reads;	/* so far; atomic */

/* An event of that number is about to be seen to: it is brought into the cache; and who
 * waits for it, once that was done for the descriptor. In state RUNTIME. */
void fd_prefetch(int fd);
void fd_prefetch_waiter(int fd);
/* The poller's: appends to the list who waits for it. In state RUNTIME. */
void fd_event(uint64_t tag, unsigned what, struct ready_list *list, struct fd_batch *batch);

/* ---------------------------------------- not even trying: fd_guess.c */

#define FD_GUESS_AFTER 2
#define SINCE_MASK 15	/* of fd.since */

/* There is probably nothing to read: wait first (use.guessed). In user code. */
bool fd_guess(struct fd *f);
/* What a first try said. True: it was as guessed, and the wait is to be like the others
 * (use.guessed), or its turn to try would not come when theirs does. */
bool fd_tried(struct fd *f, bool found);
/* lock held, about to park. False: try first. */
bool fd_guess_wait(struct m *mp, struct fd *f);
/* Those who have not tried are to. In state RUNTIME, with a P. */
void fd_guess_flush(struct m *mp);
void fd_guess_late(struct m *mp);	/* .. those who have waited for long */
/* The one of them that is to run, runnable; NULL: the poller is to be asked first .. */
struct g *fd_guess_try(struct m *mp);
/* .. and was; and it had tried in vain. The owner's of the P. */
void fd_guess_asked(struct p *pp);
void fd_guess_in_vain(struct p *pp);
void fd_guess_move(struct p *from, struct p *to);
/* sysmon's look. */
void fd_guess_watch(struct p *pp, int64_t now);

/* -------------------------------------------- calls that are put off: fd_post.c */

/* Sends n bytes a little later, together with others', if that seems better: what
 * send(2) said. -EAGAIN: it is to be tried now. In user code; may park. */
ssize_t fd_post(struct fd *f, void *buf, size_t n, int flags);
/* There are some. The owner's of the P; others may ask. */
static inline bool fd_posts(const struct p *pp)
{
	/* acquire: what its taker did before; pairs with cas_acqrel in ring_take */
	return load_acquire(&pp->posts.queue.head) != load_relaxed(&pp->posts.queue.tail);
}
/* .. and it is time. */
bool fd_posts_due(const struct p *pp);
/* They are sent now, and made ready. In state RUNTIME, with a P; without locks. */
void fd_post_flush(struct m *mp);
/* A P goes out of use: they are to try for themselves. World stopped. */
void fd_post_drain(struct m *mp, struct p *pp);
/* sysmon's look, and when the next is to be. */
int64_t fd_post_look(struct m *mp, int64_t now);
extern uint64_t fd_posted;	/* so far, and sent by a ring; atomic */
extern uint64_t fd_posted_late;	/* how often sysmon had to see to it; atomic */

/* ----------------------------------------------------- between fd.c and fd_wait.c */

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

/* Those who wait; lock held, but whether there are any may be asked without. */
static inline bool fd_queue_empty(const struct fd_queue *q)
{
	return !load_relaxed(&q->first);
}

static inline void fd_queue_put(struct fd_queue *q, struct waiter *w)
{
	struct waiter *first = q->first;

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

static inline void fd_queue_remove(struct fd_queue *q, struct waiter *w)
{
	w->prev->next = w->next;
	w->next->prev = w->prev;
	if (q->first == w)
		store_relaxed(&q->first, w->next == w ? NULL : w->next);
}

/* What is known of a number; NULL: no memory, or not a number for a descriptor. */
struct fd *fd_at(int fd);
/* NULL: nothing is known of it. */
struct fd *fd_known(int fd);
/* Calls fn for all numbers that anything is known of. */
void fd_each(void (*fn)(struct fd *f, void *arg), void *arg);
/* The poller is another one: it is to watch what the one before has watched. */
void fd_watch_again(struct ready_list *list);

/* lock held. What was known was of another file. Who waits for that is woken with
 * why; the word is the caller's. */
void fd_forget(struct fd *f, int why, struct ready_list *list);

/* lock held. Puts gp in the queues of what (NETPOLL_ bits). */
void fd_enqueue(struct fd *f, struct g *gp, unsigned what);

/* lock held. Takes them off, for a reason: 0, try again, or -errno .. */
enum { WOKEN_READY = 0, WOKEN_TO_TRY = 1, WOKEN_DONE = 2 };
void fd_take_off_first(struct fd *f, enum fd_way way, struct ready_list *list);
void fd_take_off_all(struct fd *f, enum fd_way way, int why, struct ready_list *list);
/* .. for this to make them ready. In state RUNTIME. */
void fd_ready_all(struct m *mp, struct ready_list *list);

/* Who was woken wakes the next. In user code. */
void fd_pass_on(struct fd *f, unsigned what);

#endif

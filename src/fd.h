/*
 * fd.h - descriptors: who uses them, who waits for them, until when. Defined in
 * fd.c.
 */
#ifndef GORO_FD_H
#define GORO_FD_H

#include <goro.h>

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

/* One direction of a descriptor. */
struct fd_side {
	/* Under the descriptor's lock; deadline and seq may be read without. */
	struct waitq waiters;
	int64_t deadline;	/* 0: none */
	uint32_t seq;		/* events so far */
	struct timer timer;	/* may wait longer than the deadline, or for nobody */
};

/*
 * What is known of a descriptor number. Made on first use and never freed: see
 * "The word" in fd.c.
 */
struct fd {
	_Alignas(CACHE_LINE)
	uint64_t word;		/* gen:32 flags:8 refs:24 */
	int number;		/* constant */
	uint8_t kind;		/* enum fd_kind */
	uint8_t own;		/* made by a call of ours: see "Numbers that change hands" */
	uint8_t watched;	/* NETPOLL_ bits that the poller watches; under lock */
	uint8_t misses;		/* reads in a row that found nothing at first; fd_guess.c */
	uint32_t guesses;
	bool untried, listed;	/* who waits to read has not tried; it is on a P's list */
	uint32_t epoch;		/* of the file that is watched; under lock */
	struct lock lock;
	struct fd *untried_link;	/* the owner's of the list */
	uint32_t blocked;	/* users in a call that blocks their thread; atomic */
	goro_mutex turn[2];	/* FD_POLL_FIRST: one at a time asks and calls */
	struct g *closer;	/* waits for the users to leave; under lock */
	goro_mutex position;	/* of the file's position: see file.c */
	struct fd_side side[2];
};

/* -------------------------------------------------------------- using it: fd.c */

/* A call on a descriptor, from fd_enter to fd_leave. */
struct fd_use {
	struct fd *f;
	uint32_t gen;		/* the descriptor's when it was entered */
	bool guessed;		/* it has not tried, but guesses that there is nothing */
	unsigned woken;		/* ways for which an event was given to us: see
				 * "Several who wait" */
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

/* ------------------------------------------------- waiting for it: fd_wait.c */

/* -ETIMEDOUT if the deadline has passed, else 0. */
int fd_check_deadline(const struct fd *f, enum fd_way way);

/* The events so far: to be read before trying, and passed to fd_wait if there was
 * nothing. */
static inline uint32_t fd_seq(const struct fd *f, enum fd_way way)
{
	/* acquire: the try comes after; pairs with fd_event */
	return load_acquire(&f->side[way].seq);
}
/* Parks until an event comes after seq. 0: try again (perhaps otherwise: f's kind may
 * be another now); -ETIMEDOUT, -ECANCELED (closed), -EBADF (another file has
 * the number), -ENOMEM, -ENOSPC. */
int fd_wait(struct fd_use *u, enum fd_way way, uint32_t seq);

/* The same for one or both ways (NETPOLL_ bits), and until a deadline of its own
 * instead of the descriptor's. */
int fd_wait_until(struct fd_use *u, unsigned what, const uint32_t seq[2], int64_t deadline);

/* The poller's: appends to the list who waits for it. In state RUNTIME. */
void fd_event(uint64_t tag, unsigned what, struct ready_list *list);

/* ---------------------------------------- not even trying: fd_guess.c */

/* There is probably nothing to read: wait first (use.guessed). In user code. */
bool fd_guess(struct fd *f);
/* What a first try said. */
void fd_tried(struct fd *f, bool found);
/* lock held, about to park. False: try first. */
bool fd_guess_wait(struct m *mp, struct fd *f);
/* Those who have not tried are to. In state RUNTIME, with a P. */
void fd_guess_flush(struct m *mp);
void fd_guess_move(struct p *from, struct p *to);
/* sysmon's look. */
void fd_guess_watch(struct p *pp, int64_t now);

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

/* What is known of a number; NULL: no memory, or not a number for a descriptor. */
struct fd *fd_at(int fd);

/* lock held. What was known was of another file. Who waits for that is woken with
 * why; the word is the caller's. */
void fd_forget(struct fd *f, int why, struct ready_list *list);

/* lock held. Puts gp in the queues of what (NETPOLL_ bits). */
void fd_enqueue(struct fd *f, struct g *gp, unsigned what);

/* lock held. Takes them off, for a reason: 0, try again, or -errno .. */
enum { WOKEN_READY = 0 };
void fd_take_off_first(struct fd *f, enum fd_way way, struct ready_list *list);
void fd_take_off_all(struct fd *f, enum fd_way way, int why, struct ready_list *list);
/* .. for this to make them ready. In state RUNTIME. */
void fd_ready_all(struct m *mp, struct ready_list *list);

/* Who was woken wakes the next. In user code. */
void fd_pass_on(struct fd *f, unsigned what);

#endif

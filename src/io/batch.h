/*
 * batch.h - calls on sockets that a P defers: writes, to send several by one system call,
 * and reads that would find nothing. The mechanism is batch.c; batch_policy.c decides
 * when, and until when.
 */
#ifndef GORO_BATCH_H
#define GORO_BATCH_H

#include <sys/types.h>

#include "io/fd.h"
#include "platform/uring_queues.h"
#include "sched/types.h"

/* ------------------------------------------------------------------ for io.c */

/* Sends n bytes, perhaps together with writes of other goroutines. What send(2) said;
 * -EAGAIN: the caller is to send them itself. In user code; may park. */
ssize_t batch_send(struct fd *f, void *buf, size_t n, int flags);
/* Whether a read of f will probably find nothing, so that the caller waits without a try
 * (use.untried). In user code. */
bool batch_guess(struct fd *f);
/* Reports what a try to read f came to. True: it found nothing, as expected. The wait is
 * then to be as one without a try, or the P would not reach it in its turn. */
bool batch_tried(struct fd *f, bool found);

/* --------------------------------------------- for fd_wait.c and the poller */

/* Has the caller wait for f without a try: its P tries when it has nothing else to do.
 * False: the caller is to try first. f's lock held, in state RUNTIME. */
bool batch_leave_untried(struct m *mp, struct fd *f);
/* The owner of pp has looked at the poller. */
void batch_polled(struct p *pp);

/* ----------------------------------------------------------------- for tests */

struct batch_counts {
	uint64_t sent;		/* writes made by rings; atomic */
	uint64_t late;		/* batches of writes sent after BATCH_LATE_NS; atomic */
};
extern struct batch_counts batch_counts;

/* ---------------------------------------------------------- what a P knows */

#define BATCH_SENDS_MAX 32	/* 16 to 64 do: docs/performance-notes.md */

/* What a P defers, and what it has seen of that. Made when the P first needs it. The
 * owner of the P only, but sysmon reads the fields marked (s). */
struct p_io {
	/* Gathered writes. */
	uint32_t n;		/* (s) */
	int64_t since;		/* when the first was gathered (s) */
	struct g *gs[BATCH_SENDS_MAX];

	/* Descriptors whose first reader has not tried, and those that had an event
	 * since, in the order in which they came. */
	struct fd *untried, *untried_last;	/* (s): the first */
	uint32_t untried_n;

	/* The ring. */
	bool has_ring;
	uint32_t ring_wanted;	/* times that there was use for one, up to WANTED_FIRST */
	struct uring_queues ring;

	/* Policy: writes. */
	uint32_t asked;		/* times that a batch was about to begin (s) */
	uint32_t seen_asked;	/* asked at the last look; sysmon's */
	int64_t turns_at;	/* when a batch was last about to begin */
	uint64_t turns;		/* switches on the P until then */
	int64_t again_at;	/* no batch begins before: one was late */
	int64_t pause;		/* how long that pause is */

	/* Policy: reads. */
	uint32_t tries;		/* tries left before the next look at the poller */
	uint32_t try_pause;	/* looks at the poller before there are tries again */
	int64_t passed_at;	/* when the P last tried the oldest (s) */
};

/* The P's struct p_io; NULL: none yet, or no memory. Any thread. */
static inline struct p_io *batch_known(const struct p *pp)
{
	/* acquire: it is whole; pairs with store_release in batch_of */
	return load_acquire(&pp->io);
}

/* ------------------------------------------------ policy: batch_policy.c
 *
 * The caller owns the P, in state RUNTIME, unless a comment says otherwise. */

/* Whether a batch of writes may begin. */
bool batch_may_begin(struct m *mp, struct p_io *io);
/* Whether gathered writes are to be sent: after BATCH_WAIT_NS. Any thread. */
bool batch_sends_due(const struct p_io *io);
bool batch_sends_late(const struct p_io *io);	/* the same, after BATCH_LATE_NS */
/* The gathered writes are about to be sent. */
void batch_sends_end(struct p_io *io);
/* Whether the first untried read is to be tried before the next look at the poller.
 * batch_try_was says what it came to. */
bool batch_may_try(struct p_io *io);
void batch_try_was(struct p_io *io, bool found);
/* Whether the oldest untried reads are due, although the P has other work. Any thread. */
bool batch_pass_due(const struct p_io *io);
/* Then: how many. */
uint32_t batch_pass_begin(struct p_io *io);
/* sysmon only: ns until it is to look at the Ps again; TIMER_NEVER: not for batches. */
int64_t batch_watch(int64_t now);

#endif

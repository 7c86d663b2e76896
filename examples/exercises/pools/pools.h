/*
 * pools.h - the pools that pools.c compares, by what they have in common.
 *
 * per_p.c and batch.c are pools written by hand; the others are in pools.c.
 */
#ifndef POOLS_H
#define POOLS_H

#include "measure.h"

struct task {
	int64_t due;		/* when it came in */
	int64_t compute_ns;
	int64_t wait_ns;	/* for somebody else: a database, a disk */
};

/* Does it, and notes how long ago it came in. */
void task_run(void *task);

struct per_p;
struct per_p *per_p_make(int queues, int workers);
void per_p_submit(struct per_p *p, struct task *t);
/* Lets the workers do all that is queued, and waits for them to end. */
void per_p_close(struct per_p *p);

struct batches;
struct batches *batches_make(int workers, size_t queue);
/* Waits for room. */
void batches_submit(struct batches *b, struct task *t);
void batches_close(struct batches *b);

#endif

/*
 * batch.c - a pool that hands tasks over in batches.
 *
 * A submitter adds its task to the open batch. A batch is sent to the workers when it is
 * full, or by the flusher when FLUSH_NS are over. So a worker is woken, and a lock is
 * taken, once for up to BATCH_MAX tasks. In turn a task may wait FLUSH_NS for its batch
 * to be sent, and for those before it in the batch.
 */
#include "pools.h"

#define BATCH_MAX 32
#define FLUSH_NS  (500 * GORO_MICROSECOND)

struct batch {
	int n;
	struct task *task[BATCH_MAX];
};

struct batches {
	goro_mutex lock;
	struct batch open;	/* under the lock */
	goro_chan *full;
	atomic_bool closed;
	goro_waitgroup workers, flusher;
};

static void worker(struct batches *b)
{
	struct batch batch;

	while (goro_chan_recv(b->full, &batch))
		for (int i = 0; i < batch.n; i++)
			task_run(batch.task[i]);
	goro_waitgroup_done(&b->workers);
}

/* Lock held: a submitter that comes meanwhile waits for room, too. */
static void flush(struct batches *b)
{
	if (b->open.n > 0)
		goro_chan_send(b->full, &b->open);
	b->open.n = 0;
}

static void flusher(struct batches *b)
{
	while (!atomic_load(&b->closed)) {
		goro_sleep(FLUSH_NS);
		goro_mutex_lock(&b->lock);
		flush(b);
		goro_mutex_unlock(&b->lock);
	}
	goro_waitgroup_done(&b->flusher);
}

struct batches *batches_make(int workers, size_t queue)
{
	struct batches *b = allocate(1, sizeof *b);

	b->full = goro_chan_of(struct batch, queue / BATCH_MAX);
	if (!b->full)
		goro_panic("out of memory");
	goro_waitgroup_add(&b->workers, workers);
	for (int i = 0; i < workers; i++)
		go(worker, b);
	goro_waitgroup_add(&b->flusher, 1);
	go(flusher, b);
	return b;
}

void batches_submit(struct batches *b, struct task *t)
{
	goro_mutex_lock(&b->lock);
	b->open.task[b->open.n++] = t;
	if (b->open.n == BATCH_MAX)
		flush(b);
	goro_mutex_unlock(&b->lock);
}

void batches_close(struct batches *b)
{
	atomic_store(&b->closed, true);
	goro_waitgroup_wait(&b->flusher);
	flush(b);
	goro_chan_close(b->full);
	goro_waitgroup_wait(&b->workers);
	goro_chan_unref(b->full);
	free(b);
}

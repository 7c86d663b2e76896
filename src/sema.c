/*
 * sema.c - semaphores on plain words: what the sync types sleep on.
 *
 * As Go's runtime/sema.go: the word is the count; who finds it zero sleeps in
 * a bucket of a shared table, chosen by the address. A release that finds a
 * sleeper hands its unit straight to it and leaves the word alone.
 *
 * A waiter counts itself in the bucket before its last look at the word, and a
 * release adds to the word before its look at the count, so one of the two
 * sees the other:
 *
 *	acquire (bucket locked)         release
 *	waiters++                       *addr += 1
 *	*addr > 0? take, no sleep       waiters == 0? done
 *
 * Both steps on each side are sequentially consistent read-modify-writes or
 * followed by a full fence.
 */
#include "sema.h"

#include "waitq.h"

#define BUCKETS 251	/* prime, as in Go: addresses are multiples of powers of two */

static struct bucket {
	_Alignas(CACHE_LINE) struct lock lock;
	uint32_t waiters;	/* may be read without the lock */
	struct waitq q;
} buckets[BUCKETS];

void sema_init(void)
{
	for (int i = 0; i < BUCKETS; i++)
		buckets[i].lock.rank = RANK_SEMA;
}

static struct bucket *bucket_of(const uint32_t *addr)
{
	return &buckets[((uintptr_t)addr >> 3) % BUCKETS];
}

static bool take(uint32_t *addr)
{
	uint32_t v = load_seqcst(addr);

	while (v > 0)
		if (cas_seqcst(addr, &v, v - 1))
			return true;
	return false;
}

struct m *sema_acquire(struct m *mp, uint32_t *addr, enum wait_reason why)
{
	struct bucket *b = bucket_of(addr);
	struct waiter *w = &mp->curg->waiter;

	if (take(addr))
		return mp;
	for (;;) {
		lock_acquire(&b->lock);
		fetch_add_seqcst(&b->waiters, 1);
		if (take(addr)) {
			fetch_add_seqcst(&b->waiters, (uint32_t)-1);
			lock_release(&b->lock);
			return mp;
		}
		w->gp = mp->curg;
		w->key = addr;
		w->ok = false;
		waitq_put(&b->q, w);
		mp = park(mp, park_unlock, &b->lock, why);
		if (w->ok || take(addr))
			return mp;
	}
}

void sema_release(struct m *mp, uint32_t *addr)
{
	struct bucket *b = bucket_of(addr);
	struct waiter *w;

	fetch_add_seqcst(addr, 1);
	if (load_seqcst(&b->waiters) == 0)
		return;
	lock_acquire(&b->lock);
	for (w = b->q.first; w && w->key != addr; w = w->next)
		;
	if (w) {
		waitq_remove(&b->q, w);
		fetch_add_seqcst(&b->waiters, (uint32_t)-1);
		w->ok = take(addr);
	}
	lock_release(&b->lock);
	if (w)
		g_ready(mp, w->gp);
}

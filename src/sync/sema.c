/*
 * sema.c - sleeping on an address: what the sync types are made of.
 *
 * A type of sync keeps its state in a word of its own and comes here only when
 * somebody has to wait. As in Go's runtime/sema.go the sleepers are kept in a
 * table beside, found by the address, so that a mutex is eight bytes; the word
 * at the address holds units given to somebody who has not come to sleep yet.
 *
 * The rule
 *
 * Go's collector keeps the word alive while anybody touches it; here the object
 * may be freed as soon as its last user has what it waited for, while the one
 * who gave it is still in sema_release. So:
 *
 *	A unit is given only to one who is owed it: who has already put down, in
 *	the type's own state, that it will come for one, and who does not leave
 *	before it has one.
 *
 * Then at least as many are inside sema_acquire, or on their way into it, as
 * there are units given and not taken and releases under way; while there is a
 * release under way, somebody inside keeps the object alive. The word is touched
 * only under the lock of its bucket, by a release that finds fewer sleepers than
 * units; the others are on their way then, and cannot get past that lock before
 * the release is done with the word.
 *
 * By the same rule nobody is woken for nothing, and an address that is used
 * again for another object has no late releases of the old one coming.
 *
 * Rejected: counting units with atomics on the word, as Go does. A release that
 * adds its unit to the word and then looks for sleepers may find the object gone,
 * and in its place another, whose sleeper it wakes.
 *
 * The tree
 *
 * A bucket may have sleepers on many addresses (a million goroutines, each
 * waiting for a mutex of its own, are four thousand to a bucket). The first
 * sleeper of each address stands for it in a binary tree; the others of the same
 * address hang from it in a list, in order. The address is hashed by a
 * multiplication that loses nothing, whose top byte chooses the bucket, and whose
 * other bits, from the top, say left or right at each level:
 *
 *	Invariant: what is below child[b] of a node at depth d has bit d equal
 *	to b, and shares all bits before d with that node.
 *
 * A node may therefore be replaced by any node below it, which makes removal
 * simple, and two addresses part at the latest at the last bit, so that the tree
 * is never deeper than 56, and about the logarithm of its size when left to
 * chance. (Rejected: Go's treap. It needs rotations, parents and a random number
 * to be no more than likely to be as flat.)
 */
#include "sema.h"

#include "linger.h"
#include "profile_hooks.h"

#define BUCKET_BITS 8

static struct bucket {
	_Alignas(CACHE_LINE) struct lock lock;
	struct sleeper *tree;
} buckets[1 << BUCKET_BITS];

void sema_init(void)
{
#if GORO_CHECKS		/* elsewhere nobody looks at it: 4 pages less to touch */
	for (int i = 0; i < 1 << BUCKET_BITS; i++)
		buckets[i].lock.rank = RANK_SEMA;
#endif
}

/* One to one: the multiplier is odd. 2^64 over the golden ratio. */
static inline uint64_t hash(const uint32_t *addr)
{
	return (uint64_t)(uintptr_t)addr * UINT64_C(0x9e3779b97f4a7c15);
}

static inline struct bucket *bucket_of(const uint32_t *addr)
{
	return &buckets[hash(addr) >> (64 - BUCKET_BITS)];
}

/* ------------------------------------------------------------------- tree */

/* Where the node of addr hangs, or would. */
static struct sleeper **find(struct bucket *b, const uint32_t *addr)
{
	struct sleeper **at = &b->tree;

	for (uint64_t bits = hash(addr) << BUCKET_BITS; *at && (*at)->addr != addr; bits <<= 1)
		at = &(*at)->child[bits >> 63];
	return at;
}

/* The node at *at goes; what is below it stays. */
static void remove_node(struct sleeper **at)
{
	struct sleeper **leaf = at, *heir;

	while ((*leaf)->child[0] || (*leaf)->child[1])
		leaf = &(*leaf)->child[!(*leaf)->child[0]];
	heir = *leaf;
	*leaf = NULL;
	if (leaf == at)
		return;
	heir->child[0] = (*at)->child[0];
	heir->child[1] = (*at)->child[1];
	*at = heir;
}

/* s takes the place of node, which is of the same address. */
static void inherit_node(struct sleeper *s, const struct sleeper *node)
{
	s->last = node->last;
	s->child[0] = node->child[0];
	s->child[1] = node->child[1];
}

static void put(struct sleeper **at, struct sleeper *s, enum sema_place place)
{
	struct sleeper *node = *at;

	s->next = NULL;
	if (!node) {
		s->last = s;
		s->child[0] = s->child[1] = NULL;
		*at = s;
	} else if (place == SEMA_FIRST) {
		inherit_node(s, node);
		s->since = node->since;		/* that of the first is the oldest */
		s->next = node;
		*at = s;
	} else {
		node->last->next = s;
		node->last = s;
	}
}

/* Takes the first n sleepers of the node at *at, or all if there are fewer;
 * *taken is how many. A list, by next. */
static struct sleeper *take(struct sleeper **at, uint32_t n, uint32_t *taken)
{
	struct sleeper *first = *at, *s = first;

	*taken = 0;
	if (!first || n == 0)
		return NULL;
	for (*taken = 1; *taken < n && s->next; ++*taken)
		s = s->next;
	if (s->next) {
		inherit_node(s->next, first);
		*at = s->next;
		s->next = NULL;
	} else {
		remove_node(at);
	}
	return first;
}

/* ------------------------------------------------------------- mutex profile */

/*
 * Who unlocks is charged with the waits of those who go on, and of those who are left, for
 * whom the next unlock begins to count now. How long these waited is guessed by the first
 * one's wait, who goes on and whose was the longest, and that of the last, as Go does.
 * Bucket locked; goes: the first, left: the first of them.
 */
static int64_t charge_left(const struct sleeper *goes, struct sleeper *left, int64_t now)
{
	int64_t n = 0, wait;

	if (!left || !goes->since || !left->last->since)
		return 0;
	for (const struct sleeper *s = left; s; s = s->next)
		n++;
	wait = (now - goes->since + now - left->last->since) / 2;
	left->since = left->last->since = now;
	return wait * n;
}

/* left: the charge for them. */
static __attribute__((noinline)) void charge_taken(struct m *mp, const struct sleeper *s, int64_t left)
{
	int64_t now = os_now();

	for (; s; s = s->next, left = 0)
		if (s->since)
			profile_mutex_count(mp, now - s->since + left);
}

/* --------------------------------------------------------------- semaphore */

struct m *sema_acquire(struct m *mp, uint32_t *addr, enum sema_place place, enum wait_reason why)
{
	struct bucket *b = bucket_of(addr);
	struct sleeper *s = &mp->curg->sleeper;
	int64_t since = profile_wait_start();

	linger();
	lock_acquire(&b->lock);
	if (*addr > 0) {
		--*addr;
		lock_release(&b->lock);
		return mp;
	}
	s->gp = mp->curg;
	s->addr = addr;
	s->since = since;
	put(find(b, addr), s, place);
	mp = park(mp, park_unlock, &b->lock, why);
	profile_block_event(mp, since);
	return mp;
}

/* A list of up to n sleepers who have a unit now. */
static struct sleeper *give(uint32_t *addr, uint32_t n, int64_t *charge)
{
	struct bucket *b = bucket_of(addr);
	struct sleeper *list;
	uint32_t taken;

	lock_acquire(&b->lock);
	list = take(find(b, addr), n, &taken);
	if (unlikely(taken < n))
		*addr += n - taken;
	else if (unlikely(load_relaxed(&profile_wanted) & PROFILE_MUTEX))
		*charge = charge_left(list, *find(b, addr), os_now());
	lock_release(&b->lock);
	linger();
	return list;
}

void sema_release(struct m *mp, uint32_t *addr, uint32_t n)
{
	int64_t charge = 0;
	struct sleeper *s = give(addr, n, &charge), *next;

	if (unlikely(load_relaxed(&profile_wanted) & PROFILE_MUTEX))
		charge_taken(mp, s, charge);
	for (bool first = true; s; s = next, first = false) {
		next = s->next;		/* its own again once it is ready */
		if (first)
			g_ready(mp, s->gp);
		else
			g_ready_in_order(mp, s->gp);
	}
}

uint32_t sema_sleepers(const uint32_t *addr)
{
	struct bucket *b = bucket_of(addr);
	uint32_t n = 0;

	lock_acquire(&b->lock);
	for (const struct sleeper *s = *find(b, addr); s; s = s->next)
		n++;
	lock_release(&b->lock);
	return n;
}

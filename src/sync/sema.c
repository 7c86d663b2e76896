/*
 * sema.c - sleeping on an address: what the sync types are made of.
 *
 * A type of sync keeps its state in a word of its own, and comes here only when a
 * goroutine has to wait. As in Go's runtime/sema.go the sleepers are in a table, found by
 * the address, so that a mutex is eight bytes. The word at the address holds units that
 * were given to goroutines that are still on their way here.
 *
 * The rule
 *
 * The object may be freed as soon as its last user has what it waited for, while the
 * goroutine that gave it is still in sema_release. So:
 *
 *	A unit is given only to a goroutine that is owed it: it has put down, in the
 *	type's own state, that it comes for one, and does not leave before it has one.
 *
 * So the goroutines inside sema_acquire, or on their way into it, are at least as many as
 * the units given and not taken plus the releases under way. While a release is under
 * way, one of them keeps the object alive. A release touches the word only under the lock
 * of its bucket, when it finds fewer sleepers than units. The other goroutines are on
 * their way then, and cannot get past that lock before the release is done with the word.
 * By the same rule no goroutine is woken for nothing, and an address that is reused for
 * another object gets no late release of the old one.
 *
 * Rejected: counting units with atomics on the word, as Go does. A release that adds its
 * unit to the word and then looks for sleepers may find the object gone and another in
 * its place, and wake a sleeper of that.
 *
 * The tree
 *
 * A bucket may have sleepers on many addresses: a million goroutines, each waiting for a
 * mutex of its own, are four thousand to a bucket. The first sleeper of each address is a
 * node of a binary tree. The other sleepers of the address hang from it in a list, in
 * order. The address is hashed by a multiplication that loses nothing. The top byte of
 * the hash chooses the bucket; its next bits choose left or right at each level:
 *
 *	Invariant: what is below child[b] of a node at depth d has bit d equal to b, and
 *	shares all bits before d with that node.
 *
 * So any node below a node may replace it, which makes removal simple. The tree is never
 * deeper than 56, and usually about the logarithm of its size. (Rejected: Go's treap,
 * which needs rotations, parents and random numbers.)
 */
#include "sync/sema.h"

#include "sched/init.h"
#include "sched/linger.h"
#include "sync/wait_profile.h"

#define BUCKET_BITS 8

static struct bucket {
	_Alignas(CACHE_LINE) struct lock lock;
	struct sleeper *tree;
} buckets[1 << BUCKET_BITS];

struct wait_profile wait_profile;

static void sema_init(void)
{
#if GORO_CHECKS		/* release builds do not read it: 4 pages less to touch */
	for (int i = 0; i < 1 << BUCKET_BITS; i++)
		buckets[i].lock.rank = RANK_SEMA;
#endif
}

HOOK(at_start, START_STATE, sema_init);

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

/* Where the node of addr hangs, or would hang. */
static struct sleeper **find(struct bucket *b, const uint32_t *addr)
{
	struct sleeper **at = &b->tree;
	uint64_t h = hash(addr);

	check(lock_is_held(&b->lock));
	for (unsigned depth = BUCKET_BITS; *at && (*at)->addr != addr; depth++) {
		check((hash((*at)->addr) ^ h) >> (64 - depth) == 0);
		at = &(*at)->child[h >> (63 - depth) & 1];
	}
	return at;
}

/* Removes the node at *at. What is below it stays. */
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

/* s takes the place of node. Both are of one address. */
static void inherit_node(struct sleeper *s, const struct sleeper *node)
{
	check(s->addr == node->addr);
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
		s->since = node->since;		/* the first one's is the oldest */
		s->next = node;
		*at = s;
	} else {
		check(!node->last->next);
		node->last->next = s;
		node->last = s;
	}
}

/* Takes the first n sleepers of the node at *at, or all if there are fewer. *taken is
 * their number. Returns a list, linked by next. */
static struct sleeper *take(struct sleeper **at, uint32_t n, uint32_t *taken)
{
	struct sleeper *first = *at, *s = first;

	check(!first || (first->last && !first->last->next));
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
 * The goroutine that unlocks is charged with the waits of the sleepers that it wakes, and
 * of those that it leaves, for which the next unlock begins to count now. The waits of
 * those left are estimated as Go does, from the wait of the first woken, which is the
 * longest, and that of the last one left. Bucket locked. goes: the first woken; left: the
 * first one left.
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

/* left: the charge for those left. */
static __attribute__((noinline)) void charge_taken(struct m *mp, const struct sleeper *s, int64_t left)
{
	int64_t now = os_now();

	for (; s; s = s->next, left = 0)
		if (s->since)
			wait_profile.mutex(mp, now - s->since + left);
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

/* A list of up to n sleepers, each of which has a unit now. */
static struct sleeper *give(uint32_t *addr, uint32_t n, int64_t *charge)
{
	struct bucket *b = bucket_of(addr);
	struct sleeper *list;
	uint32_t taken;

	lock_acquire(&b->lock);
	list = take(find(b, addr), n, &taken);
	if (unlikely(taken < n))
		*addr += n - taken;
	else if (unlikely(load_relaxed(&wait_profile.wanted) & PROFILE_MUTEX))
		*charge = charge_left(list, *find(b, addr), os_now());
	lock_release(&b->lock);
	linger();
	return list;
}

void sema_release(struct m *mp, uint32_t *addr, uint32_t n)
{
	int64_t charge = 0;
	struct sleeper *s = give(addr, n, &charge), *next;

	if (unlikely(load_relaxed(&wait_profile.wanted) & PROFILE_MUTEX))
		charge_taken(mp, s, charge);
	for (bool first = true; s; s = next, first = false) {
		check(s->addr == addr);
		next = s->next;		/* g_ready gives s back to its goroutine */
		if (first)
			g_ready(mp, s->gp);
		else
			g_ready_in_order(mp, s->gp);
	}
}

void sema_wait(uint32_t *addr, enum wait_reason why)
{
	struct m *mp = rt_enter_free();

	mp = sema_acquire(mp, addr, SEMA_LAST, why);
	rt_exit_free(mp);
}

void sema_wake(uint32_t *addr, uint32_t n)
{
	struct m *mp = rt_enter();

	sema_release(mp, addr, n);
	rt_exit(mp);
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

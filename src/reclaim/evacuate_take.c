/* evacuate_take.c - finds goroutines that have waited for long, and takes their stacks
 * away. The design is in evacuate.c. */
#include <errno.h>
#include <string.h>

#include "base/debug.h"
#include "base/throw.h"
#include "reclaim/evacuate_impl.h"
#include "sched/runtime.h"
#include "platform/userfault.h"

/* Stretches watched at most: each splits mappings of the process. */
#define EVACUATE_STRETCHES_MAX 8192
/* A stretch is evacuated if one in this many of its stacks can be. */
#define EVACUATE_SHARE 4

static uint32_t pages_of(const struct ground *g)
{
	size_t n = (g->r.slot_bytes - g->r.guard_bytes) / os_page_bytes;

	return n < EVACUATE_PAGES_MAX ? (uint32_t)n : EVACUATE_PAGES_MAX;
}

static uint32_t stamp_of(int64_t wait_since, uint64_t id)
{
	return (((uint32_t)(wait_since >> 10) * UINT32_C(2654435769)) ^ (uint32_t)id) | 1;
}

/* A number for the wait of a goroutine at rest, whose page is there. 0: it does not wait,
 * or is locked to its thread (see "What does not wait" in evacuate.c). */
static TOOL_RACY uint32_t stamp_peek(const struct g *gp)
{
	if (peek(&gp->status) != G_WAITING || peek(&gp->mp) || peek(&gp->lock_depth) != 0)
		return 0;
	return stamp_of(peek(&gp->wait_since), peek(&gp->id));
}

/* Writes to the page, so that it is no longer shared with a child made by fork. */
static TOOL_RACY void make_own(struct g *gp)
{
	fetch_add_relaxed(&gp->id, 0);
}

static void stage_clear(void)
{
	if (evacuation.stage_used > 0)
		os_release(&(struct os_range){ evacuation.stage, evacuation.stage_used * os_page_bytes }, 1);
	evacuation.stage_used = 0;
}

/* Puts a page back that was just taken. */
static void put_back(char *to, char *staged)
{
	if (userfault_move(to, staged) == 0)
		return;
	if (evacuate_put(to, staged) == -EEXIST)
		evacuate_broken("a page was taken and is there", EEXIST);
	evacuation.stage_used++;		/* the page stays in the stage, too */
}

static struct copy *copy_make(const void *page)
{
	unsigned char *out = (unsigned char *)evacuation.page_buf;
	size_t n = shrink(page, os_page_bytes, out, EVACUATE_WORTH_BYTES);
	struct copy *c;

	if (n == 0 || !(c = compact_alloc(offsetof(struct copy, data) + n + SHRINK_SLACK)))
		return NULL;
	memcpy(c->data, out, n);
	return c;
}

/* Takes one page; page 0 only if its goroutine is found waiting in it. */
static bool take_page(struct ground *g, uint32_t slot, struct g *gp, uint32_t page)
{
	struct memo *n = &g->memo[slot];
	char *from = page_of(g, slot, page), *to = evacuation.stage + evacuation.stage_used * os_page_bytes;
	struct copy *c = NULL;
	int r = userfault_move(to, from);

	check(evacuation.turn & 1 && evacuation.stage_used < STAGE_PAGES);
	check(page == 0 ? !n->copies : n->copies->page + 1u == page);
	if (r == -EBUSY && page == 0) {
		make_own(gp);
		r = userfault_move(to, from);
	}
	if (r != 0)
		return false;
	if (page > 0 || stamp_peek((struct g *)(to + ((char *)gp - from))) == n->stamp)
		c = copy_make(to);
	if (!c) {
		put_back(from, to);
		return false;
	}
	evacuation.stage_used++;
	c->page = (uint16_t)page;
	c->next = n->copies;
	n->copies = c;
	return true;
}

/* Takes page 0 and those below it, down to the first that is not there. */
static void take_away(struct ground *g, uint32_t slot)
{
	struct memo *n = &g->memo[slot];
	struct g *gp = stack_slot_g(g->region, slot);
	uint32_t page = 0;

	if (!gp || n->copies || stamp_peek(gp) != n->stamp)
		return;
	while (page < pages_of(g) && take_page(g, slot, gp, page))
		page++;
	if (page == 0) {
		n->stuck = true;
		return;
	}
	g->stretch[slot / EVACUATE_STRETCH].away++;
	store_relaxed(&evacuation.away_n, evacuation.away_n + 1);
	count_up(&evacuation.away_ever, 1);
}

/* ----------------------------------------------------------------- looking */

/* Looks at a slot once more. True: its goroutine has waited for long enough. */
static bool look(struct ground *g, uint32_t slot)
{
	struct memo *n = &g->memo[slot];
	struct g *gp = n->copies ? NULL : stack_slot_g(g->region, slot);
	uint32_t stamp = gp ? stamp_peek(gp) : 0;

	if (n->copies) {
		/* after long enough away, earlier returns are forgotten */
		if (++n->still >= 1u << EVACUATE_DOUBLINGS)
			n->returns = n->still = 0;
		return false;
	}
	if (stamp == 0 || stamp != n->stamp) {
		n->stamp = stamp;
		n->still = 0;
		n->stuck = false;
		evacuation.pending |= stamp != 0;
		return false;
	}
	if (n->stuck)
		return false;
	if (n->still < UINT8_MAX)
		n->still++;
	if (n->still >= 1u << n->returns)
		return true;
	evacuation.pending = true;
	return false;
}

/* Prefetches what look reads: a G that has waited for long is in no cache. */
static void fetch_all(const struct ground *g, uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++) {
		const struct g *gp = g->memo[i].copies ? NULL : stack_slot_g(g->region, i);

		if (gp) {
			__builtin_prefetch(&gp->status);
			__builtin_prefetch(&gp->wait_since);
		}
	}
}

/* How many stacks of a stretch are ripe; -1: a thread is giving stacks back. */
static int look_at_all(struct ground *g, uint32_t k)
{
	uint32_t first = k * EVACUATE_STRETCH, end = stretch_end(g, k);
	int ripe = 0;

	if (!stack_keep_try())
		return -1;
	fetch_all(g, first, end);
	for (uint32_t i = first; i < end; i++)
		ripe += g->memo[i].ripe = look(g, i);
	stack_keep_end();
	return ripe;
}

static bool is_worth_it(const struct ground *g, uint32_t k, int ripe)
{
	const struct stretch *s = &g->stretch[k];

	if (ripe <= 0 || evacuation.pass < s->rests_until)
		return false;
	if (s->watched || load_relaxed(&debug.evacuate) > 0)
		return true;
	return stack_region_begun(g->region) >= stretch_end(g, k) && evacuation.watched_n < EVACUATE_STRETCHES_MAX &&
	       (uint32_t)ripe * EVACUATE_SHARE >= stretch_end(g, k) - k * EVACUATE_STRETCH;
}

static bool watch(struct ground *g, uint32_t k)
{
	struct stretch *s = &g->stretch[k];
	uint32_t first = k * EVACUATE_STRETCH;

	if (s->watched)
		return true;
	if (userfault_watch(g->r.base + (size_t)first * g->r.slot_bytes,
	                    (stretch_end(g, k) - first) * g->r.slot_bytes) != 0) {
		s->rests_until = evacuation.pass + (4u << EVACUATE_DOUBLINGS);
		return false;
	}
	s->watched = true;
	evacuation.watched_n++;
	return true;
}

/* Takes a batch of *ripe stacks away. False: none is left, or something else is first. */
static bool take_batch(struct ground *g, uint32_t k, int *ripe)
{
	bool go_on = evacuate_turn_begin() && *ripe > 0 && stack_keep_try();
	uint32_t end = stretch_end(g, k), taken = 0;

	for (uint32_t i = k * EVACUATE_STRETCH; go_on && i < end && taken < EVACUATE_BATCH; i++) {
		if (!g->memo[i].ripe)
			continue;
		g->memo[i].ripe = false;
		--*ripe;
		take_away(g, i);
		taken++;
	}
	if (go_on) {
		stage_clear();
		stack_keep_end();
	}
	evacuate_turn_end();
	return go_on;
}

void evacuate_see_to(struct ground *g, uint32_t k)
{
	struct stretch *s = &g->stretch[k];
	int ripe;

	check(stretch_away(g, k) == s->away && (s->watched || s->away == 0));
	s->fills = 0;
	ripe = look_at_all(g, k);
	if (!is_worth_it(g, k, ripe) || !watch(g, k)) {
		evacuation.pending |= ripe < 0 || (ripe > 0 && evacuation.pass < s->rests_until);
		return;
	}
	while (s->watched && take_batch(g, k, &ripe))
		evacuate_serve();
	evacuation.pending |= ripe > 0;
	if (s->away == 0)
		evacuate_unwatch(g, k);
}

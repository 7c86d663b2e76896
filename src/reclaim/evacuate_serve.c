/*
 * evacuate_serve.c - pages that somebody waits for are put back: the server's first duty.
 * The design is in evacuate.c.
 */
#include <errno.h>

#include "debug.h"
#include "evacuate_impl.h"
#include "runtime.h"
#include "userfault.h"

_Noreturn void evacuate_broken(const char *what)
{
	userfault_speak();
	throw("evacuate: %s", what);
}

static _Noreturn void cannot_put(int r)
{
	userfault_speak();
	throw("evacuate: a page cannot be put back: error %d", -r);
}

/* 0, -EEXIST, or -ESRCH: the process is ending. If there is no memory for the page just
 * now, tries again for EVACUATE_PUT_TRIES times. */
int evacuate_put(void *to, const void *from)
{
	uint32_t tries = load_relaxed(&evacuation.put_tries);

	for (;;) {
		int r = userfault_put(to, from);

		if (r == 0 || r == -EEXIST || r == -ESRCH)
			return r;
		if ((r != -ENOMEM && r != -EAGAIN) || tries-- == 0)
			cannot_put(r);
		os_sleep(EVACUATE_PUT_AGAIN_NS);
	}
}

void evacuate_copies_free(struct memo *n)
{
	for (struct copy *c = n->copies, *next; c; c = next) {
		next = c->next;
		compact_free(c);
	}
	n->copies = NULL;
	n->back = false;
}

static bool is_away(const struct memo *n)
{
	return n->copies && !n->back;
}

/* From the lowest page to that of the G, whose waker goes on with it. True: the page is
 * one of them. */
static bool bring_back(struct ground *g, uint32_t slot, const char *page, bool free)
{
	struct memo *n = &g->memo[slot];
	bool among = false;

	for (struct copy *c = n->copies; c; c = c->next) {
		char *to = page_of(g, slot, c->page);

		unshrink(c->data, evacuation.page_buf, os_page_bytes);
		if (evacuate_put(to, evacuation.page_buf) == -EEXIST)
			evacuate_broken("a page is away and there");
		among |= to == page;
	}
	n->still = 0;
	n->back = true;
	if (free)
		evacuate_copies_free(n);
	else
		evacuation.kept_back = true;
	g->stretch[slot / EVACUATE_STRETCH].away--;
	store_relaxed(&evacuation.away_n, evacuation.away_n - 1);
	return among;
}

void evacuate_unwatch(struct ground *g, uint32_t k)
{
	struct stretch *s = &g->stretch[k];
	uint32_t first = k * EVACUATE_STRETCH;

	check(s->away == 0);
	if (!s->watched)
		return;
	s->watched = false;
	evacuation.watched_n--;
	userfault_unwatch(g->r.base + (size_t)first * g->r.slot_bytes,
	                  (stretch_end(g, k) - first) * g->r.slot_bytes);
}

/* Nothing is evacuated there for so many passes. */
static void give_up(struct ground *g, uint32_t k, uint32_t passes, bool free)
{
	struct stretch *s = &g->stretch[k];

	for (uint32_t i = k * EVACUATE_STRETCH, end = stretch_end(g, k); s->away > 0 && i < end; i++)
		if (is_away(&g->memo[i]))
			bring_back(g, i, NULL, free);
	s->rests_until = evacuation.pass + passes;
	evacuate_unwatch(g, k);
}

static void came_back(struct ground *g, uint32_t slot, bool free)
{
	uint32_t k = slot / EVACUATE_STRETCH;
	struct stretch *s = &g->stretch[k];
	struct memo *n = &g->memo[slot];
	int64_t now = os_now();

	if (n->returns < EVACUATE_DOUBLINGS && load_relaxed(&debug.evacuate) == 0)
		n->returns++;
	if (now - s->burst_at > EVACUATE_BURST_NS) {
		s->burst_at = now;
		s->burst = 0;
	}
	if (++s->burst >= EVACUATE_BURST)
		give_up(g, k, 1, free);
	else if (s->away == 0)
		evacuate_unwatch(g, k);
}

static void fill(struct ground *g, uint32_t slot, char *page, bool free)
{
	uint32_t k = slot / EVACUATE_STRETCH;
	struct stretch *s = &g->stretch[k];

	/* -EEXIST: who waited has been served since. */
	if (evacuate_put(page, evacuation.zero_page) == -EEXIST) {
		userfault_wake(page);
		return;
	}
	if (++s->fills <= EVACUATE_FILLS_MAX)
		return;
	if (s->trouble < EVACUATE_DOUBLINGS)
		s->trouble++;
	give_up(g, k, 4u << s->trouble, free);
}

/* Somebody waits at this address; or has waited, and is served already. */
static void on_fault(uintptr_t addr)
{
	char *page = (char *)(addr & ~(uintptr_t)(os_page_bytes - 1));
	uint32_t region, slot;
	struct ground *g;
	bool free;

	if (!stack_slot_of(page, &region, &slot)) {
		/* mlockall touches all there is. Then nothing can be moved there any more, and
		 * what is locked is not to be moved anyway. */
		if (page < evacuation.stage || page >= evacuation.stage + STAGE_PAGES * os_page_bytes)
			evacuate_broken("a fault outside of the stacks");
		if (evacuate_put(page, evacuation.zero_page) == -EEXIST)
			userfault_wake(page);
		return;
	}
	g = evacuation.grounds[region];
	if (!g->stretch[slot / EVACUATE_STRETCH].watched) {
		userfault_wake(page);
		return;
	}
	free = evacuate_turn_begin();
	if (!is_away(&g->memo[slot])) {
		fill(g, slot, page, free);
	} else {
		bool among = bring_back(g, slot, page, free);

		came_back(g, slot, free);
		if (!among && g->stretch[slot / EVACUATE_STRETCH].watched)
			fill(g, slot, page, free);
	}
	evacuate_turn_end();
}

/* All who wait; false: nobody did. */
bool evacuate_serve(void)
{
	uintptr_t addr[16];
	bool any = false;
	size_t n;

	while ((n = userfault_read(addr, 16)) > 0) {
		for (size_t i = 0; i < n; i++)
			on_fault(addr[i]);
		any = true;
	}
	return any;
}

/* Where two came soon after each other the next is about to: looks on for as long as
 * waking takes. */
void evacuate_serve_all(void)
{
	static int64_t last_at;
	int64_t now, until = 0;

	do {
		bool any = evacuate_serve();

		now = os_now();
		if (any) {
			store_relaxed(&evacuation.alive, 1);
			if (now - last_at < EVACUATE_SOON_NS && os_many_cpus)
				until = now + SPIN_BEFORE_SLEEP_NS;
			last_at = now;
		}
		cpu_relax();
	} while (now < until);
}

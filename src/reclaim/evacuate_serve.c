/* evacuate_serve.c - pages that threads wait for are put back: the server's first duty.
 * The design is in evacuate.c. */
#include <errno.h>

#include "base/debug.h"
#include "base/throw.h"
#include "reclaim/evacuate_impl.h"
#include "sched/runtime.h"
#include "platform/userfault.h"

/* If this many stacks come back within this time their whole stretch does: one alone
 * takes several times as long as one of many. */
#define EVACUATE_BURST    4
#define EVACUATE_BURST_NS 10000000
/* Another fault is likely if the last two came closer together. */
#define EVACUATE_SOON_NS 200000
/* If more new pages are needed between two passes the stretch is left alone for this many
 * passes: each page takes ten times as long as without. */
#define EVACUATE_FILLS_MAX  32
#define EVACUATE_FILLS_REST 64

_Noreturn void evacuate_broken(const char *what, int error)
{
	userfault_speak();
	throw("evacuate: %s: error %d", what, error);
}

/* If there is no memory for the page just now, tries again, EVACUATE_PUT_TRIES times. */
int evacuate_put(void *to, const void *from)
{
	uint32_t tries = load_relaxed(&evacuation.put_tries);

	for (;;) {
		int r = userfault_put(to, from);

		if (r == 0 || r == -EEXIST || r == -ESRCH)
			return r;
		if ((r != -ENOMEM && r != -EAGAIN) || tries-- == 0)
			evacuate_broken("a page cannot be put back", -r);
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

/* Puts the pages of a stack back, from the lowest to that of the G, after which its waker
 * goes on. True: page is one of them. */
static bool bring_back(struct ground *g, uint32_t slot, const char *page, bool free)
{
	struct memo *n = &g->memo[slot];
	bool among = false;

	check(evacuation.turn & 1 && memo_is_away(n));
	check(g->stretch[slot / EVACUATE_STRETCH].watched);
	for (struct copy *c = n->copies; c; c = c->next) {
		char *to = page_of(g, slot, c->page);

		check(!c->next == (c->page == 0));	/* the G's page comes last */
		unshrink(c->data, evacuation.page_buf, os_page_bytes);
		if (evacuate_put(to, evacuation.page_buf) == -EEXIST)
			evacuate_broken("a page is away and there", EEXIST);
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

/* Brings the stretch back, and evacuates nothing there for that many passes. */
static void give_up(struct ground *g, uint32_t k, uint32_t passes, bool free)
{
	struct stretch *s = &g->stretch[k];

	for (uint32_t i = k * EVACUATE_STRETCH, end = stretch_end(g, k); s->away > 0 && i < end; i++)
		if (memo_is_away(&g->memo[i]))
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

/* False: the page is there, as the fault was served meanwhile. */
static bool put_zeroes(char *page)
{
	if (evacuate_put(page, evacuation.zero_page) != -EEXIST)
		return true;
	userfault_wake(page);
	return false;
}

static void fill(struct ground *g, uint32_t slot, char *page, bool free)
{
	uint32_t k = slot / EVACUATE_STRETCH;
	struct stretch *s = &g->stretch[k];

	if (!put_zeroes(page) || ++s->fills <= EVACUATE_FILLS_MAX)
		return;
	give_up(g, k, EVACUATE_FILLS_REST, free);
}

/* A thread waits at this address; or has waited, and is served already. */
static void on_fault(uintptr_t addr)
{
	char *page = (char *)(addr & ~(uintptr_t)(os_page_bytes - 1));
	uint32_t region, slot;
	struct stretch *s;
	struct ground *g;
	bool free, among = false;

	if (!stack_slot_of(page, &region, &slot)) {
		/* mlockall touches all mapped memory, the stage too. Nothing can be moved
		 * there any more, which is right: locked memory is not to be moved. */
		if (page < evacuation.stage || page >= evacuation.stage + STAGE_PAGES * os_page_bytes)
			evacuate_broken("a fault outside of the stacks", EFAULT);
		put_zeroes(page);
		return;
	}
	g = evacuation.grounds[region];
	s = &g->stretch[slot / EVACUATE_STRETCH];
	if (!s->watched) {
		userfault_wake(page);
		return;
	}
	free = evacuate_turn_begin();
	if (memo_is_away(&g->memo[slot])) {
		among = bring_back(g, slot, page, free);
		came_back(g, slot, free);
	}
	if (!among && s->watched)
		fill(g, slot, page, free);
	evacuate_turn_end();
}

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

/* Where two faults came soon after each other a third is likely: spins for as long as
 * waking the server would take. */
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

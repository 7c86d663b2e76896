/*
 * evacuate_impl.h - what evacuate.c, evacuate_take.c and evacuate_serve.c share: what the
 * server knows of each stack. The design is in evacuate.c.
 *
 * A stack is away if its memo has copies and not back. A ground's structures belong to
 * the server, as long as no field says otherwise.
 */
#ifndef GORO_EVACUATE_IMPL_H
#define GORO_EVACUATE_IMPL_H

#include "reclaim/compact.h"
#include "base/config.h"
#include "reclaim/evacuate.h"
#include "platform/os.h"
#include "reclaim/shrink.h"
#include "stack/stack.h"

/* Fewer goroutines than this are not worth a thread. */
#define EVACUATE_MIN_ALIVE 2048
/* Slots of a stretch: few enough that running goroutines meet few evacuated ones there,
 * and enough that a million goroutines make 8,000 mappings of the system's 65,530. */
#define EVACUATE_STRETCH 128
/* Stacks taken away between two looks for faults. */
#define EVACUATE_BATCH 8
/* What a page must shrink to at least, and the pages taken of a stack at most. */
#define EVACUATE_WORTH_BYTES 2048
#define EVACUATE_PAGES_MAX   16
/* How often the number of looks that a stack must have been seen waiting may double. */
#define EVACUATE_DOUBLINGS 6
/* If the system has no memory for a page that is to come back, the server tries again
 * this often at this interval: for 10 seconds. Then the process ends. */
#define EVACUATE_PUT_TRIES    100000
#define EVACUATE_PUT_AGAIN_NS 100000

/* A page that is away. */
struct copy {
	struct copy *next;	/* of the same stack, the next page above */
	uint16_t page;		/* counted from the top; page 0 has the G */
	unsigned char data[];	/* what shrink wrote */
};
#define COPY_BYTES_MAX (offsetof(struct copy, data) + EVACUATE_WORTH_BYTES + SHRINK_SLACK)
_Static_assert(COPY_BYTES_MAX <= COMPACT_MAX, "evacuate: a page in one piece");

/* A slot of a stack. */
struct memo {
	struct copy *copies;	/* the pages that are away, lowest first; NULL: none */
	uint32_t stamp;		/* stamp_of its wait at the last look; 0: none */
	uint8_t still;		/* looks in a row that found it waiting, or away */
	uint8_t returns;	/* times that it came back soon */
	bool stuck;		/* it cannot be taken away during this wait */
	bool ripe;		/* this pass is to take it away */
	bool back;		/* the pages are there, too: see "Fork" */
};

struct stretch {
	bool watched;
	uint16_t away;		/* stacks */
	uint16_t fills;		/* new pages put there since the last pass */
	uint16_t burst;		/* stacks that came back since burst_at */
	int64_t burst_at;	/* when the first of the burst came back */
	uint32_t rests_until;	/* the pass until which nothing is evacuated here */
};

/* A region of stack.c, and what is known of it. */
struct ground {
	struct stack_region r;
	uint32_t region;
	struct memo *memo;		/* one for each slot */
	struct stretch *stretch;
};

#define STAGE_PAGES (EVACUATE_BATCH * EVACUATE_PAGES_MAX)

extern struct evacuation {
	/* Atomic: shared with other threads. */
	uint32_t alive;		/* the program has run since the last pass began */
	uint32_t held;		/* forks under way */
	uint32_t turn;		/* odd while the server works on copies */
	size_t away_n;		/* stacks */
	uint64_t away_ever;	/* stacks taken away; for tests */
	uint32_t put_tries;	/* EVACUATE_PUT_TRIES, unless a test sets less */

	/* The server's own. */
	struct ground *grounds[STACK_REGIONS_MAX];
	uint32_t watched_n;	/* stretches */
	uint32_t pass;
	bool pending;		/* a later pass may find a stack to take away */
	bool kept_back;		/* some memo has back set */
	char *stage;		/* address space that pages are moved to */
	size_t stage_used;
	char *page_buf, *zero_page;
} evacuation;

static inline char *page_of(const struct ground *g, uint32_t slot, uint32_t page)
{
	return g->r.base + (size_t)(slot + 1) * g->r.slot_bytes - (size_t)(page + 1) * os_page_bytes;
}

static inline bool memo_is_away(const struct memo *n)
{
	return n->copies && !n->back;
}

static inline uint32_t stretch_end(const struct ground *g, uint32_t k)
{
	uint32_t end = (k + 1) * EVACUATE_STRETCH;

	return end < g->r.slots ? end : g->r.slots;
}

/* The stacks of a stretch that are away, counted: stretch.away, for checks. */
static inline uint32_t stretch_away(const struct ground *g, uint32_t k)
{
	uint32_t n = 0;

	for (uint32_t i = k * EVACUATE_STRETCH; i < stretch_end(g, k); i++)
		n += memo_is_away(&g->memo[i]);
	return n;
}

/* ---- evacuate.c */

/* Around all work on copies. False: a fork is under way, so nothing may be evacuated and
 * the copies of what is put back are kept. */
bool evacuate_turn_begin(void);
void evacuate_turn_end(void);

/* ---- evacuate_take.c */

/* Looks at a stretch, and takes its stacks away that have waited for long. */
void evacuate_see_to(struct ground *g, uint32_t k);

/* ---- evacuate_serve.c */

/* Serves all faults that are there; false: there was none. */
bool evacuate_serve(void);
/* The same, and spins for the faults that are about to follow. */
void evacuate_serve_all(void);
/* Puts a copy of a page where one is missing. 0, -EEXIST; or -ESRCH: the process ends. */
int evacuate_put(void *to, const void *from);
/* Watches the stretch no more. Nothing of it is away. */
void evacuate_unwatch(struct ground *g, uint32_t k);
void evacuate_copies_free(struct memo *n);
_Noreturn void evacuate_broken(const char *what, int error);

#endif

/*
 * evacuate_impl.h - what evacuate.c, evacuate_take.c and evacuate_serve.c share: what is
 * known of each stack, and what the server keeps of its own. The design is in evacuate.c.
 */
#ifndef GORO_EVACUATE_IMPL_H
#define GORO_EVACUATE_IMPL_H

#include "compact.h"
#include "config.h"
#include "evacuate.h"
#include "os.h"
#include "shrink.h"
#include "stack.h"

/* A page that is away. */
struct copy {
	struct copy *next;	/* of the same stack, upwards */
	uint16_t page;		/* from the top; 0 has the G */
	unsigned char data[];	/* by shrink */
};
#define COPY_BYTES_MAX (offsetof(struct copy, data) + EVACUATE_WORTH_BYTES + SHRINK_SLACK)
_Static_assert(COPY_BYTES_MAX <= COMPACT_MAX, "evacuate: a page in one piece");

/* What is known of a slot. */
struct memo {
	struct copy *copies;	/* its pages that are away */
	uint32_t stamp;		/* since when it waits, at the last look; 0: it does not */
	uint8_t still;		/* looks in a row that found it so */
	uint8_t returns;	/* times it came back soon */
	bool stuck;		/* it could not be taken, and will not until it has run */
	bool back;		/* the pages are there as well: see "Fork" */
};

struct stretch {
	bool watched;
	uint8_t trouble;	/* how often it was given up */
	uint16_t away;		/* stacks */
	uint16_t fills;		/* pages put where there was none, in this pass */
	uint16_t burst;		/* stacks that came back .. */
	int64_t burst_at;	/* .. since then */
	uint32_t rests_until;	/* pass */
};

/* A region of stack.c's and what is known of it. */
struct ground {
	struct stack_region r;
	uint32_t region;
	struct memo *memo;		/* a slot */
	struct stretch *stretch;
};

#define STAGE_PAGES (EVACUATE_BATCH * EVACUATE_PAGES_MAX)

extern struct evacuation {
	/* Shared with others. */
	uint32_t alive;		/* the program has run since the last pass began */
	uint32_t held;		/* forks under way */
	uint32_t turn;		/* odd: the server is at work on copies */
	size_t away_n;		/* stacks */
	uint64_t away_ever;
	uint32_t put_tries;	/* EVACUATE_PUT_TRIES, or what a test has set */

	/* The server's. */
	struct ground *grounds[STACK_REGIONS_MAX];
	uint32_t watched_n;	/* stretches */
	uint32_t pass;
	bool pending;		/* somebody may be evacuated at a later pass */
	bool kept_back;		/* some memo says back */
	char *stage;		/* pages on their way */
	size_t stage_used;
	char *page_buf, *zero_page;
} evacuation;

static inline char *page_of(const struct ground *g, uint32_t slot, uint32_t page)
{
	return g->r.base + (size_t)(slot + 1) * g->r.slot_bytes - (size_t)(page + 1) * os_page_bytes;
}

static inline uint32_t stretch_end(const struct ground *g, uint32_t k)
{
	uint32_t end = (k + 1) * EVACUATE_STRETCH;

	return end < g->r.slots ? end : g->r.slots;
}

/* ---- evacuate.c */

/* Around all that is done to copies. True: nobody forks; else nothing may be evacuated, and
 * copies of what is put back are kept. */
bool evacuate_turn_begin(void);
void evacuate_turn_end(void);

/* ---- evacuate_take.c */

/* One stretch in a pass. */
void evacuate_see_to(struct ground *g, uint32_t k);

/* ---- evacuate_serve.c */

/* All who wait; false: nobody did. */
bool evacuate_serve(void);
/* .. and those who are about to. */
void evacuate_serve_all(void);
/* Puts a copy of a page where one is missing. 0, or -EEXIST. */
int evacuate_put(void *to, const void *from);
/* Nothing of the stretch is away. */
void evacuate_unwatch(struct ground *g, uint32_t k);
void evacuate_copies_free(struct memo *n);
_Noreturn void evacuate_broken(const char *what);

#endif

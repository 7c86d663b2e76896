/*
 * stack.h - the room stack: the stacks of goroutines, made, guarded and given back.
 *
 * The top of a stack is its goroutine, a struct g. The room knows only the size of a
 * struct g and the place of its struct stack, which describes the stack (stack_init). It
 * may use base and platform. All of it is in stack.c.
 */
#ifndef GORO_STACK_H
#define GORO_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/config.h"

struct g;

/* A stack, as its goroutine knows it. */
struct stack {
	char *lo;		/* lowest usable byte */
	char *hi;		/* end of what contexts may use. Relaxed stores, as of lo,
				 * for backtrace_asleep */
};

/* Tops lie at this many distances from a page's end, this far apart: "Colours". */
#define STACK_COLOURS      4
#define STACK_COLOUR_BYTES (7 * CACHE_LINE)
/* The most that a struct g may take, so that it is in the first page of its stack. */
#define STACK_TOP_MAX (4096 - CACHE_LINE - STACK_COLOURS * STACK_COLOUR_BYTES)

/* The usual stack, the smallest and the largest. Only what is touched takes memory. */
#define STACK_DEFAULT_BYTES (256 << 10)
#define STACK_MIN_BYTES     (16 << 10)
#define STACK_MAX_BYTES     (1 << 30)
#define STACK_CLASSES 17	/* 16 KiB << class, up to 1 GiB */

/* The default class: GORO_STACK or STACK_DEFAULT_BYTES. Set by stack_init. */
extern int stack_default_class;

/* Stacks in a batch, which are guarded together; the first batches are smaller. */
#define STACK_CARVE_BATCH 128
/* Batches that are prepared ahead, at most. Their first pages take 2 MiB. */
#define STACK_AHEAD_MAX   4

/* top_bytes: the size of a struct g; stack_at: where in it its struct stack is. */
void stack_init(size_t top_bytes, size_t stack_at);

/* The smallest class of at least n bytes; -1: larger than the largest. */
int stack_class(size_t n);
size_t stack_class_bytes(int cls);

#define STACK_TAKE_MAX 64

/* Takes up to n stacks of a class, cold or fresh, and no more than STACK_TAKE_MAX. Each
 * is returned as the G at its top, zeroed but for its struct stack. The number taken: 0
 * if there is no memory. */
size_t stack_take(int cls, struct g **out, size_t n);

/* Whether stacks of the default class are to be prepared ahead of their use. If so, a
 * thread that has time calls stack_prepare until that returns false. */
bool stack_wants_more(void);
bool stack_prepare(void);

/* Gives the memory of n stacks, with the Gs in them, back to the system. */
void stack_give_back(struct g **gs, size_t n);

/* What lies at an address; *gp: the G of that stack, or NULL. Any context, no lock. */
enum stack_place { STACK_NOT, STACK_GUARD, STACK_INSIDE };
enum stack_place stack_find(const void *addr, struct g **gp);

/* Whether the check word of a stack without a guard shows an overflow. */
bool stack_overflowed(const struct g *gp);

/* Calls fn for the G of every stack that is in use or in a pool. */
void stack_each(void (*fn)(struct g *gp, void *arg), void *arg);

/* Calls fn for the address space of all stacks, in use or not. */
void stack_each_region(void (*fn)(const void *lo, const void *hi, void *arg), void *arg);

size_t stack_bytes_reserved(void);

/* ---- for evacuate.c, which looks at all stacks from outside */

/* Regions of slots, in the order in which they were made; none is ever unmade. Slot i is
 * [base + i * slot_bytes, base + (i + 1) * slot_bytes), guard first. */
#define STACK_REGIONS_MAX (1 << 16)
struct stack_region {
	char *base;
	size_t slot_bytes, guard_bytes;
	uint32_t slots;
};
uint32_t stack_regions(void);
struct stack_region stack_region(uint32_t region);
/* The first slot that was never used. */
uint32_t stack_region_begun(uint32_t region);
/* The slot that an address lies in. False: in none. */
bool stack_slot_of(const void *addr, uint32_t *region, uint32_t *slot);
/* The G of a slot that is in use or in a pool, and so has its first page; else NULL. */
struct g *stack_slot_g(uint32_t region, uint32_t slot);

/* In between no stack is given back. False: a thread is doing so; does not wait. */
bool stack_keep_try(void);
void stack_keep_end(void);

#endif

/*
 * stack.h - goroutine stacks. Defined in stack.c, which explains them.
 */
#ifndef GORO_STACK_H
#define GORO_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct g;

#define STACK_CLASSES 17	/* 16 KiB << class, up to 1 GiB */

/* The default class: GORO_STACK or STACK_DEFAULT_BYTES. Set by stack_init. */
extern int stack_default_class;

void stack_init(void);

/* The smallest class of at least n bytes; -1: larger than the largest. */
int stack_class(size_t n);
size_t stack_class_bytes(int cls);

#define STACK_TAKE_MAX 64

/* Takes up to n stacks of a class, cold or fresh, and no more than STACK_TAKE_MAX; each
 * is returned as the G at its top, zeroed but for stack_lo, stack_hi, stack_class. How
 * many: 0 if there is no memory. */
size_t stack_take(int cls, struct g **out, size_t n);

/* Stacks of the default class are to be prepared ahead of their use: whoever has
 * time calls stack_prepare until it says that there is nothing to do. */
bool stack_wants_more(void);
bool stack_prepare(void);

/* Gives the memory of n stacks, with the Gs in them, back to the system. */
void stack_give_back(struct g **gs, size_t n);

/* What lies at an address: for telling an overflow from other faults. Takes no
 * lock, for use in signal handlers. */
enum stack_place { STACK_NOT, STACK_GUARD, STACK_INSIDE };
enum stack_place stack_find(const void *addr, struct g **gp);

/* An unguarded stack (guards could not be had) shows an overflow by its check
 * word. */
bool stack_overflowed(const struct g *gp);

/* Calls fn for the G of every stack that is in use or in a pool. */
void stack_each(void (*fn)(struct g *gp, void *arg), void *arg);

/* .. and for the address space of all stacks, in use or not. */
void stack_each_region(void (*fn)(const void *lo, const void *hi, void *arg), void *arg);

size_t stack_bytes_reserved(void);

/* ---- for evacuate.c, which looks at all stacks from outside */

/* Regions of slots, in the order in which they were made, and never unmade. Slot i is
 * [base + i * slot_bytes, base + (i + 1) * slot_bytes), guard first. */
#define STACK_REGIONS_MAX (1 << 16)
struct stack_region {
	char *base;
	size_t slot_bytes, guard_bytes;
	uint32_t slots;
};
uint32_t stack_regions(void);
struct stack_region stack_region(uint32_t region);
uint32_t stack_region_begun(uint32_t region);	/* slots from there on were never used */
/* The slot that an address lies in; false: in none. */
bool stack_slot_of(const void *addr, uint32_t *region, uint32_t *slot);
/* The G of a slot that is in use or in a pool, and so has its first page; else NULL. */
struct g *stack_slot_g(uint32_t region, uint32_t slot);

/* From one to the other no stack is given back. false: some are being given back at this
 * moment; does not wait. */
bool stack_keep_try(void);
void stack_keep_end(void);

#endif

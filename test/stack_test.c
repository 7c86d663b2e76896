/*
 * stack_test.c - stacks: each its own, guarded, and prepared ahead of their use.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "os.h"
#include "stack.h"
#include "test.h"
#include "types.h"

static struct g **take(size_t n)
{
	struct g **gs = calloc(n, sizeof *gs);

	os_init();
	stack_init();
	for (size_t got = 0, some; got < n; got += some) {
		some = stack_take(stack_default_class, gs + got, n - got);
		CHECK(some > 0);
	}
	return gs;
}

static int compare(const void *a, const void *b)
{
	uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;

	return (x > y) - (x < y);
}

static bool is_there(const struct g *gp)
{
	unsigned char there = 0;

	CHECK_EQ(mincore((void *)((uintptr_t)gp & -os_page_bytes), 1, &there), 0);
	return there & 1;
}

TEST(each_is_apart_from_the_others)
{
	enum { N = 3000 };
	struct g **gs = take(N);

	qsort(gs, N, sizeof *gs, compare);
	for (int i = 0; i < N; i++) {
		CHECK(gs[i]->stack_lo < gs[i]->stack_hi);
		CHECK((size_t)(gs[i]->stack_hi - gs[i]->stack_lo) > STACK_DEFAULT_BYTES / 2);
		CHECK(i == 0 || gs[i - 1]->stack_hi < gs[i]->stack_lo);
		/* All of it can be used. */
		memset(gs[i]->stack_lo, 0xa5, 8);
		gs[i]->stack_hi[-1] = 1;
	}
}

TEST(few_are_not_prepared_for)
{
	take(STACK_CARVE_BATCH * 7);
	CHECK(!stack_wants_more());
	CHECK(!stack_prepare());
}

TEST(many_are_prepared_for_in_proportion)
{
	int n = 0;

	take(STACK_CARVE_BATCH * 16);
	if (!os_many_cpus || os_guard_kind != OS_GUARD_MARKER)
		SKIP("one CPU, or no guard markers");
	CHECK(stack_wants_more());
	while (stack_prepare())
		n++;
	CHECK_EQ(n, 2);
	CHECK(!stack_wants_more());
	take(STACK_CARVE_BATCH * 100);
	for (n = 0; stack_prepare();)
		n++;
	CHECK_EQ(n, STACK_AHEAD_MAX);
}

/* The page of a prepared one is there before anybody touches it; and it is one
 * that nobody else has. */
TEST(prepared_ones_are_used_next)
{
	struct g **old = take(STACK_CARVE_BATCH * 8), *gp, *first;

	if (!os_many_cpus || os_guard_kind != OS_GUARD_MARKER)
		SKIP("one CPU, or no guard markers");
	/* The slot above the last one is the first of those to be prepared; their
	 * colours come round. */
	first = (struct g *)((char *)old[STACK_CARVE_BATCH * 8 - 4] +
	                     4 * (STACK_DEFAULT_BYTES + os_page_bytes));
	CHECK(!is_there(first));
	CHECK(stack_prepare());
	if (!is_there(first))
		SKIP("the system does not populate for others");
	CHECK_EQ(stack_take(stack_default_class, &gp, 1), 1);
	CHECK(gp == first);
	CHECK(stack_find(gp->stack_lo - 1, &gp) == STACK_GUARD);
}

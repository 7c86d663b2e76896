/*
 * stack_test.c - stacks: each its own, guarded, and prepared ahead of their use.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "os.h"
#include "refuse.h"
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

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

/* Guards cannot be had any more from this address on: no markers, and none by mprotect. */
static void refuse_guards_from(const char *addr)
{
	uint32_t lo = (uint32_t)(uintptr_t)addr, hi = (uint32_t)((uintptr_t)addr >> 32);
	struct sock_filter code[] = {
		REFUSE_LOAD(nr),
		REFUSE_UNLESS(SYS_process_madvise, 1),
		REFUSE_WITH(EPERM),
		REFUSE_UNLESS(SYS_mprotect, 3),
		REFUSE_LOAD(args[2]),
		REFUSE_UNLESS(PROT_NONE, 10),
		REFUSE_WITH(ENOMEM),
		REFUSE_UNLESS(SYS_madvise, 8),
		REFUSE_LOAD(args[2]),
		REFUSE_UNLESS(MADV_GUARD_INSTALL, 6),
		REFUSE_LOAD_UPPER(args[0]),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, hi, 3, 0),
		REFUSE_UNLESS(hi, 3),
		REFUSE_LOAD(args[0]),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, lo, 0, 1),
		REFUSE_WITH(ENOMEM),
		REFUSE_ALLOW,
	};

	refuse(code, sizeof code / sizeof *code);
}

/* The word below the stack can be read. The impossible first argument is looked at last. */
static bool is_unguarded(const struct g *gp)
{
	return syscall(SYS_rt_sigprocmask, -1, gp->stack_lo - 8, NULL, _NSIG / 8) == -1 && errno != EFAULT;
}

static int check_flags(struct g **gs, int n)
{
	int unguarded = 0;

	for (int i = 0; i < n; i++) {
		CHECK(!stack_overflowed(gs[i]));
		if (is_unguarded(gs[i])) {
			*(uint64_t *)(gs[i]->stack_lo - 8) = 1;
			CHECK(stack_overflowed(gs[i]));
			unguarded++;
		}
	}
	return unguarded;
}

TEST(guards_that_run_out_within_a_batch_are_kept)
{
	enum { N = STACK_CARVE_BATCH * 4, GUARDED = 200 };
	struct g *first = *take(1), **gs;
	int unguarded;

	if (os_guard_kind != OS_GUARD_MARKER)
		SKIP("no guard markers");
	refuse_guards_from(first->stack_lo + (size_t)GUARDED * (STACK_DEFAULT_BYTES + os_page_bytes));
	gs = calloc(N, sizeof *gs);
	for (size_t got = 0; got < N;)
		got += stack_take(stack_default_class, gs + got, N - got);
	CHECK(os_guard_kind != OS_GUARD_MARKER);
	unguarded = check_flags(gs, N);
	CHECK(unguarded > 0 && unguarded < N);
	CHECK_EQ(N - unguarded, GUARDED);
}

static size_t bytes_there(const char *at, size_t pages)
{
	unsigned char there[256];
	size_t n = 0;

	CHECK(pages <= sizeof there);
	CHECK_EQ(mincore((void *)(uintptr_t)at, pages * os_page_bytes, there), 0);
	for (size_t i = 0; i < pages; i++)
		n += there[i] & 1;
	return n * os_page_bytes;
}

TEST(what_is_reserved_is_not_there_where_all_that_is_mapped_is_locked)
{
	enum { PAGES = 256 };
	char *p;

	os_init();
	if (mlockall(MCL_FUTURE) != 0)
		SKIP("memory may not be locked");
	p = os_reserve(PAGES * os_page_bytes);
	CHECK(p);
	CHECK_EQ(bytes_there(p, PAGES), 0);
	p[0] = 1;
	CHECK_EQ(bytes_there(p, PAGES), os_page_bytes);
}

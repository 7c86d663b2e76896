/*
 * stack_test.c - stacks: each its own, guarded, and prepared ahead of their use.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "platform/os.h"
#include "refuse.h"
#include "stack/stack.h"
#include "test.h"
#include "sched/types.h"

static struct g **take(size_t n)
{
	struct g **gs = calloc(n, sizeof *gs);

	os_init();
	stack_init(sizeof(struct g), offsetof(struct g, stack));
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

static bool is_there(char *page)
{
	unsigned char there = 0;

	CHECK_EQ(mincore(page, 1, &there), 0);
	return there & 1;
}

static bool can_populate(void)
{
	char *p = os_map(os_page_bytes);

	os_populate(p, os_page_bytes, os_page_bytes, 1);
	return is_there(p);
}

static char *page_of(struct g *gp)
{
	return (char *)gp - (uintptr_t)gp % os_page_bytes;
}

TEST(each_is_apart_from_the_others)
{
	enum { N = 3000 };
	struct g **gs = take(N);

	qsort(gs, N, sizeof *gs, compare);
	for (int i = 0; i < N; i++) {
		CHECK(gs[i]->stack.lo < gs[i]->stack.hi);
		CHECK((size_t)(gs[i]->stack.hi - gs[i]->stack.lo) > STACK_DEFAULT_BYTES / 2);
		CHECK(i == 0 || gs[i - 1]->stack.hi < gs[i]->stack.lo);
		/* All of it can be used. */
		memset(gs[i]->stack.lo, 0xa5, 8);
		gs[i]->stack.hi[-1] = 1;
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

/* The page of a prepared one is there before its first use; and it is one that no other
 * goroutine has. It lies above what is left of the batch that is in use. */
TEST(prepared_ones_are_used_next)
{
	enum { OLD = STACK_CARVE_BATCH * 8 };
	char *last = page_of(take(OLD)[OLD - 1]);
	size_t slot = STACK_DEFAULT_BYTES + os_page_bytes, left = 0;
	struct g *gp;

	if (!os_many_cpus || os_guard_kind != OS_GUARD_MARKER)
		SKIP("one CPU, or no guard markers");
	if (!can_populate())
		SKIP("this kernel does not populate several mappings at once");
	for (size_t i = 1; i <= STACK_CARVE_BATCH; i++)
		CHECK(!is_there(last + i * slot));
	CHECK(stack_prepare());
	while (left < STACK_CARVE_BATCH && !is_there(last + (left + 1) * slot))
		left++;
	CHECK(left < STACK_CARVE_BATCH);
	if (left > 0)
		take(left);
	CHECK_EQ(stack_take(stack_default_class, &gp, 1), 1);
	CHECK(page_of(gp) == last + (left + 1) * slot);
	CHECK(stack_find(gp->stack.lo - 1, &gp) == STACK_GUARD);
}

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

/* Guards cannot be had any more from this address on: no markers, and none by
 * mprotect. */
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

/* The word below the stack can be read. The impossible first argument is looked at
 * last. */
static bool is_unguarded(const struct g *gp)
{
	return syscall(SYS_rt_sigprocmask, -1, gp->stack.lo - 8, NULL, _NSIG / 8) == -1 && errno != EFAULT;
}

static int check_flags(struct g **gs, int n)
{
	int unguarded = 0;

	for (int i = 0; i < n; i++) {
		CHECK(!stack_overflowed(gs[i]));
		if (is_unguarded(gs[i])) {
			*(uint64_t *)(gs[i]->stack.lo - 8) = 1;
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
	refuse_guards_from(first->stack.lo + (size_t)GUARDED * (STACK_DEFAULT_BYTES + os_page_bytes));
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

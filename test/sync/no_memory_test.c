/*
 * no_memory_test.c - calls that do without memory of their own, where malloc has none.
 */
/* test: procs */
#include <goro.h>
#include <errno.h>
#include <stdlib.h>

#include "platform/tool.h"
#include "test.h"

static bool none;		/* there is no memory at all */
static int until_fails;		/* at the call of malloc when this comes to 0: 0 never */

#if defined(__GLIBC__) && !TOOL_ASAN && !TOOL_TSAN
#define HAVE_OWN_MALLOC 1
void *__libc_malloc(size_t n);

/* The program's, in place of libc's. */
void *malloc(size_t n)
{
	if (__atomic_load_n(&none, __ATOMIC_RELAXED) ||
	    (__atomic_load_n(&until_fails, __ATOMIC_RELAXED) > 0 &&
	     __atomic_fetch_sub(&until_fails, 1, __ATOMIC_RELAXED) == 1)) {
		errno = ENOMEM;
		return NULL;
	}
	return __libc_malloc(n);
}
#else
#define HAVE_OWN_MALLOC 0
#endif

static void without_memory(bool on)
{
	if (!HAVE_OWN_MALLOC)
		SKIP("malloc is not ours here");
	__atomic_store_n(&none, on, __ATOMIC_RELAXED);
}

static int add(goro_ctx *ctx, void *n)
{
	(void)ctx;
	__atomic_fetch_add((int *)n, 1, __ATOMIC_RELAXED);
	return 0;
}

GO_TEST(a_group_runs_what_it_has_started)
{
	goro_group *g = goro_group_make(NULL, 2);
	int n = 0;

	CHECK(g);
	without_memory(true);
	for (int i = 0; i < 10; i++)
		CHECK_EQ(goro_group_go(g, add, &n), 0);
	CHECK_EQ(goro_group_wait(g), 0);
	without_memory(false);
	CHECK_EQ(n, 10);
}

static int leave_early(goro_ctx *ctx, void *n)
{
	add(ctx, n);
	goro_goexit();
}

GO_TEST(a_group_knows_who_left_by_goexit)
{
	goro_group *g = goro_group_make(NULL, 1);
	int n = 0;

	CHECK(g);
	without_memory(true);
	for (int i = 0; i < 10; i++)
		CHECK_EQ(goro_group_go(g, leave_early, &n), 0);
	CHECK_EQ(goro_group_wait(g), 0);
	without_memory(false);
	CHECK_EQ(n, 10);
}

static void task(void *n)
{
	add(NULL, n);
}

static void task_that_exits(void *n)
{
	add(NULL, n);
	goro_goexit();
}

GO_TEST(a_pool_does_all_its_tasks)
{
	int n = 0;
	goro_pool *p = goro_pool_make(1, 4);

	CHECK(p);
	without_memory(true);
	CHECK_EQ(goro_pool_resize(p, 3), 0);
	for (int i = 0; i < 10; i++)
		CHECK_EQ(goro_pool_submit(p, i % 2 ? task : task_that_exits, &n, GORO_FOREVER), 0);
	goro_pool_close(p);
	without_memory(false);
	CHECK_EQ(n, 10);
}

GO_TEST(once_runs_its_function)
{
	goro_once o = { 0 };
	int n = 0;

	without_memory(true);
	goro_once_do(&o, task, &n);
	goro_once_do(&o, task, &n);
	without_memory(false);
	CHECK_EQ(n, 1);
}

static void panic_with_few_words(void *n)
{
	task(n);
	goro_panic("none");
}

struct attempt {
	goro_once o;
	int n;
};

static void do_once(void *arg)
{
	struct attempt *a = arg;

	goro_once_do(&a->o, panic_with_few_words, &a->n);
}

GO_TEST(once_is_over_after_a_panic)
{
	struct attempt a = { 0 };

	CHECK_STR(goro_try(do_once, &a), "none");
	CHECK(goro_try(do_once, &a) == NULL);
	CHECK_EQ(a.n, 1);
}

static int dial_a_name(void)
{
	return goro_dial("tcp4", "localhost:1", goro_deadline_in(10 * GORO_SECOND));
}

/* Memory that lacks for a moment is missed for that moment alone. */
GO_TEST(names_are_looked_up_when_there_is_memory_again)
{
	if (!HAVE_OWN_MALLOC)
		SKIP("malloc is not ours here");
	for (int n = 1; n < 8; n++) {
		__atomic_store_n(&until_fails, n, __ATOMIC_RELAXED);
		CHECK(dial_a_name() < 0);
	}
	__atomic_store_n(&until_fails, 0, __ATOMIC_RELAXED);
	CHECK(dial_a_name() != -ENOMEM);
}

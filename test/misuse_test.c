/*
 * misuse_test.c - arguments that make no sense end in words, not in a fault.
 */
#include <goro.h>

#include "test.h"

static void run_null(void) { goro_run(NULL, 0, NULL); }

TEST(to_run_nothing)
{
	struct test_output o;

	test_run_child(run_null, &o);
	CHECK_EQ(o.status, 2);
	CHECK_CONTAINS(o.err, "fatal error: go of nil func value");
}

static void set_null_key(void *arg) { goro_local_set(NULL, arg); }

GO_TEST(a_nil_key)
{
	CHECK_STR(goro_try(set_null_key, "value"), "nil key");
	CHECK(!goro_local_get(NULL));
}

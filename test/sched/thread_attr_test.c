/*
 * thread_attr_test.c - a thread for which libc has no attributes is one that cannot be
 * made.
 */
#include <errno.h>
#include <goro.h>
#include <pthread.h>

#include "platform/tool.h"
#include "test.h"

static int nothing(int argc, char **argv)
{
	(void)argc, (void)argv;
	return 0;
}

#if !TOOL_TSAN
/* The program's, in place of libc's. Leaves in attr what was there. */
int pthread_attr_init(pthread_attr_t *attr)
{
	memset(attr, 0xff, sizeof *attr);
	return ENOMEM;
}
#endif

static void child(void)
{
	exit(goro_run(nothing, 0, NULL));
}

TEST(no_attributes_end_the_start_with_a_message)
{
	struct test_output o;

	if (TOOL_TSAN)
		SKIP("ThreadSanitizer's own threads have attributes");
	test_run_child(child, &o);
	CHECK_EQ(o.status, 2);
	CHECK_CONTAINS(o.err, "fatal error: newosproc");
}

/*
 * thread_end_test.c - a thread that ends while it runs a goroutine ends the process.
 */
/* test: procs */
#include <goro.h>
#include <pthread.h>
#include <unistd.h>

#include "platform/atomic.h"
#include "await.h"
#include "child.h"
#include "test.h"

#define MESSAGE "fatal error: pthread_exit or pthread_cancel in a goroutine's thread\n"

static void not_with_tsan(void)
{
	if (TOOL_TSAN)
		SKIP("the sanitizer's pthread_exit knows threads only");
}

SEEN static void leave_thread(void)
{
	pthread_exit(NULL);
}

static void leave_and_wait(void)
{
	goro_waitgroup wg = { 0 };

	goro_waitgroup_add(&wg, 1);
	go(leave_thread);
	goro_waitgroup_wait(&wg);
}

TEST(pthread_exit_in_a_goroutine_ends_the_process)
{
	not_with_tsan();
	run_anew(leave_and_wait);
	CHECK_EQ(o.status, 2);
	CHECK_CONTAINS(o.err, MESSAGE);
	CHECK_CONTAINS(o.err, " [running]:\n");
	CHECK_CONTAINS(o.err, "leave_thread(...)\n\t");
}

TEST(pthread_exit_in_main_ends_the_process)
{
	not_with_tsan();
	run_anew(leave_thread);
	CHECK_EQ(o.status, 2);
	CHECK_CONTAINS(o.err, MESSAGE);
	CHECK_CONTAINS(o.err, "goroutine 1 [running]:\n");
}

TEST(pthread_exit_on_the_smallest_stack_ends_the_process)
{
	not_with_tsan();
	setenv("GORO_STACK", "16k", 1);
	run_anew(leave_and_wait);
	CHECK_EQ(o.status, 2);
	CHECK_CONTAINS(o.err, MESSAGE);
}

static void leave(void *arg)
{
	(void)arg;
	leave_thread();
}

static void leave_in_blocking(void)
{
	goro_blocking(leave, NULL);
}

TEST(pthread_exit_in_a_blocking_call_ends_the_process)
{
	not_with_tsan();
	run_anew(leave_in_blocking);
	CHECK_EQ(o.status, 2);
	CHECK_CONTAINS(o.err, MESSAGE);
}

static pthread_t thread;
static uint32_t pausing;

SEEN static void be_cancelled(void)
{
	thread = pthread_self();
	store_seqcst(&pausing, 1);
	for (;;)
		pause();
}

static void cancel(void)
{
	go(be_cancelled);
	AWAIT(load_seqcst(&pausing));
	pthread_cancel(thread);
	goro_chan_recv(goro_chan_of(int, 0), NULL);
}

TEST(pthread_cancel_of_a_goroutines_thread_ends_the_process)
{
	run_anew(cancel);
	CHECK_EQ(o.status, 2);
	CHECK_CONTAINS(o.err, MESSAGE);
	CHECK_CONTAINS(o.err, "be_cancelled(...)\n\t");
}

static void hello_from_cleanup(void *arg)
{
	(void)arg;
	dprintf(1, "cleanup ");
}

static void leave_with_cleanup(void)
{
	pthread_cleanup_push(hello_from_cleanup, NULL);
	leave_thread();
	pthread_cleanup_pop(0);
}

TEST(cleanup_handlers_of_the_goroutine_run_before)
{
	not_with_tsan();
	run_anew(leave_with_cleanup);
	CHECK_EQ(o.status, 2);
	CHECK_STR(o.out, "cleanup ");
	CHECK_CONTAINS(o.err, MESSAGE);
}

/* A function that no unwinder gets past. */
#ifdef __x86_64__
__asm__(".text\n"
        "leave_by_assembly:\n"
        "	subq $8, %rsp\n"
        "	call pthread_exit@PLT\n"
        "	ud2\n");
#else
__asm__(".text\n"
        "leave_by_assembly:\n"
        "	bl pthread_exit\n"
        "	udf #0\n");
#endif
void leave_by_assembly(void *result);

static void leave_without_tables(void)
{
	go(leave_by_assembly, (void *)NULL);
	goro_chan_recv(goro_chan_of(int, 0), NULL);
}

TEST(pthread_exit_below_a_function_without_unwind_table_ends_the_process)
{
	not_with_tsan();
	if (TOOL_ASAN)
		SKIP("the sanitizer does not see libc jump to the thread's first frame");
	run_anew(leave_without_tables);
	CHECK_EQ(o.status, 2);
	CHECK_CONTAINS(o.err, MESSAGE);
}

static void *leave_plainly(void *arg)
{
	goro_gosched();
	pthread_exit(arg);
}

TEST(a_plain_thread_may_leave)
{
	int result;
	void *got = NULL;
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, leave_plainly, &result), 0);
	CHECK_EQ(pthread_join(t, &got), 0);
	CHECK(got == &result);
}

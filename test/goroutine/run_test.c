/*
 * run_test.c - goro_run: what main returns, again and again, from anywhere, and
 * the end of the process while others run.
 */
/* test: procs */
#include <goro.h>
#include <pthread.h>

#include "platform/atomic.h"
#include "await.h"
#include "test.h"

static int return_argc(int argc, char **argv)
{
	CHECK(argv == (char **)(intptr_t)(argc * 16));
	goro_gosched();
	return argc;
}

static int run_it(int n)
{
	return goro_run(return_argc, n, (char **)(intptr_t)(n * 16));
}

TEST(the_result_of_main_is_returned_each_time)
{
	for (int i = 0; i < 200; i++)
		CHECK_EQ(run_it(i), i);
	CHECK_EQ(run_it(-1), -1);
}

static void *run_often(void *arg)
{
	for (int i = 0; i < 100; i++)
		CHECK_EQ(run_it((int)(intptr_t)arg + i), (intptr_t)arg + i);
	return NULL;
}

TEST(several_threads_run_mains_at_once)
{
	pthread_t t[10];

	for (intptr_t i = 0; i < 10; i++)
		pthread_create(&t[i], NULL, run_often, (void *)(i * 1000));
	for (int i = 0; i < 10; i++)
		pthread_join(t[i], NULL);
}

GO_TEST(a_goroutine_may_run_a_main)
{
	uint64_t id = goro_id();

	for (int i = 0; i < 100; i++)
		CHECK_EQ(run_it(i), i);
	CHECK_EQ(goro_id(), id);
}

static int nest(int argc, char **argv)
{
	return argc == 0 ? 0 : 1 + goro_run(nest, argc - 1, argv);
}

TEST(mains_nest)
{
	CHECK_EQ(goro_run(nest, 100, NULL), 100);
}

static bool stop;
static int spinning;

static void yield_on(void)
{
	fetch_add_seqcst(&spinning, 1);
	while (!load_seqcst(&stop))
		goro_gosched();
	fetch_add_seqcst(&spinning, -1);
}

static int start_yielders(int argc, char **argv)
{
	(void)argv;
	for (int i = 0; i < argc; i++)
		go(yield_on);
	return 3;
}

TEST(goroutines_go_on_after_main_has_returned)
{
	CHECK_EQ(goro_run(start_yielders, 10, NULL), 3);
	while (load_seqcst(&spinning) < 10)
		usleep(100);
	store_seqcst(&stop, true);
	while (load_seqcst(&spinning) > 0)
		usleep(100);
}

/* ------------------------------------------------------- the end of the process */

static void come_and_go(void)
{
	for (;;) {
		go(goro_gosched);
		goro_gosched();
	}
}

static void talk(goro_chan *c)
{
	for (;;) {
		goro_chan_send(c, &(int){ 1 });
		goro_chan_recv(c, NULL);
	}
}

static void hog(void)
{
	while (!load_seqcst(&stop))
		;
}

static int busy_main(int argc, char **argv)
{
	goro_chan *c = goro_chan_of(int, 1);

	(void)argv;
	goro_gomaxprocs(goro_gomaxprocs(0) + 1);
	go(hog);
	for (int i = 0; i < 10; i++) {
		go(come_and_go);
		go(talk, c);
	}
	for (int i = 0; i < 10; i++)
		goro_gosched();
	return argc;
}

static int wanted;

static void end_while_busy(void)
{
	exit(goro_run(busy_main, wanted, NULL));
}

static int exit_main(int argc, char **argv)
{
	busy_main(argc, argv);
	exit(argc);
}

static void exit_in_goroutine_while_busy(void)
{
	goro_run(exit_main, wanted, NULL);
}

TEST(the_process_ends_with_main_while_others_run)
{
	struct test_output o;

	for (wanted = 0; wanted < 25; wanted++) {
		test_run_child(end_while_busy, &o);
		CHECK_EQ(o.status, wanted);
		CHECK_STR(o.err, "");
	}
}

TEST(exit_in_a_goroutine_ends_the_process)
{
	struct test_output o;

	for (wanted = 0; wanted < 10; wanted++) {
		test_run_child(exit_in_goroutine_while_busy, &o);
		CHECK_EQ(o.status, wanted);
		CHECK_STR(o.err, "");
	}
}

/*
 * chan_freed_test.c - what is done with a channel that was freed panics, with
 * GORO_DEBUG=chan=1.
 */
#include <goro.h>
#include <pthread.h>

#include "test.h"
#include "platform/tool.h"

static goro_chan *freed(size_t elem_size, size_t capacity)
{
	goro_chan *c = goro_chan_make(elem_size, capacity);

	CHECK(c);
	goro_chan_unref(c);
	return c;
}

static void send_one(void *c) { goro_chan_send(c, &(int){ 1 }); }
static void recv_one(void *c) { goro_chan_recv(c, &(int){ 1 }); }
static void try_send(void *c) { goro_chan_try_send(c, &(int){ 1 }); }
static void try_recv(void *c) { goro_chan_try_recv(c, &(int){ 1 }); }
static void close_it(void *c) { goro_chan_close(c); }
static void ref_it(void *c) { goro_chan_ref(c); }
static void unref_it(void *c) { goro_chan_unref(c); }
static void len_of(void *c) { goro_chan_len(c); }
static void cap_of(void *c) { goro_chan_cap(c); }

/* The other channel is never ready. */
static void select_it(void *c)
{
	goro_chan *other = goro_chan_of(int, 0);

	goro_select(GORO_RECV(other, NULL), GORO_RECV(c, NULL));
}

static void select_now(void *c)
{
	goro_chan *other = goro_chan_of(int, 0);

	goro_select_until(GORO_NOW, GORO_SEND(c, &(int){ 1 }), GORO_RECV(other, NULL));
}

static const struct misuse {
	void (*fn)(void *c);
	const char *message;
} misuses[] = {
	{ send_one, "send on freed channel" },
	{ recv_one, "receive from freed channel" },
	{ try_send, "send on freed channel" },
	{ try_recv, "receive from freed channel" },
	{ select_it, "select on freed channel" },
	{ select_now, "select on freed channel" },
	{ close_it, "close of freed channel" },
	{ ref_it, "reference to freed channel" },
	{ unref_it, "unref of freed channel" },
	{ len_of, "len of freed channel" },
	{ cap_of, "cap of freed channel" },
};

/* Each panics, again and again, and the goroutine goes on. */
static void misuse_all(size_t capacity)
{
	for (size_t i = 0; i < sizeof misuses / sizeof *misuses; i++) {
		goro_chan *c = freed(sizeof(int), capacity);

		for (int round = 0; round < 3; round++) {
			const char *message = goro_try(misuses[i].fn, c);

			CHECK(message);
			CHECK_STR(message, misuses[i].message);
		}
	}
}

static int in_goroutine(int argc, char **argv)
{
	(void)argc, (void)argv;
	misuse_all(0);
	misuse_all(3);
	return 0;
}

TEST(each_use_of_a_freed_channel_panics)
{
	setenv("GORO_DEBUG", "chan=1", 1);
	CHECK_EQ(goro_run(in_goroutine, 0, NULL), 0);
}

TEST(a_plain_thread_panics_too)
{
	setenv("GORO_DEBUG", "chan=1", 1);
	misuse_all(1);
}

/* A usual mistake: the goroutine has no reference of its own. */
static void worker(goro_chan *c, goro_chan *go_on)
{
	goro_chan_recv(go_on, NULL);
	goro_chan_send(c, &(int){ 1 });
}

static int forgets_a_reference(int argc, char **argv)
{
	goro_chan *c = goro_chan_of(int, 1), *go_on = goro_chan_make(0, 0);

	(void)argc, (void)argv;
	go(worker, c, go_on);
	goro_chan_unref(c);
	goro_chan_send(go_on, NULL);
	goro_sleep(10 * GORO_SECOND);
	return 0;
}

static void run_forgetful(void)
{
	setenv("GORO_DEBUG", "chan=1", 1);
	goro_run(forgets_a_reference, 0, NULL);
}

TEST(a_goroutine_without_a_reference_is_found_out)
{
	struct test_output o;

	test_run_child(run_forgetful, &o);
	CHECK_EQ(o.status, 2);
	CHECK_CONTAINS(o.err, "panic: send on freed channel");
	CHECK_CONTAINS(o.err, "worker");
}

/* 80 MiB and more, if all were kept. */
static int makes_many(int argc, char **argv)
{
	(void)argc, (void)argv;
	for (int i = 0; i < 20000; i++)
		freed(4096, 1);
	return 0;
}

static long resident_kib(void)
{
	long pages[2] = { 0, 0 };
	FILE *f = fopen("/proc/self/statm", "r");

	CHECK(f);
	CHECK_EQ(fscanf(f, "%ld %ld", &pages[0], &pages[1]), 2);
	fclose(f);
	return pages[1] * (sysconf(_SC_PAGESIZE) / 1024);
}

TEST(kept_channels_take_bounded_memory)
{
	long before = resident_kib();

	if (TOOL_ASAN || TOOL_TSAN)
		SKIP("the sanitizer keeps what is freed itself");
	setenv("GORO_DEBUG", "chan=1", 1);
	CHECK_EQ(goro_run(makes_many, 0, NULL), 0);
	CHECK(resident_kib() - before < 40 << 10);
}

/* A channel whose last reference goes while a select waits on it is freed by that:
 * once. */
static void waits(goro_chan *a, goro_chan *b, goro_chan *done)
{
	goro_select(GORO_RECV(a, NULL), GORO_RECV(b, NULL));
	goro_chan_send(done, NULL);
}

static int drops_under_a_select(int argc, char **argv)
{
	goro_chan *done = goro_chan_make(0, 0);

	(void)argc, (void)argv;
	for (int i = 0; i < 1000; i++) {
		goro_chan *a = goro_chan_make(0, 0), *b = goro_chan_make(0, 0);

		go(waits, a, b, done);
		goro_chan_send(a, NULL);
		goro_chan_unref(b);
		goro_chan_unref(a);
		goro_chan_recv(done, NULL);
	}
	return 0;
}

TEST(right_programs_are_left_alone)
{
	setenv("GORO_DEBUG", "chan=1", 1);
	CHECK_EQ(goro_run(drops_under_a_select, 0, NULL), 0);
}

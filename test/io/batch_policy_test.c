/*
 * batch_policy_test.c - the pause after a batch of writes that was late, and for how long
 * reads are left untried.
 */
#include <goro.h>

#include "platform/os.h"
#include "io/batch.h"
#include "sched/types.h"
#include "test.h"

/* A batch that began this long ago is sent now. */
static void send_after(struct p_io *io, int64_t ns)
{
	io->since = os_now() - ns;
	batch_sends_end(io);
}

/* One is late while the last pause is not over, however long the kernel lets this thread
 * wait. */
static void send_late_soon(struct p_io *io)
{
	io->again_at = os_now() + 10 * GORO_SECOND;
	send_after(io, GORO_MILLISECOND);
}

TEST(a_batch_that_is_on_time_is_followed_by_no_pause)
{
	struct p_io io = { 0 };

	send_after(&io, 0);
	CHECK_EQ(io.again_at, 0);
	CHECK_EQ(io.pause, 0);
}

TEST(each_late_batch_that_comes_soon_doubles_the_pause_up_to_a_second)
{
	struct p_io io = { 0 };
	int64_t first, last, start = os_now();

	send_after(&io, GORO_MILLISECOND);
	first = io.pause;
	CHECK(first > 0);
	CHECK(io.again_at >= start + first);
	for (last = first; last < GORO_SECOND / 2; last = io.pause) {
		int64_t now = os_now();

		send_late_soon(&io);
		CHECK_EQ(io.pause, 2 * last);
		CHECK(io.again_at >= now + io.pause);
	}
	for (int i = 0; i < 3; i++)
		send_late_soon(&io);
	CHECK(io.pause <= GORO_SECOND);
	CHECK(io.pause >= last);
}

TEST(a_late_batch_after_a_good_while_has_a_short_pause_again)
{
	struct p_io io = { 0 };
	int64_t first;

	send_after(&io, GORO_MILLISECOND);
	first = io.pause;
	send_late_soon(&io);
	CHECK(io.pause > first);
	io.again_at = os_now() - 10 * GORO_SECOND;	/* when the last pause ended */
	send_after(&io, GORO_MILLISECOND);
	CHECK_EQ(io.pause, first);
}

/* ------------------------------------------------------------ untried reads */

static struct p a_p;

/* Passes in a row in which that many tries were in vain and the P switched as often. */
static void passes(struct p_io *io, int n, uint32_t in_vain, uint64_t switches)
{
	for (int i = 0; i < n; i++) {
		a_p.count.switches += switches;
		batch_pass_end(&a_p, io, in_vain);
	}
}

TEST(reads_are_left_for_longer_while_tries_are_in_vain)
{
	struct p_io io = { 0 };
	int64_t least, most;

	batch_policy_init(&io);
	least = io.late_ns;
	passes(&io, 1, 100, 0);
	CHECK_EQ(io.late_ns, 2 * least);
	passes(&io, 100, 100, 0);
	most = io.late_ns;
	CHECK(most > 2 * least);
	passes(&io, 1, 100, 0);
	CHECK_EQ(io.late_ns, most);
}

TEST(few_tries_in_vain_beside_all_that_the_p_does_do_not_count)
{
	struct p_io io = { 0 };
	int64_t least;

	batch_policy_init(&io);
	least = io.late_ns;
	passes(&io, 1, 100, 1000000);
	CHECK_EQ(io.late_ns, least);
}

/* After a number of passes each time, and not below where it began. */
TEST(once_tries_find_something_reads_are_left_for_less_long)
{
	struct p_io io = { 0 };
	int64_t least, last;

	batch_policy_init(&io);
	least = io.late_ns;
	passes(&io, 3, 100, 0);
	last = io.late_ns;
	passes(&io, 5, 0, 0);
	CHECK_EQ(io.late_ns, last);
	passes(&io, 1, 100, 0);		/* they no longer come in a row */
	last = io.late_ns;
	for (int n = 0; io.late_ns == last; n++) {
		CHECK(n < 100);
		passes(&io, 1, 0, 0);
	}
	CHECK_EQ(io.late_ns, last / 2);
	passes(&io, 1000, 0, 0);
	CHECK_EQ(io.late_ns, least);
}

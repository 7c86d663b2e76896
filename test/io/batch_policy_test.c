/*
 * batch_policy_test.c - the pause after a batch of writes that was late.
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

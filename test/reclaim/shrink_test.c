/*
 * shrink_test.c - unshrink restores what shrink has read, whatever that was.
 */
#include "reclaim/shrink.h"

#include "random.h"
#include "test.h"

enum {
	PAGE = 4096,
	LARGE = 65536,
	BEYOND = 1024,	/* bytes behind the room, which stay untouched */
};

/* Words of every length; one in one_in is not zero. */
static void fill(uint64_t *w, size_t n, unsigned one_in)
{
	for (size_t i = 0; i < n; i++)
		w[i] = random_word() % one_in ? 0 : random_word() >> 8 * (random_word() % 8);
}

/* Shrinks and back; checks that nothing is written or read beyond what is promised. */
static size_t round_trip(const uint64_t *page, size_t bytes, size_t max)
{
	static unsigned char out[2 * LARGE + SHRINK_BEYOND + BEYOND];
	static uint64_t back[(LARGE + BEYOND) / 8];
	size_t end = max + SHRINK_BEYOND + BEYOND, n;

	memset(out, 0xa5, end);
	n = shrink(page, bytes, out, max);
	CHECK(n <= max);
	for (size_t i = max + SHRINK_BEYOND; i < end; i++)
		CHECK_EQ(out[i], 0xa5);
	if (n == 0)
		return 0;
	memset(out + n, 0x5a, end - n);
	memset(back, 0xff, bytes + BEYOND);
	unshrink(out, back, bytes);
	CHECK_EQ(memcmp(page, back, bytes), 0);
	for (size_t i = bytes / 8; i < (bytes + BEYOND) / 8; i++)
		CHECK_EQ(back[i], ~UINT64_C(0));
	return n;
}

TEST(any_page_comes_back)
{
	static uint64_t page[LARGE / 8];

	for (int i = 0; i < 20000; i++) {
		fill(page, PAGE / 8, 1 + i % 60);
		CHECK(round_trip(page, PAGE, 2 * PAGE) > 0);
	}
	for (int i = 0; i < 200; i++) {
		fill(page, LARGE / 8, 1 + i % 60);
		CHECK(round_trip(page, LARGE, LARGE + LARGE / 4) > 0);
	}
}

/* For every limit: either all of it, or nothing. */
TEST(limits_are_kept)
{
	static uint64_t page[PAGE / 8];
	size_t full;

	for (int i = 0; i < 200; i++) {
		fill(page, PAGE / 8, 1 + i % 60);
		full = round_trip(page, PAGE, 2 * PAGE);
		CHECK_EQ(round_trip(page, PAGE, full), full);
		for (size_t max = full > 200 ? full - 200 : 8; max < full; max++)
			CHECK_EQ(round_trip(page, PAGE, max), 0);
	}
}

TEST(edges)
{
	static uint64_t page[PAGE / 8];

	CHECK_EQ(round_trip(page, PAGE, 100), PAGE / 8 / 8 / 8);
	page[0] = 1;
	page[PAGE / 8 - 1] = UINT64_MAX;
	CHECK_EQ(round_trip(page, PAGE, 100), 8 + 4 + 1 + 4 + 8);
	memset(page, 0xff, sizeof page);
	CHECK_EQ(round_trip(page, PAGE, 2048), 0);
	CHECK_EQ(round_trip(page, PAGE, 2 * PAGE), 8 + 64 * 4 + PAGE);
}

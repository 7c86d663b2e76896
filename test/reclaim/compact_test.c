/* compact_test.c - memory for many small blocks: they do not overlap, and are given
 * back. */
#include "reclaim/compact.h"

#include "platform/os.h"
#include "test.h"
#include "platform/tool.h"

enum { THINGS = 50000 };

static struct thing {
	unsigned char *p;
	size_t n;
	unsigned char mark;
} thing[THINGS];

static void make(struct thing *t, size_t n)
{
	static unsigned char marks;

	t->p = compact_alloc(n);
	CHECK(t->p);
	CHECK_EQ((uintptr_t)t->p % 8, 0);
	t->n = n;
	t->mark = marks++;
	memset(t->p, t->mark, n);
}

static void unmake(struct thing *t)
{
	for (size_t i = 0; i < t->n; i++)
		CHECK_EQ(t->p[i], t->mark);
	compact_free(t->p);
	t->p = NULL;
}

TEST(each_is_its_own)
{
	unsigned seed = 1;

	os_init();
	for (int i = 0; i < 400000; i++) {
		struct thing *t = &thing[rand_r(&seed) % THINGS];

		if (t->p)
			unmake(t);
		else
			make(t, 1 + (size_t)rand_r(&seed) % COMPACT_MAX);
	}
	for (int i = 0; i < THINGS; i++)
		if (thing[i].p)
			unmake(&thing[i]);
	CHECK(compact_bytes() <= COMPACT_MAX / 64 * (64 << 10));
}

TEST(takes_little_more_than_they_need)
{
	size_t need = 0;

	os_init();
	for (int i = 0; i < THINGS; i++) {
		make(&thing[i], 400 + i % 48);
		need += thing[i].n;
	}
	CHECK(compact_bytes() < need * 5 / 4);
}

static size_t resident(void)
{
	size_t total, pages;
	FILE *f = fopen("/proc/self/statm", "r");

	CHECK(f && fscanf(f, "%zu %zu", &total, &pages) == 2);
	fclose(f);
	return pages * os_page_bytes;
}

TEST(what_is_free_goes_back_to_the_system)
{
	size_t before, full;

	if (TOOL_ASAN || TOOL_TSAN)
		SKIP("the sanitizer keeps memory of its own for each");
	os_init();
	before = resident();
	for (int i = 0; i < THINGS; i++)
		make(&thing[i], 1000);
	full = resident();
	CHECK(full - before > THINGS * (size_t)1000);
	for (int i = 0; i < THINGS; i++)
		unmake(&thing[i]);
	CHECK(resident() - before < (full - before) / 20);
	CHECK(compact_bytes() <= 64 << 10);
	for (int i = 0; i < THINGS; i++)
		make(&thing[i], 1000);
}

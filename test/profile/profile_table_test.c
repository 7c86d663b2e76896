/* Stacks and what was counted at each. */
#include "profile/profile_table.h"

#include "platform/os.h"
#include "test.h"

static struct profile_table table = { .records.bytes_max = 64 << 20 };

static void add(const uintptr_t *pc, size_t n, const char *name, uint64_t id, double count,
                int64_t total)
{
	struct profile_key key = { .pc = pc, .n = n, .name = name, .id = id };

	profile_table_add(&table, &key, count, total);
}

struct found {
	int records;
	double count;
	int64_t total;
};

static void find(const struct profile_record *r, void *arg)
{
	struct found *f = arg;

	f->records++;
	f->count += r->count;
	f->total += r->total;
}

static struct found all(const struct profile_table *t)
{
	struct found f = { 0 };

	profile_table_each(t, find, &f);
	return f;
}

TEST(the_same_stack_is_one_record)
{
	os_init();
	for (int i = 0; i < 1000; i++)
		add((uintptr_t[]){ 1, 2, 3 }, 3, NULL, 0, 1, 7);
	CHECK_EQ(all(&table).records, 1);
	CHECK_EQ(all(&table).count, 1000);
	CHECK_EQ(all(&table).total, 7000);
	CHECK_EQ(table.lost, 0);
}

TEST(whatever_differs_is_another)
{
	os_init();
	add((uintptr_t[]){ 1, 2, 3 }, 3, NULL, 0, 1, 0);
	add((uintptr_t[]){ 1, 2 }, 2, NULL, 0, 1, 0);
	add((uintptr_t[]){ 2, 1, 3 }, 3, NULL, 0, 1, 0);
	add((uintptr_t[]){ 1, 2, 3 }, 3, "name", 0, 1, 0);
	add((uintptr_t[]){ 1, 2, 3 }, 3, "nome", 0, 1, 0);
	add((uintptr_t[]){ 1, 2, 3 }, 3, NULL, 1, 1, 0);
	add((uintptr_t[]){ 0 }, 0, NULL, 0, 1, 0);
	CHECK_EQ(all(&table).records, 7);
	add((uintptr_t[]){ 1, 2, 3 }, 3, "", 0, 1, 0);	/* no name */
	CHECK_EQ(all(&table).records, 7);
	CHECK_EQ(table.records.n, 7);
}

TEST(many_stacks_are_all_there_and_in_a_copy)
{
	struct profile_table copy = { .lost = 0 };

	os_init();
	for (int round = 0; round < 2; round++)
		for (uintptr_t i = 0; i < 100000; i++)
			add((uintptr_t[]){ i, i / 7, 3, 4 }, 4, NULL, 0, 0.5, (int64_t)i);
	CHECK_EQ(all(&table).records, 100000);
	CHECK_EQ(all(&table).count, 100000);
	CHECK_EQ(table.lost, 0);
	profile_table_copy(&copy, &table);
	CHECK_EQ(all(&copy).records, 100000);
	CHECK_EQ(all(&copy).count, 100000);
	CHECK_EQ(all(&copy).total, all(&table).total);
	profile_table_free(&table);
	CHECK_EQ(all(&table).records, 0);
	CHECK_EQ(all(&copy).records, 100000);
}

TEST(it_does_not_grow_beyond_its_limit_and_says_what_was_lost)
{
	os_init();
	table.records.bytes_max = 1 << 20;
	for (uintptr_t i = 0; i < 100000; i++)
		add((uintptr_t[]){ i, i, i, i }, 4, NULL, 0, 1, 1);
	CHECK(table.lost > 0);
	CHECK(table.records.chunks.bytes <= 1 << 20);
	CHECK_EQ(all(&table).records + (int64_t)table.lost, 100000);
	/* What is there goes on being counted. */
	for (uintptr_t i = 0; i < 10; i++)
		add((uintptr_t[]){ i, i, i, i }, 4, NULL, 0, 1, 1);
	CHECK_EQ(all(&table).count + (double)table.lost, 100010);
}

TEST(totals_do_not_overflow)
{
	os_init();
	add((uintptr_t[]){ 1 }, 1, NULL, 0, 1, INT64_MAX - 1);
	add((uintptr_t[]){ 1 }, 1, NULL, 0, 1, INT64_MAX - 1);
	CHECK_EQ(all(&table).total, INT64_MAX);
}

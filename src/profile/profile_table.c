/*
 * profile_table.c - stacks, and what was counted at each.
 *
 * Every profile is a set of stacks with numbers. Equal stacks are counted in one record
 * as they are seen, so a program that does the same a million times has one record of it.
 *
 * The table does not grow beyond bytes_max: what does not fit is counted in lost, and
 * profiles say so.
 */
#include "profile/profile_table.h"

#include <string.h>

#define KEY_AT offsetof(struct profile_record, id)

void profile_table_add(struct profile_table *t, const struct profile_key *key, double count,
                       int64_t total)
{
	struct profile_record k, *r;
	struct table_entry *e;

	check(key->n <= BACKTRACE_MAX);
	k.id = key->id;
	k.from = key->from;
	k.n = (uint32_t)key->n;
	strncpy(k.name, key->name ? key->name : "", sizeof k.name);
	memcpy(k.pc, key->pc, key->n * sizeof *k.pc);
	t->records.extra = KEY_AT;
	e = table_put(&t->records, &k.id, offsetof(struct profile_record, pc[key->n]) - KEY_AT);
	if (!e) {
		t->lost++;
		return;
	}
	r = table_data(e);
	r->count += count;
	if (__builtin_add_overflow(r->total, total, &r->total))
		r->total = INT64_MAX;
}

void profile_table_each(const struct profile_table *t,
                        void (*fn)(const struct profile_record *r, void *arg), void *arg)
{
	for (const struct table_entry *e = t->records.first; e; e = e->after)
		fn(table_data(e), arg);
}

static void copy_one(const struct profile_record *r, void *arg)
{
	struct profile_key key = {
		.pc = r->pc, .n = r->n, .name = r->name, .id = r->id, .from = r->from,
	};

	profile_table_add(arg, &key, r->count, r->total);
}

void profile_table_copy(struct profile_table *to, const struct profile_table *from)
{
	*to = (struct profile_table){ .lost = from->lost };
	profile_table_each(from, copy_one, to);
}

struct trimming {
	struct profile_table *to;
	struct frame (*look)(void *arg, uintptr_t address);
	void *arg;
};

static void trim_one(const struct profile_record *r, void *arg)
{
	const struct trimming *t = arg;
	uintptr_t address[BACKTRACE_MAX];
	struct profile_key key = {
		.pc = address, .name = r->name, .id = r->id,
		.n = frame_program(r->pc, r->n, r->from, t->look, t->arg, address),
	};

	profile_table_add(t->to, &key, r->count, r->total);
}

void profile_table_trim(struct profile_table *to, const struct profile_table *from,
                        struct frame (*look)(void *arg, uintptr_t address), void *arg)
{
	*to = (struct profile_table){ .lost = 0 };
	profile_table_each(from, trim_one, &(struct trimming){ to, look, arg });
}

void profile_table_free(struct profile_table *t)
{
	table_free(&t->records);
	t->lost = 0;
}

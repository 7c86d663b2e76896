/*
 * trace_table.c - what a generation writes once, and then names by number: strings, and
 * stacks, which are strings of addresses.
 *
 * A lookup takes no lock. Adding an entry takes one, which is rare: a program has few
 * places where its goroutines wait. When its generation has been written the table is
 * cleared, and is used for the generation after the next.
 *
 * The table has a limit. Beyond it a new entry gets the number 0, which in the format
 * means no string or no stack.
 */
#include <errno.h>
#include <string.h>

#include "trace/trace.h"

/* The strings, or the stacks, of a generation take at most this. */
#define TABLE_BYTES (64 << 20)

struct trace_table trace_strings[2], trace_stacks[2];

bool trace_tables_init(void)
{
	struct trace_table *all[] = {
		&trace_strings[0], &trace_strings[1], &trace_stacks[0], &trace_stacks[1],
	};
	bool good = true;

	for (int i = 0; i < 4; i++) {
		all[i]->lock = (struct lock)LOCK_INIT(RANK_TRACE);
		all[i]->entries.bytes_max = TABLE_BYTES;
		good &= table_init(&all[i]->entries);
	}
	return good;
}

uint32_t trace_table_put(struct trace_table *t, const void *data, size_t n)
{
	struct table_entry *e = table_find(&t->entries, data, n);

	if (!e) {
		lock_acquire(&t->lock);
		e = table_put(&t->entries, data, n);
		lock_release(&t->lock);
	}
	return e ? e->id : 0;
}

uint32_t trace_table_string(struct trace_table *t, const char *s)
{
	return trace_table_put(t, s, strnlen(s, TRACE_STRING_MAX));
}

/* The table is empty, so that these strings get the numbers of enum trace_text. */
void trace_texts_put(void)
{
#define X(id, text) \
	if (trace_string(text) != id) \
		trace_fail(ENOMEM);
	TRACE_TEXT_LIST(X)
#undef X
}

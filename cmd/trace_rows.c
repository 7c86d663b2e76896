/*
 * trace_rows.c - rows of spans, of bounded size.
 *
 * When there are too many spans in all rows, short ones are put together with their
 * neighbours, as long as they fit into a stretch of the length "shortest", which is
 * doubled until enough room is made. So long spans stay as they are, and what a screen
 * cannot show anyway is gathered.
 */
#include "trace_rows.h"

#include <stdlib.h>
#include <string.h>

#include "cmd.h"

#define SHORTEST_NS 1000	/* the first time that there are too many */

static void merge(struct item *into, const struct item *item)
{
	into->to = item->to;
	into->n += item->n;
	into->busy += item->busy;
	into->g = into->g == item->g ? into->g : 0;
	into->name = into->name == item->name ? into->name : 0;
	into->state = into->state == item->state ? into->state : G_UNKNOWN;
	into->p = into->p == item->p ? into->p : TRACE_NONE;
	into->why = into->stack = 0;
	into->by = 0;
	into->ready_at = -1;
}

/* True: it has become part of the last one. */
static bool put(const struct rows *rows, struct row *row, const struct item *item)
{
	struct item *last = row->n ? &row->at[row->n - 1] : NULL;

	if (last && item->to - last->from < rows->shortest) {
		merge(last, item);
		return true;
	}
	if (row->n == row->room) {
		row->room = 2 * row->room + 16;
		row->at = realloc(row->at, row->room * sizeof *row->at);
		if (!row->at)
			die("out of memory");
	}
	row->at[row->n++] = *item;
	return false;
}

static void gather(struct rows *rows)
{
	rows->shortest = rows->shortest ? 2 * rows->shortest : SHORTEST_NS;
	for (size_t i = 0; i < rows->n; i++) {
		struct row *row = &rows->at[i];
		size_t n = row->n;

		row->n = 0;
		for (size_t from = 0; from < n; from++) {
			struct item item = row->at[from];

			rows->items -= put(rows, row, &item);
		}
	}
}

void rows_begin(struct rows *rows, size_t n, size_t items_max)
{
	*rows = (struct rows){ .n = n, .items_max = items_max > 4 * n ? items_max : 4 * n };
	rows->at = alloc((n + 1) * sizeof *rows->at);
	memset(rows->at, 0, (n + 1) * sizeof *rows->at);
}

void rows_add(struct rows *rows, size_t row, const struct item *item)
{
	rows->items += !put(rows, &rows->at[row], item);
	while (rows->items > rows->items_max)
		gather(rows);
}

void rows_free(struct rows *rows)
{
	for (size_t i = 0; i < rows->n; i++)
		free(rows->at[i].at);
	free(rows->at);
}

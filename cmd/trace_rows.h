/*
 * trace_rows.h - rows of spans, of bounded size. Defined in trace_rows.c.
 */
#ifndef GORO_CMD_TRACE_ROWS_H
#define GORO_CMD_TRACE_ROWS_H

#include "trace_model.h"

/* A span, or several short ones that follow each other. */
struct item {
	int64_t from, to;
	int64_t busy;		/* of several: the time that they ran */
	int64_t ready_at;	/* -1: not known */
	uint64_t g, p, by, by_p;	/* g: 0 if they are of several goroutines */
	uint32_t name, why, stack;	/* texts; a stack */
	uint32_t n;		/* spans in it */
	enum g_state state;
};

struct row {
	struct item *at;
	size_t n, room;
};

struct rows {
	struct row *at;
	size_t n;
	size_t items, items_max;
	int64_t shortest;	/* shorter spans are put together; 0: none are */
};

void rows_begin(struct rows *rows, size_t n, size_t items_max);
/* Behind those that the row has. */
void rows_add(struct rows *rows, size_t row, const struct item *item);
void rows_free(struct rows *rows);

#endif

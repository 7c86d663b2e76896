/*
 * trace_draw.h - a row for each P, a column for each slice of time. Defined in
 * trace_draw.c.
 */
#ifndef GORO_CMD_TRACE_DRAW_H
#define GORO_CMD_TRACE_DRAW_H

#include "trace_summary.h"

#define DRAW_LETTERS 26

struct draw {
	const struct trace_model *model;
	const struct summary *summary;
	bool by_goroutine;		/* letters stand for goroutines, not for names */
	/* a goroutine; or a function's or name's text + 1: letter + 1 */
	struct map letter_of;
	char *label[DRAW_LETTERS];
	int letters, columns;
	uint64_t rows;			/* Ps */
	int64_t from, slice;		/* ns */
	int64_t *cell;			/* [row][column][kind]: ns */
	/* [column]: ns that goroutines were ready, added up */
	int64_t *ready;
};

/* After a first reading: s has its figures. The second reading fills it. */
void draw_begin(struct draw *d, const struct trace_model *t, struct summary *s, struct trace_sink *sink);
void draw_print(const struct draw *d);
void draw_free(struct draw *d);

#endif

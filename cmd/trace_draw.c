/*
 * trace_draw.c - a row for each P, a column for each slice of time.
 *
 * A letter stands for a goroutine, where there are few of them. Else it stands for all
 * with one name, or started with one function: those that ran longest get the first
 * letters. A column shows who had the P longest in its slice.
 */
#include "trace_draw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "screen.h"

#define MARGIN   6		/* "P12   " */
#define BUSY     8		/* "   77 %" behind a row */
#define ROWS_MAX 64
#define COLUMNS_MAX 400
#define GOROUTINES_MAX 12	/* each has a letter */

/* The kinds of a cell: letters, other goroutines, a call. */
enum { OTHERS = DRAW_LETTERS, CALL, KINDS };

static int64_t *cell(const struct draw *d, uint64_t row, int column)
{
	return d->cell + (row * (uint64_t)d->columns + (uint64_t)column) * KINDS;
}

/* ------------------------------------------------------------------ reading */

/* Adds the time to the slices that it touches; step: between two columns' figures. */
static void spread(const struct draw *d, int64_t *at, size_t step, int64_t from, int64_t to)
{
	int64_t column = (from - d->from) / d->slice;

	for (; from < to && column < d->columns; column++) {
		int64_t next = d->from + (column + 1) * d->slice, until = to < next ? to : next;

		at[(size_t)column * step] += until - from;
		from = until;
	}
}

static uint64_t key_of(const struct draw *d, const struct trace_g *g)
{
	return d->by_goroutine ? g->id : (uint64_t)(g->name ? g->name : g->function) + 1;
}

/* Goroutines get their letters in the order in which they first run. */
static int kind_of(struct draw *d, const struct trace_g *g)
{
	size_t letter = map_get(&d->letter_of, key_of(d, g));

	if (!letter && d->by_goroutine && d->letters < DRAW_LETTERS)
		map_put(&d->letter_of, g->id, letter = (size_t)++d->letters);
	return letter ? (int)letter - 1 : OTHERS;
}

static void on_span(void *arg, const struct trace_span *s)
{
	const struct draw *d = arg;

	if (s->state == G_RUNNABLE)
		spread(d, d->ready, 1, s->from, s->to);
}

static void on_p(void *arg, const struct trace_span *s)
{
	struct draw *d = arg;

	if (s->p < d->rows)
		spread(d, cell(d, s->p, 0) + (s->state == G_CALL ? CALL : kind_of(d, s->g)), KINDS, s->from, s->to);
}

static void on_ended(void *arg, const struct trace_g *g, int64_t at)
{
	struct draw *d = arg;
	size_t letter = d->by_goroutine ? map_get(&d->letter_of, g->id) : 0;

	(void)at;
	if (letter && !d->label[letter - 1])
		d->label[letter - 1] = format("G%llu %s", (unsigned long long)g->id, g_name(d->model, g));
}

/* Names get letters, those that ran longest first. */
static void give_letters(struct draw *d, struct summary *s)
{
	groups_sort(&s->functions, group_by_running);
	for (size_t i = 0; i < s->functions.n && d->letters < DRAW_LETTERS; i++) {
		const struct group *f = &s->functions.at[i];
		const char *name = f->name ? model_text(d->model, f->name) : "?";

		if (f->spent[G_RUNNING] == 0)
			continue;
		map_put(&d->letter_of, (uint64_t)f->name + 1, (size_t)d->letters + 1);
		d->label[d->letters++] = format("%.*s (%s)", bytes_in_columns(name, 24), name, with_commas(f->goroutines));
	}
}

static void *zeroed(size_t n)
{
	return memset(alloc(n), 0, n);
}

void draw_begin(struct draw *d, const struct trace_model *t, struct summary *s, struct trace_sink *sink)
{
	int columns = screen_columns() - MARGIN - BUSY;

	*d = (struct draw){ .model = t, .summary = s, .from = t->from };
	d->columns = columns < COLUMNS_MAX ? columns : COLUMNS_MAX;
	d->rows = t->procs < ROWS_MAX ? t->procs : ROWS_MAX;
	d->slice = (t->to - t->from) / d->columns + 1;
	d->cell = zeroed((d->rows * (size_t)d->columns * KINDS + 1) * sizeof *d->cell);
	d->ready = zeroed((size_t)d->columns * sizeof *d->ready);
	d->by_goroutine = t->goroutines <= GOROUTINES_MAX;
	if (!d->by_goroutine)
		give_letters(d, s);
	*sink = (struct trace_sink){ .arg = d, .span = on_span, .on_p = on_p, .ended = on_ended };
}

/* ----------------------------------------------------------------- printing */

static enum colour colour_of(int kind)
{
	static const enum colour colours[] = { GREEN, CYAN, YELLOW, MAGENTA, BLUE, RED };

	return kind == CALL ? DIM : kind == OTHERS ? PLAIN : colours[kind % 6];
}

/* A switch of colour is written where it changes. */
static void put(char c, enum colour wanted, enum colour *now)
{
	if (wanted != *now)
		printf("%s%s", colour(PLAIN), wanted == PLAIN ? "" : colour(wanted));
	*now = wanted;
	putchar(c);
}

/* Large: it had the P for half of the slice; '.': for less than an eighth. */
static char sign(const struct draw *d, int kind, int64_t busy)
{
	if (8 * busy < d->slice)
		return '.';
	if (kind == CALL)
		return '-';
	if (kind == OTHERS)
		return '*';
	return (char)((2 * busy < d->slice ? 'a' : 'A') + kind);
}

static void print_cell(const struct draw *d, uint64_t row, int column, enum colour *now)
{
	const int64_t *at = cell(d, row, column);
	int64_t busy = 0;
	int most = 0;

	for (int i = 0; i < KINDS; i++) {
		busy += at[i];
		most = at[i] > at[most] ? i : most;
	}
	if (busy == 0)
		put(' ', PLAIN, now);
	else
		put(sign(d, most, busy), colour_of(most), now);
}

static void print_p(const struct draw *d, uint64_t row)
{
	const struct summary *s = d->summary;
	int64_t busy = row < s->procs ? s->busy[row] : 0, all = d->model->to - d->model->from;
	enum colour now = PLAIN;

	printf("P%-*llu", MARGIN - 1, (unsigned long long)row);
	for (int i = 0; i < d->columns; i++)
		print_cell(d, row, i, &now);
	put(' ', PLAIN, &now);
	printf("%4.0f %%\n", all ? 100. * (double)busy / (double)all : 0);
}

/* How many were ready and had no P, on average of the slice: rounded up, + beyond 9. */
static void print_ready(const struct draw *d)
{
	printf("%s%-*s", colour(DIM), MARGIN, "ready");
	for (int i = 0; i < d->columns; i++) {
		int64_t tenths = 10 * d->ready[i] / d->slice;

		putchar(tenths == 0 ? ' ' : tenths > 90 ? '+' : (char)('1' + (tenths - 1) / 10));
	}
	printf("%s\n", colour(PLAIN));
}

#define TICK 15		/* columns from one time to the next */

static void print_times(const struct draw *d)
{
	int column = 0;

	printf("%s%*s", colour(DIM), MARGIN, "");
	for (int at = 0; at + TICK / 2 < d->columns; at += TICK) {
		int64_t time = d->from + at * d->slice;

		column += printf("%*s", at - column, "");
		column += printf("|%s", time ? time_text((double)time / 1e9) : "0");
	}
	printf("%s\n", colour(PLAIN));
}

static void print_legend(const struct draw *d)
{
	int column = 0, width = MARGIN + d->columns + BUSY;

	for (int i = 0; i < d->letters; i++) {
		char *entry = format("%c %s", 'A' + i, d->label[i] ? d->label[i] : "?");

		if (column > 0 && column + 2 + (int)strlen(entry) > width) {
			putchar('\n');
			column = 0;
		}
		column += printf("%s", column > 0 ? "  " : "");
		printf("%s%c%s", colour(colour_of(i)), 'A' + i, colour(PLAIN));
		column += 1 + printf("%s", entry + 1);
		free(entry);
	}
	printf("\n%s- in a call   small letters: less than half of the time   . less than an eighth%s\n",
	       colour(DIM), colour(PLAIN));
}

void draw_print(const struct draw *d)
{
	printf("\n%sProcessors%s, %s a column; busy\n", colour(BOLD), colour(PLAIN), time_text((double)d->slice / 1e9));
	print_times(d);
	for (uint64_t row = 0; row < d->rows; row++)
		print_p(d, row);
	if (d->rows < d->model->procs)
		printf("and %llu more\n", (unsigned long long)(d->model->procs - d->rows));
	print_ready(d);
	print_legend(d);
}

void draw_free(struct draw *d)
{
	for (int i = 0; i < d->letters; i++)
		free(d->label[i]);
	map_free(&d->letter_of);
	free(d->cell);
	free(d->ready);
}

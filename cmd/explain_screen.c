/*
 * explain_screen.c - steps on the terminal, one after the other.
 *
 * Above is what all Gs, Ms and Ps are after the step; below are the words of it, and of
 * those around it. A frame is drawn over the one before, each line cut at the screen's
 * edge.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "explain_view.h"
#include "screen.h"
#include "terminal.h"

#define QUEUE_COLUMN 32
#define MORE_COLUMNS 5		/* ", +99" */
#define STEP_MS 1200		/* between two steps while they run by themselves */

struct show {
	const struct steps *steps;
	const char *title, *look;
	bool has_source, runs;
	size_t *told, n;	/* the steps that are told; which of them is shown: */
	size_t at;
	struct world before, after;
	int columns, rows, row;
};

/* --------------------------------------------------------------------- lines */

/* On a low screen the last row has what has no room. */
static void new_line(struct show *v)
{
	fputs(v->row < v->rows - 2 ? "\033[K\r\n" : "\033[K\r", stdout);
	v->row++;
}

/* Text in a colour, cut where column reaches the edge. Returns the column behind it. */
static int put(const struct show *v, int column, enum colour c, const char *text)
{
	int room = v->columns - 1 - column, bytes = bytes_in_columns(text, room > 0 ? room : 0);

	printf("%s%.*s%s", colour(c), bytes, text, colour(PLAIN));
	for (int i = 0; i < bytes; i++)
		column += (text[i] & 0xc0) != 0x80;
	return column;
}

static int put_format(const struct show *v, int column, enum colour c, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static int put_format(const struct show *v, int column, enum colour c, const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		die("out of memory");
	va_end(ap);
	column = put(v, column, c, text);
	free(text);
	return column;
}

static int pad(int column, int to)
{
	if (column < to)
		printf("%*s", to - column, "");
	return column < to ? to : column;
}

/* --------------------------------------------------------------------- world */

static enum colour colour_of(uint64_t g)
{
	static const enum colour colours[] = { CYAN, YELLOW, MAGENTA, GREEN, BLUE };

	return colours[g % 5];
}

static int put_who(const struct show *v, int column, uint64_t g)
{
	char *who = step_who(v->steps, g);

	column = put(v, column, colour_of(g), who);
	free(who);
	return column;
}

static int by_order(const void *a, const void *b)
{
	const struct being *const *x = a, *const *y = b;

	return ((*x)->order > (*y)->order) - ((*x)->order < (*y)->order);
}

/* Those in a state and, where they are ready, in that queue: in the order in which they
 * came. */
static size_t choose(const struct show *v, enum g_state state, uint64_t p, const struct being **list)
{
	size_t n = 0;

	for (size_t i = 0; i < v->after.beings; i++) {
		const struct being *b = &v->after.being[i];

		if (b->state == state && (state != G_RUNNABLE || b->p == p) && (state != G_CALL || b->p == TRACE_NONE))
			list[n++] = b;
	}
	qsort(list, n, sizeof *list, by_order);
	return n;
}

/* What stands behind its name: what it waits for, or its thread. */
static char *how_it_is(const struct show *v, const struct being *b)
{
	if (b->state == G_WAITING)
		return format(" (%s)", text_of(v->steps->names, b->why));
	if (b->state == G_CALL)
		return format(" on M%llu", (unsigned long long)b->m);
	if (b->state == G_RUNNABLE && b->m != TRACE_NONE)
		return format(" (of M%llu)", (unsigned long long)b->m);
	return format("%s", "");
}

/* What has no room is a number: "+3". */
static int put_list(const struct show *v, int column, enum g_state state, uint64_t p)
{
	const struct being **list = alloc((v->after.beings + 1) * sizeof *list);
	size_t n = choose(v, state, p, list);

	if (n == 0)
		column = put(v, column, DIM, "-");
	for (size_t i = 0; i < n; i++) {
		char *who = step_who(v->steps, list[i]->id), *how = how_it_is(v, list[i]);
		int room = v->columns - 1 - column - (i + 1 < n ? MORE_COLUMNS : 0);

		if (i > 0 && (int)(strlen(who) + strlen(how)) + 2 > room) {
			column = put_format(v, column, DIM, ", +%zu", n - i);
			i = n;
		} else {
			column = put(v, column, PLAIN, i ? ", " : "");
			column = put(v, column, colour_of(list[i]->id), who);
			column = put(v, column, DIM, how);
		}
		free(who);
		free(how);
	}
	free(list);
	return column;
}

static const struct being *on_p(const struct world *w, uint64_t p)
{
	for (size_t i = 0; i < w->beings; i++)
		if (w->being[i].p == p && (w->being[i].state == G_RUNNING || w->being[i].state == G_CALL))
			return &w->being[i];
	return NULL;
}

static void show_p(struct show *v, uint64_t p)
{
	const struct being *b = on_p(&v->after, p);
	bool is_now = v->steps->at[v->told[v->at]].p == p;
	int column = put_format(v, 0, is_now ? BOLD : PLAIN, " %c P%-3llu", is_now ? '>' : ' ', (unsigned long long)p);

	if (v->after.m_of[p] == TRACE_NONE) {
		column = put(v, column, DIM, "idle: no thread");
	} else {
		column = put_format(v, column, PLAIN, "M%-3llu ", (unsigned long long)v->after.m_of[p]);
		if (b) {
			column = put(v, column, PLAIN, b->state == G_CALL ? "call " : "runs ");
			column = put_who(v, column, b->id);
		} else {
			column = put(v, column, DIM, "looks for work");
		}
	}
	column = pad(column, QUEUE_COLUMN);
	column = put(v, column, DIM, " queue: ");
	put_list(v, column, G_RUNNABLE, p);
	new_line(v);
}

static void show_world(struct show *v)
{
	int ps = (int)v->steps->procs, most = v->rows / 2 - 4;

	if (ps > PS_SHOWN)
		ps = PS_SHOWN;
	for (int p = 0; p < ps && p < most; p++)
		show_p(v, (uint64_t)p);
	new_line(v);
	put_list(v, put(v, 0, DIM, "   global queue  "), G_RUNNABLE, NO_P);
	new_line(v);
	put_list(v, put(v, 0, DIM, "   waiting       "), G_WAITING, 0);
	new_line(v);
	put_list(v, put(v, 0, DIM, "   in a call     "), G_CALL, 0);
	new_line(v);
	put_format(v, 0, DIM, "   ended         %llu", (unsigned long long)v->after.ended);
	new_line(v);
}

/* --------------------------------------------------------------------- words */

/* How it was before the step, for its words. */
static void world_before(const struct show *v, size_t told, struct world *w)
{
	world_copy(w, &v->steps->first);
	for (size_t i = 0; i < v->told[told]; i++)
		world_apply(w, &v->steps->at[i]);
}

/* As many lines as it needs, broken at blanks, while there are rows left. */
static void show_words(struct show *v, size_t told, int last_row)
{
	const struct step *step = &v->steps->at[v->told[told]];
	bool is_now = told == v->at;
	struct world w;
	char *words, *next, *time = step_time(v->steps, step);
	int column = put_format(v, 0, is_now ? BOLD : DIM, " %c %9s  ", is_now ? '>' : ' ', time);

	world_before(v, told, &w);
	words = next = step_words(v->steps, v->told[told], &w);
	world_free(&w);
	for (bool first = true; *next; first = false) {
		int n = (int)strcspn(next, " ");

		if (!first && column + 1 + n > v->columns - 2) {
			new_line(v);
			if (v->row >= last_row)
				break;
			column = pad(0, 14);
		} else if (!first) {
			putchar(' ');
			column++;
		}
		printf("%s%.*s%s", is_now ? colour(BOLD) : colour(DIM), n, next, colour(PLAIN));
		column += n;
		next += n + strspn(next + n, " ");
	}
	if (!*next)
		new_line(v);
	free(words);
	free(time);
}

static void show_around(struct show *v)
{
	int last_row = v->rows - 2, room = (last_row - v->row) / 2;
	size_t first = v->at > (size_t)(room - 2) / 2 ? v->at - (size_t)(room - 2) / 2 : 0;

	for (size_t i = first; i < v->n && v->row < last_row; i++)
		show_words(v, i, last_row);
}

/* What to look for. */
static void show_look(struct show *v)
{
	if (!v->look)
		return;
	put(v, put(v, 0, PLAIN, " "), DIM, v->look);
	new_line(v);
}

static void draw(struct show *v)
{
	terminal_size(&v->columns, &v->rows);
	v->row = 0;
	fputs("\033[H", stdout);
	put_format(v, put_format(v, 0, BOLD, " %s", v->title), DIM, "  step %zu of %zu", v->at + 1, v->n);
	new_line(v);
	show_look(v);
	new_line(v);
	show_world(v);
	new_line(v);
	show_around(v);
	printf("\033[J\033[%d;1H", v->rows);
	put(v, 0, DIM, v->has_source ? " space runs/stops   left right: steps   n p: scenes   s: its source   q: quit"
	                             : " space runs/stops   left right: steps   q: quit");
	fflush(stdout);
}

/* ------------------------------------------------------------------------ keys */

static void set_world(struct show *v)
{
	world_free(&v->after);
	world_before(v, v->at, &v->after);
	world_apply(&v->after, &v->steps->at[v->told[v->at]]);
}

static void go_to(struct show *v, size_t at)
{
	v->at = at < v->n ? at : v->n - 1;
	set_world(v);
}

static void tell_all(struct show *v)
{
	v->told = alloc((v->steps->n + 1) * sizeof *v->told);
	for (size_t i = 0; i < v->steps->n; i++)
		if (v->steps->at[i].kind != STEP_SEEN)
			v->told[v->n++] = i;
}

/* True: *next is what the reader wants. */
static bool on_key(struct show *v, int key, enum explain_next *next)
{
	switch (key) {
	case KEY_NONE:
		if (v->runs && v->at + 1 < v->n)
			go_to(v, v->at + 1);
		return terminal_ended();
	case ' ': v->runs = !v->runs; return false;
	case KEY_RIGHT:
	case KEY_DOWN:
	case '\n': v->runs = false; go_to(v, v->at + 1); return false;
	case KEY_LEFT:
	case KEY_UP: v->runs = false; go_to(v, v->at ? v->at - 1 : 0); return false;
	case KEY_HOME: go_to(v, 0); return false;
	case KEY_END: go_to(v, v->n - 1); return false;
	case 'n': *next = EXPLAIN_NEXT; return v->has_source;
	case 'p': *next = EXPLAIN_BEFORE; return v->has_source;
	case 's': *next = EXPLAIN_SOURCE; return v->has_source;
	case 'q':
	case 'Q':
	case KEY_END_OF_INPUT: return true;
	default: return false;
	}
}

enum explain_next explain_show(const struct steps *s, const char *title, const char *look)
{
	struct show v = { .steps = s, .title = title, .look = look, .has_source = look };
	enum explain_next next = EXPLAIN_QUIT;

	tell_all(&v);
	if (v.n > 0) {
		go_to(&v, 0);
		do
			draw(&v);
		while (!on_key(&v, terminal_key(v.runs ? STEP_MS : 3600000), &next));
	}
	world_free(&v.after);
	free(v.told);
	return next;
}

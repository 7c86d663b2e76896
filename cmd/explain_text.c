/*
 * explain_text.c - steps as lines: when, who is on each P, and what happened.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "explain_view.h"
#include "screen.h"

#define TIME_COLUMNS  9
#define P_COLUMNS     11	/* the least width of a column */
#define P_COLUMNS_MAX 17	/* the greatest */
#define WORDS_COLUMNS 49

/* How many Ps have a column, and how wide that is. */
struct layout {
	int ps, wide;
};

static struct layout layout_of(const struct steps *s)
{
	int room = screen_columns() - TIME_COLUMNS - WORDS_COLUMNS, most = room / P_COLUMNS;
	struct layout l = { (int)s->procs < most ? (int)s->procs : most, P_COLUMNS };

	if (l.ps > PS_SHOWN)
		l.ps = PS_SHOWN;
	if (l.ps > 0 && room / l.ps > P_COLUMNS)
		l.wide = room / l.ps < P_COLUMNS_MAX ? room / l.ps : P_COLUMNS_MAX;
	return l;
}

static const struct being *on_p(const struct world *w, uint64_t p)
{
	for (size_t i = 0; i < w->beings; i++)
		if (w->being[i].p == p && (w->being[i].state == G_RUNNING || w->being[i].state == G_CALL))
			return &w->being[i];
	return NULL;
}

/* Who runs there; "." for a thread that has none; nothing without a thread. */
static void print_p(const struct steps *s, const struct world *w, uint64_t p, bool is_now, int wide)
{
	const struct being *b = on_p(w, p);
	char *who = b ? step_who(s, b->id) : format("%s", w->m_of[p] != TRACE_NONE ? "." : "");
	int bytes = bytes_in_columns(who, wide - 1);

	printf("%s%.*s%s%*s", is_now ? colour(GREEN) : "", bytes, who, is_now ? colour(PLAIN) : "",
	       wide - bytes, "");
	free(who);
}

/* Words within columns; the lines but the first are indented as far as the words
 * begin. */
static void print_words(const char *words, int indent, int columns)
{
	int room = columns - indent, used = 0;

	while (*words) {
		int n = (int)strcspn(words, " ");

		if (used > 0 && used + 1 + n > room) {
			printf("\n%*s", indent, "");
			used = 0;
		}
		used += printf("%s%.*s", used > 0 ? " " : "", n, words);
		words += n + strspn(words + n, " ");
	}
	putchar('\n');
}

static void print_head(struct layout l)
{
	printf("%s%*s  ", colour(DIM), TIME_COLUMNS - 2, "time");
	for (int p = 0; p < l.ps; p++)
		printf("P%-*d", l.wide - 1, p);
	printf("what happened%s\n", colour(PLAIN));
}

static void print_step(const struct steps *s, size_t i, const struct world *before, const struct world *after,
                       struct layout l)
{
	const struct step *step = &s->at[i];
	char *time = step_time(s, step), *words = step_words(s, i, before);

	printf("%*s  ", TIME_COLUMNS - 2, time);
	for (int p = 0; p < l.ps; p++)
		print_p(s, after, (uint64_t)p, step->p == (uint64_t)p, l.wide);
	print_words(words, TIME_COLUMNS + l.ps * l.wide, screen_columns());
	free(time);
	free(words);
}

void explain_print(const struct steps *s)
{
	struct world before, after;
	struct layout l = layout_of(s);

	world_copy(&before, &s->first);
	world_copy(&after, &s->first);
	print_head(l);
	for (size_t i = 0; i < s->n; i++) {
		world_apply(&after, &s->at[i]);
		if (s->at[i].kind != STEP_SEEN)
			print_step(s, i, &before, &after, l);
		world_apply(&before, &s->at[i]);
	}
	if (s->is_cut)
		printf("%sand more: --from and --to show another part%s\n", colour(DIM), colour(PLAIN));
	world_free(&before);
	world_free(&after);
}

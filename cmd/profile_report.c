/*
 * profile_report.c - a profile as text: its functions, and its tree of calls.
 */
#include "profile_view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "screen.h"

#define INDENT 2

static const char *text(const struct profile *p, uint32_t number)
{
	return text_of(p->names, number);
}

char *value_text(const struct profile *p, const struct profile_type *type, int64_t value)
{
	static const struct { const char *unit; double seconds; } times[] = {
		{ "nanoseconds", 1e-9 }, { "microseconds", 1e-6 }, { "milliseconds", 1e-3 }, { "seconds", 1 },
	};
	const char *unit = text(p, type->unit);

	if (value == 0)
		return format("0");
	for (size_t i = 0; i < sizeof times / sizeof *times; i++)
		if (strcmp(unit, times[i].unit) == 0)
			return time_text((double)value * times[i].seconds);
	return strcmp(unit, "bytes") == 0 ? bytes_text((double)value) : with_commas((uint64_t)value);
}

static double share(const struct tree *t, int64_t value)
{
	return t->sum ? 100 * (double)value / (double)t->sum : 0;
}

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* --------------------------------------------------------------------- head */

/* "cpu 1.20 s"; of counts: "goroutine 12". */
static void print_type(const struct profile *p, const struct profile_type *type)
{
	char *value = value_text(p, type, type->sum);

	printf("%s %s", text(p, type->what), value);
	free(value);
}

void report_head(const struct profile *p, const char *path)
{
	const struct profile_type *chosen = &p->type[p->chosen];

	printf("%s%s%s: ", colour(BOLD), path, colour(PLAIN));
	print_type(p, chosen);
	if (p->took > 0) {
		char *took = time_text((double)p->took / 1e9);

		printf(" in %s", took);
		free(took);
	}
	for (size_t i = 0; i < p->types; i++)
		if (i != p->chosen) {
			printf(", ");
			print_type(p, &p->type[i]);
		}
	putchar('\n');
	for (size_t i = 0; i < p->comments; i++)
		printf("%s%s%s\n", colour(DIM), text(p, p->comment[i]), colour(PLAIN));
}

/* ---------------------------------------------------------------------- top */

/* The name, and the file behind it if there is room. */
static void print_function(const struct profile *p, uint32_t function, uint32_t file, int columns)
{
	const char *name = text(p, function), *in = file_name(text(p, file));
	int bytes = bytes_in_columns(name, columns), left = columns - bytes;

	printf("%.*s", bytes, name);
	if (*in && name[0] != '[' && (int)strlen(in) + 2 <= left)
		printf("  %s%s%s", colour(DIM), in, colour(PLAIN));
	putchar('\n');
}

void report_top(const struct tree *t, size_t n)
{
	const struct profile *p = t->profile;
	const char *what = text(p, p->type[p->chosen].what);
	int columns = screen_columns();

	printf("\n%s%10s %6s %12s %6s   function%s\n", colour(BOLD), "itself", "%", "with calls", "%",
	       colour(PLAIN));
	for (size_t i = 0; i < t->functions && i < n; i++) {
		const struct function_sum *f = &t->function[i];
		char *flat = value_text(p, &p->type[p->chosen], f->flat), *all = value_text(p, &p->type[p->chosen], f->all);

		printf("%10s %6.1f %12s %6.1f   ", flat, share(t, f->flat), all, share(t, f->all));
		print_function(p, f->function, f->file, columns - 40);
		free(flat);
		free(all);
	}
	if (t->functions > n)
		printf("%sand %s functions more%s\n", colour(DIM), with_commas(t->functions - n), colour(PLAIN));
	if (t->functions == 0)
		printf("No samples of %s.\n", what);
}

/* --------------------------------------------------------------------- tree */

struct printing {
	const struct tree *tree;
	int64_t least;
	int columns;
};

static bool is_shown(const struct printing *pr, uint32_t node)
{
	return node != 0 && pr->tree->node[node].all >= pr->least;
}

/* indent: columns in front of the name, the last two of which are "+ " where it is one of
 * several. */
static void print_node(const struct printing *pr, const struct node *n, int indent, bool is_one_of)
{
	const struct tree *t = pr->tree;
	const struct profile *p = t->profile;
	int blank = indent < pr->columns / 2 ? indent : pr->columns / 2;
	char *all = value_text(p, &p->type[p->chosen], n->all);
	char *flat = n->flat > 0 ? value_text(p, &p->type[p->chosen], n->flat) : format("%s", "");

	printf("%6.1f %10s %10s   %*s", share(t, n->all), all, flat, blank, is_one_of ? "+ " : "");
	print_function(p, n->function, n->file, pr->columns - 32 - blank);
	free(all);
	free(flat);
}

/* One that is called alone stands below its caller; where calls branch, they are
 * indented. */
static void print_children(const struct printing *pr, const struct node *n, int indent)
{
	const struct node *node = pr->tree->node;
	uint32_t child = n->child;
	bool branches = is_shown(pr, child) && (is_shown(pr, node[child].next) || n->flat >= pr->least);

	indent += branches ? 2 : 0;
	for (; is_shown(pr, child); child = node[child].next) {
		print_node(pr, &node[child], indent, branches);
		print_children(pr, &node[child], indent);
	}
}

void report_tree(const struct tree *t, double least)
{
	struct printing pr = { t, 1 + (int64_t)(least * (double)t->sum), screen_columns() };

	printf("\n%s%6s %10s %10s   tree of calls%s\n", colour(BOLD), "%", "with calls", "itself",
	       colour(PLAIN));
	print_children(&pr, &t->node[0], 0);
	printf("%sBelow %g %% is left out. A function that calls itself is one line.%s\n", colour(DIM),
	       100 * least, colour(PLAIN));
}

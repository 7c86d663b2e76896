/*
 * profile_html.c - a flame graph as one page of HTML, which needs nothing else.
 *
 * The page is that of page.h with what cmd/page/ has for flame graphs. Its data is the
 * tree, of which at most NODES_MAX nodes are kept: the largest. A node is never larger
 * than its parent, so what is kept is a tree.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "embed.h"
#include "page.h"
#include "profile_view.h"

#define NODES_MAX     20000
#define FUNCTIONS_MAX 2000

EMBED(page_flame_style, "page/flame.css")
EMBED(page_flame_body, "page/flame.html")
EMBED(page_flame, "page/flame.js")

struct html {
	const struct tree *tree;
	FILE *out;
	int64_t least;			/* smaller nodes are left out */
	uint32_t *number;		/* by node: its number in the page + 1 */
	size_t nodes;
	struct map text_of;		/* a text: its number in the page */
	uint32_t *text;
	size_t texts, texts_room;
};

static int down(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x < y) - (x > y);
}

/* More than the value of the first node that has no room; 1 if all have. */
static int64_t least_value(const struct tree *t)
{
	int64_t *value, least = 1;

	if (t->nodes <= NODES_MAX)
		return least;
	value = alloc(t->nodes * sizeof *value);
	for (size_t i = 0; i < t->nodes; i++)
		value[i] = t->node[i].all;
	qsort(value, t->nodes, sizeof *value, down);
	least = value[NODES_MAX] < INT64_MAX ? value[NODES_MAX] + 1 : INT64_MAX;
	free(value);
	return least;
}

static size_t text(struct html *h, uint32_t what)
{
	if (what == 0)
		return 0;
	if (!map_get(&h->text_of, what)) {
		if (h->texts == h->texts_room) {
			h->texts_room = 2 * h->texts + 64;
			h->text = realloc(h->text, h->texts_room * sizeof *h->text);
			if (!h->text)
				die("out of memory");
		}
		h->text[h->texts++] = what;
		map_put(&h->text_of, what, h->texts);
	}
	return map_get(&h->text_of, what);
}

/* Five numbers: the parent's number, the function, its file, what it has itself and with
 * calls. */
static void put_node(struct html *h, uint32_t at)
{
	const struct node *n = &h->tree->node[at];

	fprintf(h->out, "%s%u,%zu,%zu,%" PRId64 ",%" PRId64, h->nodes ? "," : "",
	        at ? h->number[n->parent] - 1 : 0, text(h, n->function), text(h, n->file), n->flat, n->all);
	h->number[at] = (uint32_t)++h->nodes;
}

/* Parents come before their children, and siblings in their order. */
static void put_nodes(struct html *h)
{
	const struct node *node = h->tree->node;
	uint32_t *todo = alloc((h->tree->nodes + 1) * sizeof *todo);
	size_t first = 0, n = 0;

	fputs(",\n\"nodes\":[", h->out);
	todo[n++] = 0;
	while (first < n) {
		uint32_t at = todo[first++];

		put_node(h, at);
		for (uint32_t child = node[at].child; child && node[child].all >= h->least; child = node[child].next)
			todo[n++] = child;
	}
	putc(']', h->out);
	free(todo);
}

/* Four numbers: the function, its file, itself, with calls. */
static void put_functions(struct html *h)
{
	fputs(",\n\"functions\":[", h->out);
	for (size_t i = 0; i < h->tree->functions && i < FUNCTIONS_MAX; i++) {
		const struct function_sum *f = &h->tree->function[i];

		fprintf(h->out, "%s%zu,%zu,%" PRId64 ",%" PRId64, i ? "," : "", text(h, f->function), text(h, f->file),
		        f->flat, f->all);
	}
	putc(']', h->out);
}

static void put_texts(struct html *h)
{
	fputs(",\n\"texts\":[\"\"", h->out);
	for (size_t i = 0; i < h->texts; i++) {
		putc(',', h->out);
		json_text(h->out, text_of(h->tree->profile->names, h->text[i]));
	}
	fputs("]}\n", h->out);
}

static void put_head(struct html *h, const char *name)
{
	const struct profile *p = h->tree->profile;
	const struct profile_type *type = &p->type[p->chosen];
	const char *slash = strrchr(name, '/');

	fputs("{\"name\":", h->out);
	json_text(h->out, slash ? slash + 1 : name);
	fputs(",\"what\":", h->out);
	json_text(h->out, text_of(p->names, type->what));
	fputs(",\"unit\":", h->out);
	json_text(h->out, text_of(p->names, type->unit));
	fprintf(h->out, ",\"took\":%" PRId64 ",\"all_nodes\":%zu,\"all_functions\":%zu,\"least\":%" PRId64,
	        p->took > 0 ? p->took : 0, h->tree->nodes, h->tree->functions, h->least);
	fputs(",\"comments\":[", h->out);
	for (size_t i = 0; i < p->comments; i++) {
		fputs(i ? "," : "", h->out);
		json_text(h->out, text_of(p->names, p->comment[i]));
	}
	putc(']', h->out);
}

void flame_write(const struct tree *t, const char *name, const char *out)
{
	struct html h = { .tree = t, .least = least_value(t), .out = view_open(out) };

	h.number = alloc(t->nodes * sizeof *h.number);
	page_begin(h.out, "goro profile", page_flame_style, page_flame_body);
	put_head(&h, name);
	put_nodes(&h);
	put_functions(&h);
	put_texts(&h);
	page_end(h.out, (const char *const[]){ page_flame, NULL });
	view_close(h.out, out);
	free(h.number);
	free(h.text);
	map_free(&h.text_of);
}

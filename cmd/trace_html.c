/*
 * trace_html.c - a trace as one page of HTML, which needs nothing else.
 *
 * The page is that of page.h with what cmd/page/ has for the timeline. There are rows for
 * the ROWS_MAX goroutines that live longest; the rows of the Ps have all. The spans of
 * each kind of row are bounded (trace_rows.c), so the page of a long trace has a few MB.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "embed.h"
#include "page.h"
#include "trace_rows.h"
#include "trace_view.h"

#define ROWS_MAX    1000	/* goroutines */
#define PS_MAX      256
#define ITEMS_MAX   50000	/* spans of Ps; and of goroutines */
#define MARKS_MAX   20000	/* regions; and logs */
#define FRAMES_MAX  24

EMBED(page_timeline_style, "page/timeline.css")
EMBED(page_timeline_body, "page/timeline.html")
EMBED(page_timeline, "page/timeline.js")
EMBED(page_timeline_panel, "page/timeline_panel.js")

struct goroutine {
	uint64_t id, parent;
	int64_t life, born;
	uint32_t name, parent_stack;
	bool existed;
};

/* A region, or a log: to is 0, and key and value are texts. */
struct mark {
	uint64_t g, task;
	int64_t from, to;
	uint32_t key, value;
};

struct marks {
	struct mark *at;
	size_t n, left_out;
};

struct html {
	struct trace_model *model;
	FILE *out;
	/* a heap while they are chosen: the shortest life first */
	struct goroutine *goroutine;
	size_t goroutines;
	struct map row_of;		/* a goroutine's id: its row + 1 */
	struct rows ps, gs;
	struct marks regions, logs;
	struct map text_of, stack_of;	/* numbers in the page + 1 */
	uint32_t *text, *stack;		/* in the order of those numbers */
	size_t texts, stacks;
};

/* ------------------------------------------------------------- which goroutines */

static void sift_down(struct goroutine *heap, size_t n, size_t i)
{
	struct goroutine g = heap[i];
	size_t child;

	while ((child = 2 * i + 1) < n) {
		child += child + 1 < n && heap[child + 1].life < heap[child].life;
		if (heap[child].life >= g.life)
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = g;
}

static void choose(void *arg, const struct trace_g *g, int64_t at)
{
	struct html *h = arg;
	struct goroutine new = { .id = g->id, .parent = g->parent, .life = at - g->born, .born = g->born,
	                         .name = g->name ? g->name : g->function, .parent_stack = g->parent_stack,
	                         .existed = g->existed };

	if (at < h->model->from || g->born > h->model->to)
		return;
	if (h->goroutines < ROWS_MAX) {
		h->goroutine[h->goroutines++] = new;
		if (h->goroutines == ROWS_MAX)
			for (size_t i = ROWS_MAX / 2; i-- > 0;)
				sift_down(h->goroutine, ROWS_MAX, i);
	} else if (new.life > h->goroutine[0].life) {
		h->goroutine[0] = new;
		sift_down(h->goroutine, ROWS_MAX, 0);
	}
}

static int by_id(const void *a, const void *b)
{
	const struct goroutine *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

static void choose_goroutines(struct html *h)
{
	struct trace_sink sink = { .arg = h, .ended = choose };

	h->goroutine = alloc(ROWS_MAX * sizeof *h->goroutine);
	model_read(h->model, &sink);
	qsort(h->goroutine, h->goroutines, sizeof *h->goroutine, by_id);
	for (size_t i = 0; i < h->goroutines; i++)
		map_put(&h->row_of, h->goroutine[i].id, i + 1);
}

/* ----------------------------------------------------------------- their spans */

static struct item item_of(const struct html *h, const struct trace_span *s)
{
	const char *end = s->state == G_RUNNING ? span_end(h->model, s) : "";
	struct item item = { .from = s->from, .to = s->to, .ready_at = -1, .g = s->g->id, .p = s->p, .n = 1,
	                     .name = s->g->name ? s->g->name : s->g->function, .stack = s->stack, .state = s->state };

	item.busy = s->state == G_RUNNING ? s->to - s->from : 0;
	if (s->state == G_WAITING)
		item.why = s->why;
	else if (*end)
		item.why = names_text(h->model->reader.names, end, strlen(end));
	if (s->state == G_RUNNING || s->state == G_WAITING) {
		item.by = s->by;
		item.by_p = s->by_p;
		item.ready_at = s->ready_at;
	}
	return item;
}

static void on_span(void *arg, const struct trace_span *s)
{
	struct html *h = arg;
	struct item item = item_of(h, s);
	size_t row = map_get(&h->row_of, s->g->id);

	if (row)
		rows_add(&h->gs, row - 1, &item);
}

static void on_p(void *arg, const struct trace_span *s)
{
	struct html *h = arg;
	struct item item = item_of(h, s);

	if (s->to > s->from && (s->p < PS_MAX || s->p == P_OUTSIDE))
		rows_add(&h->ps, s->p < PS_MAX ? s->p : PS_MAX, &item);
}

static void add_mark(struct marks *marks, struct mark mark)
{
	if (marks->n == MARKS_MAX)
		marks->left_out++;
	else
		marks->at[marks->n++] = mark;
}

static void on_region(void *arg, const struct trace_g *g, const struct trace_region *r, int64_t to)
{
	struct html *h = arg;

	if (map_get(&h->row_of, g->id))
		add_mark(&h->regions, (struct mark){ g->id, r->task, r->from, to, r->name, 0 });
}

static void on_log(void *arg, const struct trace_event *e, uint32_t key, uint32_t value)
{
	struct html *h = arg;

	if (map_get(&h->row_of, e->g->id))
		add_mark(&h->logs, (struct mark){ e->g->id, e->arg[0], e->time, 0, key, value });
}

static void collect(struct html *h)
{
	struct trace_sink sink = { .arg = h, .span = on_span, .on_p = on_p, .region = on_region, .log = on_log };

	rows_begin(&h->ps, PS_MAX + 1, ITEMS_MAX);
	rows_begin(&h->gs, h->goroutines, ITEMS_MAX);
	h->regions.at = alloc(MARKS_MAX * sizeof *h->regions.at);
	h->logs.at = alloc(MARKS_MAX * sizeof *h->logs.at);
	model_read(h->model, &sink);
}

/* -------------------------------------------------------------------- writing */

/* The number that stands for one in the page: 0 for none. */
static size_t number(struct map *map, uint32_t **list, size_t *n, uint32_t what)
{
	if (what == 0)
		return 0;
	if (!map_get(map, what)) {
		if ((*n & (*n + 1)) == 0) {
			*list = realloc(*list, 2 * (*n + 1) * sizeof **list);
			if (!*list)
				die("out of memory");
		}
		(*list)[(*n)++] = what;
		map_put(map, what, *n);
	}
	return map_get(map, what);
}

static size_t text(struct html *h, uint32_t what)
{
	return number(&h->text_of, &h->text, &h->texts, what);
}

static size_t stack(struct html *h, uint32_t what)
{
	return number(&h->stack_of, &h->stack, &h->stacks, what);
}

/* Thirteen numbers; times as the distance from the one before. P ids count from 1; 0 is
 * none. */
static void put_item(struct html *h, const struct item *i, int64_t *last)
{
	fprintf(h->out, "%" PRId64 ",%" PRId64 ",%d,%" PRIu64 ",%" PRIu64 ",%zu,%u,%" PRId64 ",%zu,%zu,%" PRIu64 ",%" PRIu64 ",%" PRId64,
	        i->from - *last, i->to - i->from, (int)i->state, i->g, i->p + 1, text(h, i->name), i->n, i->busy,
	        text(h, i->why), stack(h, i->stack), i->by, i->by ? i->by_p + 1 : 0,
	        i->ready_at < 0 ? -1 : i->from - i->ready_at);
	*last = i->to;
}

static void put_row(struct html *h, const struct row *row)
{
	int64_t last = 0;

	putc('[', h->out);
	for (size_t i = 0; i < row->n; i++) {
		if (i)
			putc(',', h->out);
		put_item(h, &row->at[i], &last);
	}
	putc(']', h->out);
}

static void put_ps(struct html *h)
{
	const char *comma = "";

	fputs(",\n\"ps\":[", h->out);
	for (size_t p = 0; p <= PS_MAX; p++) {
		if (p == PS_MAX ? h->ps.at[p].n == 0 : p >= h->model->procs)
			continue;
		fprintf(h->out, "%s\n{\"p\":%zu,\"items\":", comma, p == PS_MAX ? P_OUTSIDE : p);
		comma = ",";
		put_row(h, &h->ps.at[p]);
		putc('}', h->out);
	}
	putc(']', h->out);
}

static void put_gs(struct html *h)
{
	fputs(",\n\"gs\":[", h->out);
	for (size_t i = 0; i < h->goroutines; i++) {
		const struct goroutine *g = &h->goroutine[i];

		fprintf(h->out, "%s\n{\"g\":%" PRIu64 ",\"name\":%zu,\"born\":%" PRId64 ",\"life\":%" PRId64
		        ",\"parent\":%" PRIu64 ",\"where\":%zu,\"items\":", i ? "," : "", g->id, text(h, g->name),
		        g->existed ? -1 : g->born, g->life, g->parent, stack(h, g->parent_stack));
		put_row(h, &h->gs.at[i]);
		putc('}', h->out);
	}
	putc(']', h->out);
}

/* Six numbers each. */
static void put_marks(struct html *h, const char *name, const struct marks *marks)
{
	fprintf(h->out, ",\n\"%s\":[", name);
	for (size_t i = 0; i < marks->n; i++) {
		const struct mark *m = &marks->at[i];

		fprintf(h->out, "%s%" PRIu64 ",%" PRIu64 ",%" PRId64 ",%" PRId64 ",%zu,%zu", i ? "," : "", m->g, m->task,
		        m->from, m->to, text(h, m->key), text(h, m->value));
	}
	fprintf(h->out, "],\n\"%s_left_out\":%zu", name, marks->left_out);
}

static void put_head(struct html *h, const struct summary *s, const char *name)
{
	const struct trace_model *t = h->model;
	const char *slash = strrchr(name, '/');

	fputs("{\"name\":", h->out);
	json_text(h->out, slash ? slash + 1 : name);
	fprintf(h->out, ",\"from\":%" PRId64 ",\"to\":%" PRId64 ",\"procs\":%" PRIu64 ",\"goroutines\":%" PRIu64
	        ",\"events\":%" PRIu64, t->from, t->to, t->procs, t->goroutines, t->reader.events);
	fprintf(h->out, ",\"preempted\":%" PRIu64 ",\"calls_without_p\":%" PRIu64 ",\"moved\":%" PRIu64,
	        s->preempted, s->calls_without_p, s->moved);
	fprintf(h->out, ",\"latency\":[%" PRId64 ",%" PRId64 ",%" PRId64 "]", histogram_quantile(&s->latency, .5),
	        histogram_quantile(&s->latency, .99), s->latency.most);
	fprintf(h->out, ",\"states\":[0,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "]", s->state[1].sum,
	        s->state[2].sum, s->state[3].sum, s->state[4].sum);
	fprintf(h->out, ",\"shortest\":[%" PRId64 ",%" PRId64 "]", h->ps.shortest, h->gs.shortest);
}

static void put_stack(struct html *h, uint32_t id)
{
	size_t n;
	const struct frame *frame = frames_of(h->model->reader.names, id, &n);

	for (size_t i = 0; i < n && i < FRAMES_MAX; i++)
		fprintf(h->out, "%s%zu,%zu,%u", i ? "," : "", text(h, frame[i].function), text(h, frame[i].file), frame[i].line);
}

/* What the others have named by number: stacks first, which name texts. */
static void put_tables(struct html *h)
{
	fputs(",\n\"stacks\":[[]", h->out);
	for (size_t i = 0; i < h->stacks; i++) {
		fputs(",[", h->out);
		put_stack(h, h->stack[i]);
		putc(']', h->out);
	}
	fputs("],\n\"texts\":[\"\"", h->out);
	for (size_t i = 0; i < h->texts; i++) {
		putc(',', h->out);
		json_text(h->out, model_text(h->model, h->text[i]));
	}
	fputs("]}\n", h->out);
}

static void put_page(struct html *h, const struct summary *s, const char *name)
{
	page_begin(h->out, "goro trace", page_timeline_style, page_timeline_body);
	put_head(h, s, name);
	put_ps(h);
	put_gs(h);
	put_marks(h, "regions", &h->regions);
	put_marks(h, "logs", &h->logs);
	put_tables(h);
	page_end(h->out, (const char *const[]){ page_timeline, page_timeline_panel, NULL });
}

static void free_all(struct html *h)
{
	rows_free(&h->ps);
	rows_free(&h->gs);
	map_free(&h->row_of);
	map_free(&h->text_of);
	map_free(&h->stack_of);
	free(h->text);
	free(h->stack);
	free(h->goroutine);
	free(h->regions.at);
	free(h->logs.at);
}

void html_write(struct trace_model *t, struct summary *s, const char *name, const char *out)
{
	struct html h = { .model = t };

	choose_goroutines(&h);
	collect(&h);
	h.out = view_open(out);
	put_page(&h, s, name);
	view_close(h.out, out);
	free_all(&h);
}

/*
 * trace_summary.c - collects a trace's figures while it is read.
 */
#include "trace_summary.h"

#include <stdlib.h>
#include <string.h>

#include "cmd.h"

/* --------------------------------------------------------------- histogram */

static unsigned bucket_of(int64_t duration)
{
	uint64_t v = (uint64_t)duration;
	unsigned power;

	if (v < 8)
		return (unsigned)v;
	power = 63 - (unsigned)__builtin_clzll(v);
	return (power - 2) * 8 + (unsigned)(v >> (power - 3) & 7);
}

/* The middle of a bucket. */
static int64_t middle_of(unsigned bucket)
{
	unsigned power = bucket / 8 + 2;
	int64_t width = bucket < 8 ? 1 : (int64_t)1 << (power - 3);

	return bucket < 8 ? (int64_t)bucket : (int64_t)(8 + bucket % 8) * width + width / 2;
}

static void histogram_add(struct histogram *h, int64_t duration)
{
	h->bucket[bucket_of(duration)]++;
	h->n++;
	if (duration > h->most)
		h->most = duration;
}

int64_t histogram_quantile(const struct histogram *h, double fraction)
{
	uint64_t below = 0;

	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		below += h->bucket[i];
		if (below > 0 && (double)below >= fraction * (double)h->n)
			return middle_of(i) < h->most ? middle_of(i) : h->most;
	}
	return -1;
}

/* ------------------------------------------------------------------ groups */

static struct group *group(struct groups *groups, uint64_t key)
{
	size_t i = map_get(&groups->by_key, key);

	if (i)
		return &groups->at[i - 1];
	if (groups->n == groups->room) {
		groups->room = 2 * groups->room + 16;
		groups->at = realloc(groups->at, groups->room * sizeof *groups->at);
		if (!groups->at)
			die("out of memory");
	}
	groups->at[groups->n] = (struct group){ .key = key };
	map_put(&groups->by_key, key, groups->n + 1);
	return &groups->at[groups->n++];
}

void groups_sort(struct groups *groups, int (*order)(const void *, const void *))
{
	if (groups->n)
		qsort(groups->at, groups->n, sizeof *groups->at, order);
	map_free(&groups->by_key);
}

static int more_first(int64_t a, int64_t b)
{
	return (a < b) - (a > b);
}

int group_by_longest(const void *a, const void *b)
{
	return more_first(((const struct group *)a)->waits.most, ((const struct group *)b)->waits.most);
}

int group_by_sum(const void *a, const void *b)
{
	return more_first(((const struct group *)a)->waits.sum, ((const struct group *)b)->waits.sum);
}

int group_by_running(const void *a, const void *b)
{
	const struct group *x = a, *y = b;
	int64_t busy_x = x->spent[G_RUNNING], busy_y = y->spent[G_RUNNING];

	return busy_x != busy_y ? more_first(busy_x, busy_y) : (x->name > y->name) - (x->name < y->name);
}

/* ------------------------------------------------------------------- spans */

static void count(struct tally *t, int64_t duration)
{
	t->n++;
	t->sum += duration;
	if (duration > t->most)
		t->most = duration;
}

static void add_wait(struct summary *s, const struct trace_span *span)
{
	int64_t duration = span->to - span->from;
	struct group *reason = group(&s->reasons, span->why);
	struct group *place = group(&s->places, (uint64_t)span->why << 32 | span->stack);

	reason->name = place->name = span->why;
	place->stack = span->stack;
	if (duration >= place->waits.most) {
		place->longest_g = span->g->id;
		place->longest_name = span->g->name ? span->g->name : span->g->function;
		place->longest_from = span->from;
	}
	count(&reason->waits, duration);
	count(&place->waits, duration);
}

static void add_busy(void *arg, const struct trace_span *span)
{
	struct summary *s = arg;

	if (span->p >= P_OUTSIDE)
		return;
	if (span->p >= s->procs) {
		s->busy = realloc(s->busy, (span->p + 1) * sizeof *s->busy);
		if (!s->busy)
			die("out of memory");
		memset(s->busy + s->procs, 0, (span->p + 1 - s->procs) * sizeof *s->busy);
		s->procs = span->p + 1;
	}
	s->busy[span->p] += span->to - span->from;
}

static void add_run(struct summary *s, const struct trace_span *span)
{
	if (span->end == EV_GO_STOP && strcmp(model_text(s->model, span->why), "preempted") == 0)
		s->preempted++;
	else if (span->end == EV_GO_STOP)
		s->yielded++;
	s->moved += span->is_whole && span->ready_at >= 0 && span->by_p < P_OUTSIDE && span->p < P_OUTSIDE &&
	            span->by_p != span->p;
}

static void add_span(void *arg, const struct trace_span *span)
{
	struct summary *s = arg;

	count(&s->state[span->state], span->to - span->from);
	if (span->state == G_RUNNABLE && span->is_whole)
		histogram_add(&s->latency, span->to - span->from);
	if (span->state == G_WAITING && span->is_whole)
		add_wait(s, span);
	if (span->state == G_RUNNING)
		add_run(s, span);
	if (span->state == G_CALL) {
		s->calls += span->is_whole;
		s->calls_without_p += span->is_whole && span->lost_p;
	}
}

/* ------------------------------------------------------------- other things */

static void add_ended(void *arg, const struct trace_g *g, int64_t at)
{
	struct summary *s = arg;
	uint32_t name = g->name ? g->name : g->function;
	struct group *function = group(&s->functions, name);

	(void)at;
	function->name = name;
	function->goroutines++;
	for (int i = 0; i < G_STATES; i++)
		function->spent[i] += g->spent[i];
	if (g->state == G_WAITING) {
		struct group *end = group(&s->at_end, g->why);

		end->name = g->why;
		count(&end->waits, 0);
	}
}

static void add_region(void *arg, const struct trace_g *g, const struct trace_region *r, int64_t to)
{
	struct group *region = group(&((struct summary *)arg)->regions, r->name);

	(void)g;
	region->name = r->name;
	count(&region->waits, to - r->from);
}

static void add_task(void *arg, uint64_t id, uint32_t name, int64_t from, int64_t to, bool is_over)
{
	struct group *task = group(&((struct summary *)arg)->tasks, name);

	(void)id, (void)is_over;
	task->name = name;
	count(&task->waits, to - from);
}

static void add_log(void *arg, const struct trace_event *e, uint32_t key, uint32_t value)
{
	(void)e, (void)key, (void)value;
	((struct summary *)arg)->logs++;
}

static void add_event(void *arg, const struct trace_event *e)
{
	((struct summary *)arg)->stops += e->kind == EV_STW_BEGIN;
}

void summary_collect(struct summary *s, const struct trace_model *t, struct trace_sink *sink)
{
	*s = (struct summary){ .model = t };
	*sink = (struct trace_sink){ .arg = s, .span = add_span, .on_p = add_busy, .ended = add_ended, .region = add_region,
	                             .log = add_log, .task = add_task, .event = add_event };
}

static void groups_free(struct groups *groups)
{
	map_free(&groups->by_key);
	free(groups->at);
}

void summary_free(struct summary *s)
{
	groups_free(&s->reasons);
	groups_free(&s->places);
	groups_free(&s->functions);
	groups_free(&s->regions);
	groups_free(&s->tasks);
	groups_free(&s->at_end);
	free(s->busy);
}

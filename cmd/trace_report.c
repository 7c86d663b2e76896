/*
 * trace_report.c - a trace's figures, printed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "screen.h"
#include "trace_summary.h"

#define REASONS_MAX 8
#define PLACES_MAX  5
#define NAMES_MAX   6

static char *ns_text(int64_t ns)
{
	return time_text((double)ns / 1e9);
}

/* A name, cut to fit, and padded. */
static void print_name(const char *name, int columns)
{
	int n = bytes_in_columns(name, columns), used = 0;

	for (int i = 0; i < n; i++)
		used += (name[i] & 0xc0) != 0x80;
	printf("%.*s%*s", n, name, columns - used, "");
}

static void print_heading(const char *left, const char *rest)
{
	printf("\n%s%s%*s%s%s\n", colour(BOLD), left, *rest ? 25 - (int)strlen(left) : 0, "", rest, colour(PLAIN));
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* ------------------------------------------------------------------- states */

static void print_head(const struct trace_model *t, const char *path)
{
	const char *slash = strrchr(path, '/');

	printf("%s%s%s: %s, %s processor%s, %s goroutine%s (%s at once), %s events\n", colour(BOLD),
	       slash ? slash + 1 : path, colour(PLAIN), ns_text(t->end), with_commas(t->procs), plural(t->procs),
	       with_commas(t->goroutines), plural(t->goroutines), with_commas(t->live_most),
	       with_commas(t->reader.events));
	if (t->from > 0 || t->to < t->end)
		printf("Shown: %s to %s\n", ns_text(t->from), ns_text(t->to));
}

static void print_states(const struct summary *s)
{
	static const enum g_state order[] = { G_RUNNING, G_RUNNABLE, G_WAITING, G_CALL };
	int64_t all = 0;

	for (int i = 0; i < G_STATES; i++)
		all += s->state[i].sum;
	print_heading("The goroutines were", "     times      in all   share");
	for (int i = 0; i < 4; i++) {
		const struct tally *state = &s->state[order[i]];
		double share = all ? 100. * (double)state->sum / (double)all : 0;

		printf("  %-23s%10s  %10s  %4.0f %%  ", g_state_name(order[i]), with_commas(state->n),
		       ns_text(state->sum), share);
		for (int bar = 0; bar < (int)(share / 100 * 24 + .5); bar++)
			putchar('#');
		putchar('\n');
	}
}

static void print_latency(const struct summary *s)
{
	const struct histogram *h = &s->latency;

	if (h->n == 0)
		return;
	printf("\nReady to running         half <= %s   99 %% <= %s   longest %s\n", ns_text(histogram_quantile(h, .5)),
	       ns_text(histogram_quantile(h, .99)), ns_text(h->most));
}

static void print_counts(const struct summary *s)
{
	printf("Preempted %s   yielded %s   calls %s, %s without the P   moved to another P %s\n",
	       with_commas(s->preempted), with_commas(s->yielded), with_commas(s->calls),
	       with_commas(s->calls_without_p), with_commas(s->moved));
	if (s->stops)
		printf("The program stopped the world %s time%s\n", with_commas(s->stops), plural(s->stops));
}

/* -------------------------------------------------------------------- waits */

static const char *reason_text(const struct trace_model *t, const struct group *g)
{
	return g->name ? model_text(t, g->name) : "(not told)";
}

static void print_row(const char *name, const struct tally *w)
{
	printf("  ");
	print_name(name, 22);
	printf(" %10s  %10s  %10s\n", with_commas(w->n), ns_text(w->sum), ns_text(w->most));
}

static void print_reasons(const struct trace_model *t, struct summary *s)
{
	if (s->reasons.n == 0)
		return;
	groups_sort(&s->reasons, group_by_sum);
	print_heading("They waited for", "     times      in all     longest");
	for (size_t i = 0; i < s->reasons.n && i < REASONS_MAX; i++)
		print_row(reason_text(t, &s->reasons.at[i]), &s->reasons.at[i].waits);
}

/* " (file.c:12)": the innermost line of the program's. */
static void print_line(const struct trace_model *t, const struct frame *frame, size_t n, int columns)
{
	const char *file, *slash;
	char *line;

	while (n > 0 && (frame->line == 0 || strncmp(model_text(t, frame->function), "goro_", 5) == 0))
		frame++, n--;
	if (n == 0)
		return;
	file = model_text(t, frame->file);
	slash = strrchr(file, '/');
	line = format(" (%s:%u)", slash ? slash + 1 : file, frame->line);
	if ((int)strlen(line) <= columns)
		printf("%s%s%s", colour(DIM), line, colour(PLAIN));
}

/* "f < g < h": innermost first, as far as it fits. */
static void print_stack(const struct trace_model *t, uint32_t stack, int columns)
{
	size_t n;
	const struct frame *frame = frames_of(t->reader.names, stack, &n);

	for (size_t i = 0; i < n; i++) {
		const char *name = model_text(t, frame[i].function);
		int wide = (int)strlen(name) + (i > 0 ? 3 : 0);

		if (wide > columns)
			break;
		printf("%s%s", i > 0 ? " < " : "", name);
		columns -= wide;
	}
	print_line(t, frame, n, columns);
}

static void print_places(const struct trace_model *t, struct summary *s)
{
	if (s->places.n == 0)
		return;
	groups_sort(&s->places, group_by_longest);
	print_heading("Longest waits, by place", "");
	for (size_t i = 0; i < s->places.n && i < PLACES_MAX; i++) {
		const struct group *p = &s->places.at[i];
		char *who = format("G%llu %s", (unsigned long long)p->longest_g, model_text(t, p->longest_name));

		printf("  %8s  ", ns_text(p->waits.most));
		print_name(who, 16);
		printf("  ");
		print_name(reason_text(t, p), 13);
		printf("  ");
		print_stack(t, p->stack, screen_columns() - 46);
		putchar('\n');
	}
}

static void print_at_end(const struct trace_model *t, struct summary *s)
{
	if (s->at_end.n == 0)
		return;
	groups_sort(&s->at_end, group_by_sum);
	printf("\nStill waiting at the end:");
	for (size_t i = 0; i < s->at_end.n && i < NAMES_MAX; i++)
		printf("%s %s %s", i ? "," : "", reason_text(t, &s->at_end.at[i]), with_commas(s->at_end.at[i].waits.n));
	putchar('\n');
}

/* ------------------------------------------------------------- tasks, regions */

static void print_named(const struct trace_model *t, struct groups *groups, const char *heading)
{
	if (groups->n == 0)
		return;
	groups_sort(groups, group_by_sum);
	print_heading(heading, "     times      in all     longest");
	for (size_t i = 0; i < groups->n && i < NAMES_MAX; i++)
		print_row(model_text(t, groups->at[i].name), &groups->at[i].waits);
}

void report_print(const struct trace_model *t, struct summary *s, const char *path)
{
	print_head(t, path);
	print_states(s);
	print_reasons(t, s);
	print_places(t, s);
	print_at_end(t, s);
	print_named(t, &s->tasks, "Tasks");
	print_named(t, &s->regions, "Regions");
	print_latency(s);
	print_counts(s);
}

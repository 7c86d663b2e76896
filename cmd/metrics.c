/*
 * metrics.c - the figures of a debug server's /debug/metrics, in Prometheus' text format.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "metrics.h"

static void add(struct metrics *m, struct metric one)
{
	if (m->n == m->room) {
		m->room = 2 * m->room + 64;
		m->at = realloc(m->at, m->room * sizeof *m->at);
		if (!m->at)
			die("out of memory");
	}
	m->at[m->n++] = one;
}

/* A line that is none of ours is passed over. */
static void parse_line(struct metrics *m, char *line)
{
	struct metric one = { .name = line, .label = "" };
	char *end = line + strcspn(line, "{ "), *value = strrchr(line, ' ');

	if (*line == '#' || !value || value < end)
		return;
	if (*end == '{') {
		char *open = strchr(end, '"'), *close = open ? strrchr(open + 1, '"') : NULL;

		if (!close)
			return;
		*close = '\0';
		one.label = open + 1;
	}
	*end = '\0';
	one.value = strtod(value + 1, NULL);
	add(m, one);
}

void metrics_parse(struct metrics *m, char *text)
{
	char *rest = NULL;

	*m = (struct metrics){ .text = text };
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		parse_line(m, line);
}

void metrics_free(struct metrics *m)
{
	free(m->at);
	free(m->text);
	*m = (struct metrics){ 0 };
}

double metrics_value(const struct metrics *m, const char *name, const char *label)
{
	for (size_t i = 0; i < m->n; i++)
		if (strcmp(m->at[i].name, name) == 0 && strcmp(m->at[i].label, label) == 0)
			return m->at[i].value;
	return 0;
}

double metrics_quantile(const struct metrics *m, const struct metrics *before, const char *name, double fraction)
{
	double total = metrics_value(m, name, "+Inf") - metrics_value(before, name, "+Inf");

	if (total <= 0)
		return -1;
	for (size_t i = 0; i < m->n; i++)
		if (strcmp(m->at[i].name, name) == 0 &&
		    m->at[i].value - metrics_value(before, name, m->at[i].label) >= fraction * total)
			return strtod(m->at[i].label, NULL);
	return INFINITY;
}

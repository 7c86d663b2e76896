/*
 * metrics.h - the figures of a debug server's /debug/metrics. Defined in metrics.c.
 */
#ifndef GORO_CMD_METRICS_H
#define GORO_CMD_METRICS_H

#include <stdbool.h>
#include <stddef.h>

/* One line: NAME VALUE, or NAME{LABEL="TEXT"} VALUE. The texts lie in the answer. */
struct metric {
	const char *name, *label;	/* label: its text; "" if there is none */
	double value;
};

struct metrics {
	char *text;		/* the answer; its lines are cut into the texts above */
	struct metric *at;
	size_t n, room;
};

/* Takes text, an answer, which metrics_free frees. */
void metrics_parse(struct metrics *m, char *text);
void metrics_free(struct metrics *m);

/* The value of the line; 0 if there is none. */
double metrics_value(const struct metrics *m, const char *name, const char *label);

/* The number of seconds that the fraction (0 to 1) of a histogram's entries is at most,
 * of those since before. Negative: there are none; infinite: it is beyond the last
 * bucket. */
double metrics_quantile(const struct metrics *m, const struct metrics *before, const char *name, double fraction);

#endif

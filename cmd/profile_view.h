/*
 * profile_view.h - how a profile is shown. Defined in profile_report.c and
 * profile_html.c.
 */
#ifndef GORO_CMD_PROFILE_VIEW_H
#define GORO_CMD_PROFILE_VIEW_H

#include "profile_tree.h"

/* "file: cpu 1.2 s in 2.0 s, ..." */
void report_head(const struct profile *p, const char *path);
/* The functions that have most, at most n. */
void report_top(const struct tree *t, size_t n);
/* Who called whom, without those below a share of the whole. */
void report_tree(const struct tree *t, double least);

/* "1.23 s", "12.3 MiB", "1,234": of the profile's chosen values, or of a type. */
char *value_text(const struct profile *p, const struct profile_type *type, int64_t value);

/* A flame graph; name: what the page is headed with. */
void flame_write(const struct tree *t, const char *name, const char *out);

#endif

/*
 * trace_view.h - views of a trace that are files. Each reads the trace once more, for
 * itself.
 */
#ifndef GORO_CMD_TRACE_VIEW_H
#define GORO_CMD_TRACE_VIEW_H

#include "trace_model.h"
#include "trace_summary.h"

void perfetto_write(struct trace_model *t, const char *out);
/* name: what the page is headed with. */
void html_write(struct trace_model *t, struct summary *s, const char *name, const char *out);

#endif

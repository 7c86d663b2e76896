/*
 * explain_view.h - how steps are shown. Defined in explain_text.c and explain_screen.c.
 */
#ifndef GORO_CMD_EXPLAIN_VIEW_H
#define GORO_CMD_EXPLAIN_VIEW_H

#include "explain_steps.h"

/* As lines: when, who is on each P, and what happened. */
void explain_print(const struct steps *s);

/* On the terminal, step by step; look: what to look for in the scene, or NULL. Returns
 * what the reader wants next. */
enum explain_next { EXPLAIN_QUIT, EXPLAIN_NEXT, EXPLAIN_BEFORE, EXPLAIN_SOURCE };
enum explain_next explain_show(const struct steps *s, const char *title, const char *look);

#endif

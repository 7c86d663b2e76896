/*
 * page.h - files that views are written to, and what pages have in common. Defined in
 * page.c.
 */
#ifndef GORO_CMD_PAGE_H
#define GORO_CMD_PAGE_H

#include <stdio.h>

/* A file to write to, and its end. Both die where that fails. */
FILE *view_open(const char *path);
void view_close(FILE *out, const char *path);

/* The text as a string of JSON, which is safe within a script element of HTML, too. */
void json_text(FILE *out, const char *text);

/* A page in HTML that needs no other file: its head with the styles, its body, and the
 * start of its data. What then is written is JSON, which the scripts find in the element
 * "data". */
void page_begin(FILE *out, const char *title, const char *style, const char *body);
/* scripts: texts, and NULL behind the last. */
void page_end(FILE *out, const char *const *scripts);

#endif

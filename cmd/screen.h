/*
 * screen.h - text for people: colours, lines that are broken. Defined in screen.c.
 */
#ifndef GORO_CMD_SCREEN_H
#define GORO_CMD_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

/* Colours only on a terminal that has them, and not where NO_COLOR is set. */
enum colour { PLAIN, BOLD, DIM, RED, GREEN, YELLOW, BLUE, MAGENTA, CYAN };
const char *colour(enum colour c);	/* what switches it on, PLAIN off; may be empty */

/* Words, with a line break before each that would go beyond column 80. The first line
 * begins at column indent, where the cursor is, and so do the others. Ends the last
 * line. */
void print_wrapped(const char *words, int indent);

/* 1234567 as "1,234,567". */
char *with_commas(uint64_t n);

/* With three digits: "12.3 ms". Of a time: negative: "-"; infinite: "long". */
char *in_unit(double n, const char *unit);
char *time_text(double seconds);
char *bytes_text(double n);	/* "12.3 MiB" */

/* Columns of the terminal that standard output is; 80 if it is none, or narrower. */
int screen_columns(void);
/* How many bytes of a text the first columns take, one for each character. */
int bytes_in_columns(const char *text, int columns);

#endif

/*
 * terminal.h - the whole terminal, for what is drawn anew again and again. Defined in
 * terminal.c.
 */
#ifndef GORO_CMD_TERMINAL_H
#define GORO_CMD_TERMINAL_H

#include <stdbool.h>

/* The other screen, no cursor, and keys at once, until it is given back. SIGINT, SIGTERM
 * and SIGHUP then only make terminal_ended true. */
void terminal_take(void);
void terminal_leave(void);
bool terminal_ended(void);

/* Where standard output is none, or its size is not known: 80 columns, 24 rows. */
void terminal_size(int *columns, int *rows);

/* A key: a character, or one of these. */
enum { KEY_NONE = -1, KEY_END_OF_INPUT = -2, KEY_LEFT = 1000, KEY_RIGHT, KEY_UP, KEY_DOWN, KEY_HOME, KEY_END };
/* Waits for it; KEY_NONE: not within that time, or a signal has come. */
int terminal_key(int milliseconds);

#endif

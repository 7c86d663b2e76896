/*
 * names.h - texts and stacks, each kept once. Defined in names.c.
 *
 * Profiles number their texts, and so does each generation of a trace anew. Here a text
 * or stack has one number from the beginning to the end. 0 stands for no text and for no
 * stack.
 */
#ifndef GORO_CMD_NAMES_H
#define GORO_CMD_NAMES_H

#include <stddef.h>
#include <stdint.h>

struct frame {
	uint32_t function, file, line;	/* function, file: texts */
};

struct names;

struct names *names_new(void);
void names_free(struct names *t);

/* The number of a text. Control characters and bytes that are not UTF-8 become '?': a
 * view may print it to a terminal. */
uint32_t names_text(struct names *t, const void *text, size_t n);
uint32_t names_stack(struct names *t, const struct frame *frames, size_t n);

const char *text_of(const struct names *t, uint32_t text);
/* The frames of a stack, innermost first, which stay until the next names_stack. */
const struct frame *frames_of(const struct names *t, uint32_t stack, size_t *n);
/* The function that the stack begins with: its outermost frame. 0: no stack. */
uint32_t outermost_of(const struct names *t, uint32_t stack);
size_t names_stacks(const struct names *t);	/* stacks have the numbers 1 to this */

#endif

/*
 * bytes.h - a row of bytes that grows, in mapped memory: no malloc, no libc lock.
 *
 * What finds no memory is left out, and `failed` is set: the caller looks at it once, at
 * the end.
 */
#ifndef GORO_BYTES_H
#define GORO_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes {
	uint8_t *at;
	size_t n;
	size_t size;		/* mapped */
	bool failed;
};

/* Adds n bytes and returns where they are, valid until the next call; NULL: no memory. */
void *bytes_room(struct bytes *b, size_t n);
void bytes_add(struct bytes *b, const void *from, size_t n);
void bytes_free(struct bytes *b);

#endif

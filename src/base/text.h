/*
 * text.h - strings put together in the caller's buffer, without stdio or malloc
 *
 * Always zero-terminated. What does not fit is left out, and `cut` is set.
 */
#ifndef GORO_TEXT_H
#define GORO_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct text {
	char *at;
	size_t size;		/* of the buffer; at least 1 */
	size_t length;
	bool cut;
};

static inline struct text text_make(char *buf, size_t size)
{
	buf[0] = '\0';
	return (struct text){ .at = buf, .size = size };
}

static inline void text_add_bytes(struct text *t, const char *s, size_t n)
{
	size_t room = t->size - 1 - t->length;

	if (n > room) {
		n = room;
		t->cut = true;
	}
	memcpy(t->at + t->length, s, n);
	t->length += n;
	t->at[t->length] = '\0';
}

static inline void text_add(struct text *t, const char *s)
{
	text_add_bytes(t, s, strlen(s));
}

static inline void text_add_decimal(struct text *t, unsigned v)
{
	char digits[12];
	size_t at = sizeof digits;

	do
		digits[--at] = (char)('0' + v % 10);
	while (v /= 10);
	text_add_bytes(t, digits + at, sizeof digits - at);
}

static inline void text_add_hex_byte(struct text *t, uint8_t byte)
{
	static const char digit[] = "0123456789abcdef";

	text_add_bytes(t, &digit[byte >> 4], 1);
	text_add_bytes(t, &digit[byte & 15], 1);
}

static inline void text_shorten(struct text *t, size_t length)
{
	t->length = length;
	t->at[length] = '\0';
}

#endif

/*
 * bytes.c - a row of bytes that grows, in mapped memory.
 */
#include "base/bytes.h"

#include <string.h>

#include "platform/os.h"

#define FIRST_BYTES (16 << 10)

static bool grow(struct bytes *b, size_t need)
{
	size_t size = b->size ? b->size : FIRST_BYTES;
	uint8_t *to;

	while (size < need)
		size *= 2;
	to = os_map(size);
	if (!to) {
		b->failed = true;
		return false;
	}
	if (b->at) {
		memcpy(to, b->at, b->n);
		os_unmap(b->at, b->size);
	}
	b->at = to;
	b->size = size;
	return true;
}

void *bytes_room(struct bytes *b, size_t n)
{
	void *room;

	if (b->size - b->n < n && !grow(b, b->n + n))
		return NULL;
	room = b->at + b->n;
	b->n += n;
	return room;
}

void bytes_add(struct bytes *b, const void *from, size_t n)
{
	void *room = n ? bytes_room(b, n) : NULL;

	if (room)
		memcpy(room, from, n);
}

void bytes_free(struct bytes *b)
{
	if (b->at)
		os_unmap(b->at, b->size);
	*b = (struct bytes){ .at = NULL };
}

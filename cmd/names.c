/*
 * names.c - texts and stacks, each kept once.
 *
 * An entry is found by the hash of its bytes. Two entries with the same 64-bit hash would
 * be taken for one; a key that is taken by other bytes is therefore moved on by one.
 */
#include "names.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "map.h"

struct stack {
	size_t first, n;	/* in frames */
};

struct names {
	struct map texts_by_hash, stacks_by_hash;
	char **text;			/* number 0: "" */
	size_t texts, texts_room;
	struct stack *stack;		/* number 0: no frames */
	size_t stacks, stacks_room;
	struct frame *frame;
	size_t frames, frames_room;
};

/* Room for more entries behind the n that are there. */
static void *more(void *at, size_t n, size_t extra, size_t *room, size_t size)
{
	if (n + extra <= *room)
		return at;
	*room = 2 * (n + extra) + 64;
	at = realloc(at, *room * size);
	if (!at)
		die("out of memory");
	return at;
}

static uint64_t hash_of(const void *data, size_t n)
{
	const unsigned char *p = data;
	uint64_t h = UINT64_C(0xcbf29ce484222325) + n;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * UINT64_C(0x100000001b3);
	return h;
}

/* ------------------------------------------------------------------- texts */

/* The bytes of the UTF-8 character at p, of at most n; 0: it is none, or a control
 * character. */
static size_t character(const unsigned char *p, size_t n)
{
	size_t bytes = *p < 0x80 ? 1 : *p >= 0xc2 && *p < 0xe0 ? 2 : (*p & 0xf0) == 0xe0 ? 3
	             : *p >= 0xf0 && *p < 0xf5 ? 4 : 0;

	if (bytes > n || *p < 0x20 || *p == 0x7f)
		return 0;
	for (size_t i = 1; i < bytes; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] >= 0xa0) || (*p == 0xf0 && p[1] < 0x90) ||
	    (*p == 0xf4 && p[1] >= 0x90) || (*p == 0xc2 && p[1] < 0xa0))
		return 0;
	return bytes;
}

static char *cleaned(const void *text, size_t n)
{
	char *copy = alloc(n + 1);

	memcpy(copy, text, n);
	copy[n] = '\0';
	for (size_t i = 0, bytes; i < n; i += bytes) {
		bytes = character((unsigned char *)copy + i, n - i);
		if (bytes == 0) {
			copy[i] = '?';
			bytes = 1;
		}
	}
	return copy;
}

uint32_t names_text(struct names *t, const void *text, size_t n)
{
	char *copy = cleaned(text, n);
	uint64_t hash = hash_of(copy, n);
	uint32_t id;

	for (; (id = (uint32_t)map_get(&t->texts_by_hash, hash)) != 0; hash++)
		if (strcmp(t->text[id], copy) == 0) {
			free(copy);
			return id;
		}
	t->text = more(t->text, t->texts, 1, &t->texts_room, sizeof *t->text);
	id = (uint32_t)t->texts++;
	t->text[id] = copy;
	map_put(&t->texts_by_hash, hash, id);
	return id;
}

const char *text_of(const struct names *t, uint32_t text)
{
	return t->text[text];
}

/* ------------------------------------------------------------------ stacks */

static bool is_stack(const struct names *t, uint32_t id, const struct frame *frames, size_t n)
{
	const struct stack *s = &t->stack[id];

	return s->n == n && memcmp(&t->frame[s->first], frames, n * sizeof *frames) == 0;
}

uint32_t names_stack(struct names *t, const struct frame *frames, size_t n)
{
	uint64_t hash = hash_of(frames, n * sizeof *frames);
	uint32_t id;

	if (n == 0)
		return 0;
	for (; (id = (uint32_t)map_get(&t->stacks_by_hash, hash)) != 0; hash++)
		if (is_stack(t, id, frames, n))
			return id;
	t->stack = more(t->stack, t->stacks, 1, &t->stacks_room, sizeof *t->stack);
	t->frame = more(t->frame, t->frames, n, &t->frames_room, sizeof *t->frame);
	id = (uint32_t)t->stacks++;
	t->stack[id] = (struct stack){ t->frames, n };
	memcpy(&t->frame[t->frames], frames, n * sizeof *frames);
	t->frames += n;
	map_put(&t->stacks_by_hash, hash, id);
	return id;
}

const struct frame *frames_of(const struct names *t, uint32_t stack, size_t *n)
{
	*n = t->stack[stack].n;
	return t->frame + t->stack[stack].first;
}

uint32_t outermost_of(const struct names *t, uint32_t stack)
{
	const struct stack *s = &t->stack[stack];

	return s->n ? t->frame[s->first + s->n - 1].function : 0;
}

size_t names_stacks(const struct names *t)
{
	return t->stacks - 1;
}

/* ------------------------------------------------------------------- table */

struct names *names_new(void)
{
	struct names *t = alloc(sizeof *t);

	*t = (struct names){ .texts = 1, .stacks = 1 };
	t->text = more(NULL, 0, 1, &t->texts_room, sizeof *t->text);
	t->text[0] = format("%s", "");
	t->stack = more(NULL, 0, 1, &t->stacks_room, sizeof *t->stack);
	t->stack[0] = (struct stack){ 0, 0 };
	t->frame = more(NULL, 0, 1, &t->frames_room, sizeof *t->frame);
	return t;
}

void names_free(struct names *t)
{
	for (size_t i = 0; i < t->texts; i++)
		free(t->text[i]);
	free(t->text);
	free(t->stack);
	free(t->frame);
	map_free(&t->texts_by_hash);
	map_free(&t->stacks_by_hash);
	free(t);
}

/*
 * profile_read.c - a profile in the format of pprof.
 *
 * The file is a protocol buffer message, mostly in gzip. Its parts come in any order and
 * refer to each other by number: samples to locations, these to functions and mappings,
 * all to texts. So the parts are gone through twice: for the tables, then for the
 * samples, whose stacks become those of names.h.
 *
 * A location stands for several frames where functions were inlined: the innermost first.
 *
 * A profile is refused where it is not well formed, or larger than any that makes sense:
 * see the limits. Numbers that refer to nothing stand for what is not known.
 */
#include "profile_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd.h"
#include "inflate.h"
#include "map.h"

#define FILE_MAX    (256u << 20)	/* bytes, packed and unpacked */
#define FRAMES_MAX  1000	/* of one stack: what is further out is left out */
#define STACKS_MAX  (16u << 20)		/* frames of all different stacks */
#define SAMPLES_MAX (64u << 20)		/* frames of all samples */
#define COMMENTS_MAX 100
#define PARTS_MAX   (8u << 20)		/* samples, locations, functions, texts, ... */

/* Fields, by message. */
enum {
	PROFILE_TYPE = 1, PROFILE_SAMPLE, PROFILE_MAPPING, PROFILE_LOCATION, PROFILE_FUNCTION,
	PROFILE_TEXT, PROFILE_TOOK = 10, PROFILE_COMMENT = 13, PROFILE_DEFAULT,

	TYPE_WHAT = 1, TYPE_UNIT,
	SAMPLE_LOCATION = 1, SAMPLE_VALUE,
	MAPPING_ID = 1, MAPPING_FILE = 5,
	LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_ADDRESS, LOCATION_LINE,
	LINE_FUNCTION = 1, LINE_LINE,
	FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME, FUNCTION_FILE,
};

/* --------------------------------------------------------- protocol buffers */

enum { WIRE_NUMBER = 0, WIRE_8 = 1, WIRE_BYTES = 2, WIRE_4 = 5 };

struct message {
	const uint8_t *at, *end;
};

struct field {
	unsigned number, wire;
	uint64_t value;		/* WIRE_NUMBER */
	struct message bytes;	/* WIRE_BYTES */
};

static bool take_number(struct message *m, uint64_t *v)
{
	*v = 0;
	for (unsigned shift = 0; m->at < m->end && shift < 64; shift += 7) {
		uint8_t byte = *m->at++;

		*v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* Fields of 4 and 8 bytes are none of this format's: they are passed over. */
static bool take_fixed(struct message *m, size_t n)
{
	if ((size_t)(m->end - m->at) < n)
		return false;
	m->at += n;
	return true;
}

static bool take_field(struct message *m, struct field *f)
{
	uint64_t v, n;

	if (!take_number(m, &v) || v >> 3 == 0 || v >> 3 > INT32_MAX)
		return false;
	*f = (struct field){ .number = (unsigned)(v >> 3), .wire = v & 7 };
	switch (f->wire) {
	case WIRE_NUMBER: return take_number(m, &f->value);
	case WIRE_8: return take_fixed(m, 8);
	case WIRE_4: return take_fixed(m, 4);
	case WIRE_BYTES:
		if (!take_number(m, &n) || n > (uint64_t)(m->end - m->at))
			return false;
		f->bytes = (struct message){ m->at, m->at + n };
		m->at += n;
		return true;
	default: return false;
	}
}

/* Numbers of a repeated field: one, or many in a row. */
struct numbers {
	bool one;
	uint64_t value;
	struct message rest;
};

static struct numbers numbers_of(const struct field *f)
{
	return (struct numbers){ f->wire == WIRE_NUMBER, f->value, f->bytes };
}

/* False: there is no more, or *bad: what follows is no number. */
static bool next_number(struct numbers *n, uint64_t *v, bool *bad)
{
	if (n->one) {
		*v = n->value;
		n->one = false;
		return true;
	}
	if (n->rest.at == n->rest.end)
		return false;
	*bad = !take_number(&n->rest, v);
	return !*bad;
}

/* ---------------------------------------------------------------- the tables */

struct function {
	uint64_t name, system_name, file;
};

struct location {
	struct message at;	/* gone through again for each sample that has it */
	uint32_t first, n;	/* its frames, once they are known; n 0: they are not */
};

struct reading {
	struct profile *p;
	const char *wanted;
	struct message *text;
	size_t texts, texts_room;
	struct function *function;
	size_t functions, functions_room;
	struct location *location;
	size_t locations, locations_room;
	struct map function_of, location_of;	/* a number of the file: index + 1 */
	struct map mapping_of;			/* id of a mapping: its file's text + 1 */
	struct frame *frame;			/* of locations */
	size_t frames, frames_room;
	uint64_t type[PROFILE_TYPES_MAX][2], standard;
	struct message *sample;
	size_t samples, samples_room;
	uint64_t *comment;
	size_t comments, comments_room;
	struct map sample_of;	/* a stack: its sample + 1 */
	size_t parts, stack_frames, sample_frames;
};

static bool bad(struct reading *r, const char *why)
{
	if (!r->p->why[0])
		snprintf(r->p->why, sizeof r->p->why, "%s", why);
	return false;
}

static bool malformed(struct reading *r)
{
	return bad(r, "is not a profile, or a broken one: it is not well formed");
}

static void *room_for_one(void *at, size_t n, size_t *room, size_t size)
{
	if (n < *room)
		return at;
	*room = 2 * n + 64;
	at = realloc(at, *room * size);
	if (!at)
		die("out of memory");
	return at;
}

/* A place for one more, at the end of a list. */
#define APPEND(r, list, count) \
	((r)->list = room_for_one((r)->list, (r)->count, &(r)->count##_room, sizeof *(r)->list), \
	 &(r)->list[(r)->count++])

static bool see_type(struct reading *r, struct message m)
{
	struct field f;
	uint64_t *to;

	if (r->p->types == PROFILE_TYPES_MAX)
		return bad(r, "has more kinds of values than any profile");
	to = r->type[r->p->types++];
	while (m.at < m.end) {
		if (!take_field(&m, &f))
			return malformed(r);
		if (f.number == TYPE_WHAT || f.number == TYPE_UNIT)
			to[f.number - TYPE_WHAT] = f.value;
	}
	return true;
}

static bool see_function(struct reading *r, struct message m)
{
	struct function fn = { 0 };
	struct field f;
	uint64_t id = 0;

	while (m.at < m.end) {
		if (!take_field(&m, &f))
			return malformed(r);
		switch (f.number) {
		case FUNCTION_ID: id = f.value; break;
		case FUNCTION_NAME: fn.name = f.value; break;
		case FUNCTION_SYSTEM_NAME: fn.system_name = f.value; break;
		case FUNCTION_FILE: fn.file = f.value; break;
		default: break;
		}
	}
	*APPEND(r, function, functions) = fn;
	map_put(&r->function_of, id, r->functions);
	return true;
}

static bool see_location(struct reading *r, struct message m)
{
	struct location l = { .at = m };
	struct field f;
	uint64_t id = 0;

	while (m.at < m.end) {
		if (!take_field(&m, &f))
			return malformed(r);
		if (f.number == LOCATION_ID)
			id = f.value;
	}
	*APPEND(r, location, locations) = l;
	map_put(&r->location_of, id, r->locations);
	return true;
}

static bool see_mapping(struct reading *r, struct message m)
{
	struct field f;
	uint64_t id = 0, file = 0;

	while (m.at < m.end) {
		if (!take_field(&m, &f))
			return malformed(r);
		if (f.number == MAPPING_ID)
			id = f.value;
		else if (f.number == MAPPING_FILE)
			file = f.value;
	}
	map_put(&r->mapping_of, id, (uintptr_t)(file < UINT32_MAX ? file + 1 : 1));
	return true;
}

static bool see_comments(struct reading *r, const struct field *f)
{
	struct numbers n = numbers_of(f);
	bool broken = false;
	uint64_t v;

	while (r->comments < COMMENTS_MAX && next_number(&n, &v, &broken))
		*APPEND(r, comment, comments) = v;
	return broken ? malformed(r) : true;
}

static bool see_part(struct reading *r, const struct field *f)
{
	if (++r->parts > PARTS_MAX)
		return bad(r, "has more parts than any profile");
	switch (f->number) {
	case PROFILE_TYPE: return see_type(r, f->bytes);
	case PROFILE_SAMPLE: *APPEND(r, sample, samples) = f->bytes; return true;
	case PROFILE_MAPPING: return see_mapping(r, f->bytes);
	case PROFILE_LOCATION: return see_location(r, f->bytes);
	case PROFILE_FUNCTION: return see_function(r, f->bytes);
	case PROFILE_TEXT: *APPEND(r, text, texts) = f->bytes; return true;
	case PROFILE_TOOK: r->p->took = (int64_t)f->value; return true;
	case PROFILE_COMMENT: return see_comments(r, f);
	case PROFILE_DEFAULT: r->standard = f->value; return true;
	default: return true;
	}
}

/* ------------------------------------------------------------------ looking up */

static uint32_t text(struct reading *r, uint64_t number)
{
	if (number == 0 || number >= r->texts || r->text[number].at == r->text[number].end)
		return 0;
	return names_text(r->p->names, r->text[number].at, (size_t)(r->text[number].end - r->text[number].at));
}

static uint32_t own_text(struct reading *r, char *words)
{
	uint32_t t = names_text(r->p->names, words, strlen(words));

	free(words);
	return t;
}

static struct frame frame_of(struct reading *r, uint64_t function, uint64_t line, uint32_t library)
{
	size_t at = map_get(&r->function_of, function);
	const struct function *fn = at ? &r->function[at - 1] : &(struct function){ 0 };
	struct frame frame = { text(r, fn->name), text(r, fn->file), line < UINT32_MAX ? (uint32_t)line : 0 };

	if (!frame.function)
		frame.function = text(r, fn->system_name);
	if (!frame.file) {
		frame.file = library;
		frame.line = 0;
	}
	return frame;
}

static bool add_line(struct reading *r, struct message m, uint32_t library)
{
	uint64_t function = 0, line = 0;
	struct field f;

	while (m.at < m.end) {
		if (!take_field(&m, &f))
			return malformed(r);
		if (f.number == LINE_FUNCTION)
			function = f.value;
		else if (f.number == LINE_LINE)
			line = f.value;
	}
	if (r->frames == STACKS_MAX)
		return bad(r, "has more frames than any profile");
	*APPEND(r, frame, frames) = frame_of(r, function, line, library);
	return true;
}

/* Its library comes before or after its lines: it is looked for first. */
static bool library_of(struct reading *r, struct message m, uint32_t *library, uint64_t *address)
{
	struct field f;
	uintptr_t file;

	while (m.at < m.end) {
		if (!take_field(&m, &f))
			return malformed(r);
		if (f.number == LOCATION_ADDRESS)
			*address = f.value;
		if (f.number == LOCATION_MAPPING && (file = map_get(&r->mapping_of, f.value)) != 0)
			*library = text(r, file - 1);
	}
	return true;
}

/* Without a name all addresses of a library are one. */
static void add_unknown(struct reading *r, struct location *l, uint32_t library, uint64_t address)
{
	const char *path = text_of(r->p->names, library), *slash = strrchr(path, '/');
	char *name = *path == '[' ? format("%s", path)	/* [vdso] */
	           : *path        ? format("[%s]", slash ? slash + 1 : path)
	                          : format("0x%llx", (unsigned long long)address);
	struct frame *last = l->n ? &r->frame[r->frames - 1] : APPEND(r, frame, frames);

	if (!l->n)
		*last = (struct frame){ .file = library };
	last->function = own_text(r, name);
}

static bool load_location(struct reading *r, struct location *l)
{
	struct message m = l->at;
	uint32_t library = 0;
	uint64_t address = 0;
	struct field f;
	size_t first = r->frames;

	if (!library_of(r, m, &library, &address))
		return false;
	while (m.at < m.end) {
		if (!take_field(&m, &f))
			return malformed(r);
		if (f.number == LOCATION_LINE && !add_line(r, f.bytes, library))
			return false;
	}
	l->n = (uint32_t)(r->frames - first);
	if (l->n == 0 || r->frame[r->frames - 1].function == 0)
		add_unknown(r, l, library, address);
	l->first = (uint32_t)first;
	l->n = (uint32_t)(r->frames - first);
	for (size_t i = first; i < r->frames; i++)
		if (r->frame[i].function == 0)
			r->frame[i].function = own_text(r, format("?"));
	return true;
}

/* ------------------------------------------------------------------ samples */

/* One stack while it is put together: innermost first. */
struct stack {
	struct frame frame[FRAMES_MAX + 1];
	size_t n;
	bool cut;
};

static bool add_location(struct reading *r, struct stack *s, uint64_t id)
{
	size_t at = map_get(&r->location_of, id);
	struct location *l = at ? &r->location[at - 1] : NULL;

	if (!l) {
		if (s->n < FRAMES_MAX)
			s->frame[s->n++] = (struct frame){ .function = own_text(r, format("?")) };
		return true;
	}
	if (l->n == 0 && !load_location(r, l))
		return false;
	for (uint32_t i = 0; i < l->n && !s->cut; i++) {
		s->cut = s->n == FRAMES_MAX;
		if (s->n < FRAMES_MAX)
			s->frame[s->n++] = r->frame[l->first + i];
	}
	return true;
}

static bool add_stack(struct reading *r, struct stack *s, uint32_t *stack)
{
	size_t before = names_stacks(r->p->names);

	if (s->cut)
		s->frame[s->n++] = (struct frame){ .function = own_text(r, format("(further out)")) };
	*stack = names_stack(r->p->names, s->frame, s->n);
	r->sample_frames += s->n;
	if (names_stacks(r->p->names) > before)
		r->stack_frames += s->n;
	return (r->stack_frames <= STACKS_MAX && r->sample_frames <= SAMPLES_MAX) ||
	       bad(r, "has more frames than any profile");
}

/* Samples with one stack, of several threads or goroutines, become one. */
static void add_sample(struct reading *r, uint32_t stack, int64_t value)
{
	struct profile *p = r->p;
	size_t at = map_get(&r->sample_of, stack);

	if (at) {
		p->sample[at - 1].value = sum_of(p->sample[at - 1].value, value);
		return;
	}
	p->sample[p->samples++] = (struct profile_sample){ stack, value };
	map_put(&r->sample_of, stack, p->samples);
}

static void add_values(struct reading *r, const int64_t *value, size_t n, int64_t *chosen)
{
	struct profile *p = r->p;

	for (size_t i = 0; i < n && i < p->types; i++)
		if (value[i] > 0)
			p->type[i].sum = sum_of(p->type[i].sum, value[i]);
	*chosen = p->chosen < n ? value[p->chosen] : 0;
}

static bool see_sample(struct reading *r, struct message m, struct stack *s)
{
	int64_t value[PROFILE_TYPES_MAX], chosen;
	size_t values = 0;
	uint32_t stack;
	bool broken = false;
	struct field f;

	s->n = 0;
	s->cut = false;
	while (m.at < m.end && !broken) {
		struct numbers n;
		uint64_t v;

		if (!take_field(&m, &f))
			return malformed(r);
		n = numbers_of(&f);
		while (f.number <= SAMPLE_VALUE && next_number(&n, &v, &broken))
			if (f.number == SAMPLE_VALUE && values < PROFILE_TYPES_MAX)
				value[values++] = (int64_t)v;
			else if (f.number == SAMPLE_LOCATION && !add_location(r, s, v))
				return false;
	}
	if (broken)
		return malformed(r);
	add_values(r, value, values, &chosen);
	if (chosen <= 0)
		return true;
	if (!add_stack(r, s, &stack))
		return false;
	add_sample(r, stack, chosen);
	return true;
}

static bool see_samples(struct reading *r)
{
	struct stack *s = alloc(sizeof *s);
	struct profile *p = r->p;
	bool good = true;

	p->sample = alloc((r->samples + 1) * sizeof *p->sample);
	for (size_t i = 0; i < r->samples && good; i++)
		good = see_sample(r, r->sample[i], s);
	free(s);
	return good;
}

/* ---------------------------------------------------------------- the whole */

static bool choose(struct reading *r)
{
	struct profile *p = r->p;

	for (size_t i = 0; i < p->types; i++)
		p->type[i] = (struct profile_type){ text(r, r->type[i][0]), text(r, r->type[i][1]), 0 };
	if (p->types == 0)
		return bad(r, "is not a profile: it does not say what its values are");
	p->chosen = p->types - 1;
	for (size_t i = 0; i < p->types; i++)
		if (r->wanted ? strcmp(text_of(p->names, p->type[i].what), r->wanted) == 0
		              : r->standard && r->type[i][0] == r->standard) {
			p->chosen = i;
			return true;
		}
	return r->wanted ? bad(r, "has no such values") : true;
}

static void free_reading(struct reading *r)
{
	free(r->text);
	free(r->function);
	free(r->location);
	free(r->frame);
	free(r->sample);
	free(r->comment);
	map_free(&r->function_of);
	map_free(&r->location_of);
	map_free(&r->mapping_of);
	map_free(&r->sample_of);
}

static bool read_message(struct reading *r, struct message m)
{
	struct field f;

	while (m.at < m.end)
		if (!take_field(&m, &f))
			return malformed(r);
		else if (!see_part(r, &f))
			return false;
	if (!choose(r) || !see_samples(r))
		return false;
	r->p->comment = alloc((r->comments + 1) * sizeof *r->p->comment);
	for (size_t i = 0; i < r->comments; i++)
		r->p->comment[r->p->comments++] = text(r, r->comment[i]);
	return true;
}

bool profile_read(struct profile *p, const uint8_t *bytes, size_t n, const char *wanted)
{
	struct reading r = { .p = p, .wanted = wanted };
	uint8_t *unpacked = NULL;
	const char *why;
	bool good;

	*p = (struct profile){ .names = names_new() };
	if (is_gzip(bytes, n)) {
		if (!gunzip(bytes, n, FILE_MAX, &unpacked, &n, &why)) {
			snprintf(p->why, sizeof p->why, "cannot be unpacked: %s", why);
			return false;
		}
		bytes = unpacked;
	}
	good = read_message(&r, (struct message){ bytes, bytes + n });
	free_reading(&r);
	free(unpacked);
	return good;
}

static bool read_all(struct profile *p, int fd, uint8_t **bytes, size_t *n)
{
	size_t room = 0;
	ssize_t got;

	do {
		if (*n > FILE_MAX) {
			snprintf(p->why, sizeof p->why, "is larger than any profile");
			return false;
		}
		*bytes = room_for_one(*bytes, *n + 65536, &room, 1);
		got = read(fd, *bytes + *n, 65536);
		if (got > 0)
			*n += (size_t)got;
	} while (got > 0 || (got < 0 && errno == EINTR));
	if (got < 0)
		snprintf(p->why, sizeof p->why, "cannot be read: %s", strerror(errno));
	return got == 0;
}

bool profile_read_file(struct profile *p, const char *path, const char *wanted)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t *bytes = NULL;
	size_t n = 0;
	bool good;

	*p = (struct profile){ 0 };
	if (fd < 0) {
		snprintf(p->why, sizeof p->why, "cannot be read: %s", strerror(errno));
		return false;
	}
	good = read_all(p, fd, &bytes, &n) && profile_read(p, bytes, n, wanted);
	free(bytes);
	close(fd);
	return good;
}

void profile_free(struct profile *p)
{
	if (p->names)
		names_free(p->names);
	free(p->sample);
	free(p->comment);
}

/* Without gzip it begins with a type: field 1, of some bytes. */
bool is_profile_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	uint8_t head[3];
	struct stat st;
	bool is = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	          read(fd, head, sizeof head) == sizeof head &&
	          (is_gzip(head, sizeof head) || head[0] == (PROFILE_TYPE << 3 | WIRE_BYTES));

	if (fd >= 0)
		close(fd);
	return is;
}

int64_t sum_of(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

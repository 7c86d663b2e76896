/*
 * pprof_proto.c - a profile as `go tool pprof` reads it.
 *
 * The format is profile.proto of github.com/google/pprof: one protocol buffer message
 * with sub-messages for samples, locations (addresses), functions and mappings. They
 * refer to each other by number, and to strings by their index in a table. The order of
 * the parts is free, so each is appended once it is known: a location and its function
 * when a sample first has them, mappings and strings at the end.
 *
 * Functions, files and lines are looked up here, in the running program, so that a reader
 * needs neither the program nor its libraries. A reader that has them, and shows code,
 * finds them by the mappings' build ids.
 *
 * The innermost frame's address is the instruction that ran. The others are return
 * addresses minus one, which lie in the call and not after it.
 */
#include "profile/pprof_proto.h"

#include <errno.h>
#include <string.h>

#include "unwind/elf_file.h"
#include "platform/maps.h"
#include "platform/module.h"
#include "platform/os.h"
#include "base/text.h"

/* The fields of each message. */
enum {
	PROFILE_SAMPLE_TYPE = 1, PROFILE_SAMPLE, PROFILE_MAPPING, PROFILE_LOCATION,
	PROFILE_FUNCTION, PROFILE_STRING, PROFILE_TIME = 9, PROFILE_DURATION,
	PROFILE_PERIOD_TYPE, PROFILE_PERIOD, PROFILE_COMMENT,

	TYPE_WHAT = 1, TYPE_UNIT,
	SAMPLE_LOCATION = 1, SAMPLE_VALUE, SAMPLE_LABEL,
	LABEL_KEY = 1, LABEL_STRING, LABEL_NUMBER,
	MAPPING_ID = 1, MAPPING_START, MAPPING_LIMIT, MAPPING_OFFSET, MAPPING_FILE,
	MAPPING_BUILD_ID, MAPPING_HAS_FUNCTIONS, MAPPING_HAS_FILES, MAPPING_HAS_LINES,
	LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_ADDRESS, LOCATION_LINE,
	LINE_FUNCTION = 1, LINE_LINE,
	FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME, FUNCTION_FILE,
};

/* ------------------------------------------------------- protocol buffers */

enum { WIRE_VARINT = 0, WIRE_BYTES = 2 };

static void put_varint(struct bytes *b, uint64_t v)
{
	uint8_t digit[10];
	size_t n = 0;

	do
		digit[n++] = (uint8_t)(v | 0x80);
	while (v >>= 7);
	digit[n - 1] &= 0x7f;
	bytes_add(b, digit, n);
}

/* A field that is left out means 0. */
static void put_number(struct bytes *b, int field, uint64_t v)
{
	if (v == 0)
		return;
	put_varint(b, (uint64_t)field << 3 | WIRE_VARINT);
	put_varint(b, v);
}

static void put_bytes(struct bytes *b, int field, const void *at, size_t n)
{
	put_varint(b, (uint64_t)field << 3 | WIRE_BYTES);
	put_varint(b, n);
	bytes_add(b, at, n);
}

/* A message inside another is made at a level of its own: its length comes first. */
static struct bytes *message_begin(struct pprof *b)
{
	struct bytes *m = &b->level[++b->depth];

	m->n = 0;
	return m;
}

static void message_end(struct pprof *b, int field)
{
	const struct bytes *m = &b->level[b->depth--];

	put_bytes(&b->level[b->depth], field, m->at, m->n);
}

/* ---------------------------------------------------------------- strings */

/* The number of a key, from 1; 0: no memory. */
static uint64_t number_in(struct pprof *b, struct table *t, const void *key, size_t n)
{
	const struct table_entry *e = table_put(t, key, n);

	b->failed |= !e;
	return e ? e->id : 0;
}

/* In the format the first has number 0. */
static uint64_t string(struct pprof *b, const char *s)
{
	return number_in(b, &b->strings, s, strlen(s)) - 1;
}

static void put_strings(struct pprof *b)
{
	for (const struct table_entry *e = b->strings.first; e; e = e->after)
		put_bytes(&b->level[0], PROFILE_STRING, e->data, e->n);
}

/* --------------------------------------------------------------- mappings */

struct mapping {
	uintptr_t start, end;
	uint64_t offset;
	uint64_t file;		/* a string */
	bool used;
	bool nameless;		/* a location in it has no function's name */
};

static bool note_mapping(const struct maps_line *line, void *arg)
{
	struct pprof *b = arg;
	struct mapping m = { .start = line->start, .end = line->end, .offset = line->offset };

	if (!line->executable || !line->path[0])
		return true;
	m.file = string(b, line->path);
	bytes_add(&b->mappings, &m, sizeof m);
	return true;
}

/* The number of the mapping, from 1; 0: none. */
static uint64_t mapping_of(const struct pprof *b, uintptr_t address)
{
	const struct mapping *m = (const struct mapping *)b->mappings.at;

	for (size_t i = 0; i < b->mappings.n / sizeof *m; i++)
		if (address >= m[i].start && address < m[i].end)
			return i + 1;
	return 0;
}

static uint64_t build_id(struct pprof *b, uintptr_t address)
{
	struct module m;
	struct elf_file f;
	struct reader id;
	char buf[128];
	struct text t = text_make(buf, sizeof buf);

	if (!module_find(address, &m) || !elf_open_module(&f, &m))
		return 0;
	id = elf_build_id(&f);
	while (!id.bad && reader_left(&id))
		text_add_hex_byte(&t, reader_u8(&id));
	elf_close(&f);
	return string(b, buf);
}

/* The program comes first, even if no location is in it. */
static void put_mappings(struct pprof *b)
{
	const struct mapping *m = (const struct mapping *)b->mappings.at;

	for (size_t i = 0; i < b->mappings.n / sizeof *m; i++) {
		struct bytes *to;

		if (!m[i].used && i > 0)
			continue;
		to = message_begin(b);
		put_number(to, MAPPING_ID, i + 1);
		put_number(to, MAPPING_START, m[i].start);
		put_number(to, MAPPING_LIMIT, m[i].end);
		put_number(to, MAPPING_OFFSET, m[i].offset);
		put_number(to, MAPPING_FILE, m[i].file);
		put_number(to, MAPPING_BUILD_ID, build_id(b, m[i].start));
		put_number(to, MAPPING_HAS_FUNCTIONS, !m[i].nameless);
		put_number(to, MAPPING_HAS_FILES, !m[i].nameless);
		put_number(to, MAPPING_HAS_LINES, !m[i].nameless);
		message_end(b, PROFILE_MAPPING);
	}
}

/* ----------------------------------------------- locations and functions */

/* What is known of an address. */
struct place {
	bool is_known;
	uint64_t name, file;	/* strings */
	uint64_t mapping;
	int line;
	struct frame frame;
	bool is_put;		/* its location is in the profile */
};

/* The function's number, from 1. */
static uint64_t function(struct pprof *b, uint64_t name, uint64_t file)
{
	uint64_t key[2] = { name, file }, known = b->functions.n;
	uint64_t id = number_in(b, &b->functions, key, sizeof key);
	struct bytes *to;

	if (id <= known)
		return id;
	to = message_begin(b);
	put_number(to, FUNCTION_ID, id);
	put_number(to, FUNCTION_NAME, name);
	put_number(to, FUNCTION_SYSTEM_NAME, name);
	put_number(to, FUNCTION_FILE, file);
	message_end(b, PROFILE_FUNCTION);
	return id;
}

static void put_location(struct pprof *b, uint64_t id, uintptr_t address, const struct place *f)
{
	uint64_t function_id = f->name ? function(b, f->name, f->file) : 0;
	struct mapping *m = (struct mapping *)b->mappings.at + f->mapping - 1;
	struct bytes *to = message_begin(b);

	put_number(to, LOCATION_ID, id);
	put_number(to, LOCATION_MAPPING, f->mapping);
	put_number(to, LOCATION_ADDRESS, address);
	if (function_id) {
		to = message_begin(b);
		put_number(to, LINE_FUNCTION, function_id);
		put_number(to, LINE_LINE, (uint64_t)f->line);
		message_end(b, LOCATION_LINE);
	}
	message_end(b, PROFILE_LOCATION);
	if (f->mapping) {
		m->used = true;
		m->nameless |= !function_id;
	}
}

static struct place describe(struct pprof *b, uintptr_t address)
{
	struct symbol sym = { .function = "" };

	symbol_find(address, &sym);
	return (struct place){
		.is_known = true,
		.name = string(b, sym.function),
		.file = string(b, sym.file),
		.mapping = mapping_of(b, address),
		.line = sym.line,
		.frame = frame_of_symbol(address, &sym),
	};
}

/* The place of an address, and its number, from 1. NULL: no memory. */
static struct place *place_of(struct pprof *b, uintptr_t address, uint64_t *id)
{
	struct table_entry *e = table_put(&b->places, &address, sizeof address);
	struct place *p = e ? table_data(e) : NULL;

	b->failed |= !e;
	*id = e ? e->id : 0;
	if (p && !p->is_known)
		*p = describe(b, address);
	return p;
}

/* ---------------------------------------------------------------- samples */

struct frame pprof_look(void *pprof, uintptr_t address)
{
	uint64_t id;
	const struct place *p = place_of(pprof, address, &id);

	return p ? p->frame : (struct frame){ .function = 0 };
}

static void put_label(struct pprof *b, const char *key, const char *text, uint64_t number)
{
	struct bytes *to = message_begin(b);

	put_number(to, LABEL_KEY, string(b, key));
	put_number(to, LABEL_STRING, text ? string(b, text) : 0);
	put_number(to, LABEL_NUMBER, number);
	message_end(b, SAMPLE_LABEL);
}

static void put_packed(struct pprof *b, int field, const uint64_t *v, size_t n)
{
	struct bytes *to = message_begin(b);

	for (size_t i = 0; i < n; i++)
		put_varint(to, v[i]);
	message_end(b, field);
}

static void put_sample(struct pprof *b, const uint64_t *id, size_t n, const int64_t *value,
                       const char *name, uint64_t goroutine)
{
	message_begin(b);
	put_packed(b, SAMPLE_LOCATION, id, n);
	put_packed(b, SAMPLE_VALUE, (const uint64_t *)value, (size_t)b->types);
	if (name[0])
		put_label(b, "goroutine", name, 0);
	if (goroutine)
		put_label(b, "goroutine_id", NULL, goroutine);
	message_end(b, PROFILE_SAMPLE);
}

void pprof_sample(struct pprof *b, const struct profile_record *r, const int64_t *value)
{
	uint64_t id[BACKTRACE_MAX];

	for (size_t i = 0; i < r->n; i++) {
		struct place *p = place_of(b, r->pc[i], &id[i]);

		if (p && !p->is_put) {
			p->is_put = true;
			put_location(b, id[i], r->pc[i], p);
		}
	}
	put_sample(b, id, r->n, value, r->name, r->id);
}

void pprof_sample_named(struct pprof *b, const char *name, const int64_t *value)
{
	struct place p = { .name = string(b, name) };
	uint64_t id;

	if (value[0] == 0)
		return;
	/* No code has this address. */
	id = number_in(b, &b->places, name, strlen(name));
	put_location(b, id, 0, &p);
	put_sample(b, &id, 1, value, "", 0);
}

/* ---------------------------------------------------------------- the whole */

static void put_type(struct pprof *b, int field, const struct pprof_type *t)
{
	struct bytes *to = message_begin(b);

	put_number(to, TYPE_WHAT, string(b, t->what));
	put_number(to, TYPE_UNIT, string(b, t->unit));
	message_end(b, field);
}

void pprof_begin(struct pprof *b, const struct pprof_kind *kind)
{
	*b = (struct pprof){ .types = kind->types, .places.extra = sizeof(struct place) };
	string(b, "");		/* the format wants it first */
	for (int i = 0; i < kind->types; i++)
		put_type(b, PROFILE_SAMPLE_TYPE, &kind->type[i]);
	put_type(b, PROFILE_PERIOD_TYPE, &kind->period_type);
	put_number(&b->level[0], PROFILE_PERIOD, (uint64_t)kind->period);
	maps_each(note_mapping, b);
}

void pprof_comment(struct pprof *b, const char *text)
{
	put_number(&b->level[0], PROFILE_COMMENT, string(b, text));
}

void pprof_time(struct pprof *b, int64_t began, int64_t took)
{
	put_number(&b->level[0], PROFILE_TIME, (uint64_t)began);
	put_number(&b->level[0], PROFILE_DURATION, (uint64_t)took);
}

int pprof_end(struct pprof *b, struct bytes *out)
{
	bool failed;

	*out = (struct bytes){ .at = NULL };
	put_mappings(b);
	put_strings(b);
	gzip_store(out, &b->level[0]);
	failed = b->failed || b->mappings.failed || out->failed;
	for (int i = 0; i < PPROF_LEVELS; i++) {
		failed |= b->level[i].failed;
		bytes_free(&b->level[i]);
	}
	bytes_free(&b->mappings);
	table_free(&b->strings);
	table_free(&b->places);
	table_free(&b->functions);
	if (!failed)
		return 0;
	bytes_free(out);
	return -ENOMEM;
}

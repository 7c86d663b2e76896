/*
 * pprof_proto.c - a profile as `go tool pprof` reads it.
 *
 * The format is profile.proto of github.com/google/pprof: one protocol buffer message
 * with sub-messages for samples, locations (addresses), functions and mappings, which
 * refer to each other by number, and to strings by their place in a table. The order of
 * the parts is free, so each is appended to the body once it is known: a location when
 * a sample first has it, its function with it, mappings and strings at the end.
 *
 * Functions, files and lines are looked up here, where the program runs, so that a
 * reader needs neither the program nor its libraries. Mappings with their build ids are
 * there for those who have them, and want the code as well.
 *
 * Addresses. The innermost frame's is the instruction that ran; the others' are return
 * addresses, from which one is subtracted: the call is meant, not what comes after it.
 */
#include "pprof_proto.h"

#include <errno.h>
#include <string.h>

#include "backtrace.h"
#include "elf_file.h"
#include "frame.h"
#include "gzip.h"
#include "maps.h"
#include "module.h"
#include "os.h"
#include "text.h"

/* Fields, by message. */
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

/* A number, unless it is 0, which a field that is not there means. */
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

/* A message inside another is put together apart, since its length comes first. */
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

/* ------------------------------------------------------------------- sets */

struct entry {
	uint64_t hash;
	size_t at, n;		/* in keys */
};

static uint64_t hash_of(const uint8_t *key, size_t n)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < n; i++)
		h = (h ^ key[i]) * UINT64_C(0x100000001b3);
	return h ^ h >> 32;
}

static size_t set_count(const struct pprof_set *s)
{
	return s->entries.n / sizeof(struct entry);
}

static bool set_failed(const struct pprof_set *s)
{
	return s->keys.failed || s->entries.failed;
}

/* Twice as many slots as keys, at least; false: no memory. */
static bool set_grow(struct pprof_set *s)
{
	size_t slots = s->slots ? 2 * s->slots : 1024;
	const struct entry *e = (const struct entry *)s->entries.at;
	uint32_t *slot = os_map(slots * sizeof *slot);

	if (!slot)
		return false;
	for (size_t i = 0, n = set_count(s), at; i < n; i++) {
		for (at = e[i].hash % slots; slot[at]; at = (at + 1) % slots)
			;
		slot[at] = (uint32_t)i + 1;
	}
	if (s->slot)
		os_unmap(s->slot, s->slots * sizeof *slot);
	s->slot = slot;
	s->slots = slots;
	return true;
}

/* The key's number. *fresh: it is new. */
static uint32_t set_number(struct pprof_set *s, const void *key, size_t n, bool *fresh)
{
	uint64_t hash = hash_of(key, n);
	struct entry *e;
	size_t at;

	*fresh = false;
	if (2 * set_count(s) >= s->slots && !set_grow(s))
		s->keys.failed = true;
	if (set_failed(s))
		return 0;
	e = (struct entry *)s->entries.at;
	for (at = hash % s->slots; s->slot[at]; at = (at + 1) % s->slots) {
		uint32_t i = s->slot[at] - 1;

		if (e[i].hash == hash && e[i].n == n && memcmp(s->keys.at + e[i].at, key, n) == 0)
			return i;
	}
	*fresh = true;
	s->slot[at] = (uint32_t)set_count(s) + 1;
	bytes_add(&s->entries, &(struct entry){ hash, s->keys.n, n }, sizeof *e);
	bytes_add(&s->keys, key, n);
	return s->slot[at] - 1;
}

static void set_free(struct pprof_set *s)
{
	if (s->slot)
		os_unmap(s->slot, s->slots * sizeof *s->slot);
	bytes_free(&s->keys);
	bytes_free(&s->entries);
}

static uint64_t string_n(struct pprof *b, const char *s, size_t n)
{
	bool fresh;

	return set_number(&b->strings, s, n, &fresh);
}

static uint64_t string(struct pprof *b, const char *s)
{
	return string_n(b, s, strlen(s));
}

static void put_strings(struct pprof *b)
{
	const struct entry *e = (const struct entry *)b->strings.entries.at;

	if (set_failed(&b->strings))
		return;
	for (size_t i = 0, n = set_count(&b->strings); i < n; i++)
		put_bytes(&b->level[0], PROFILE_STRING, b->strings.keys.at + e[i].at, e[i].n);
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

/* Its number, from 1; 0: none. */
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

/* The program is the first, whether or not it is used. */
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
	uint64_t name, file;	/* strings */
	uint64_t mapping;
	int line;
	struct frame frame;
	bool is_put;		/* as a location */
};

/* Its number, from 1. */
static uint64_t function(struct pprof *b, uint64_t name, uint64_t file)
{
	uint64_t key[2] = { name, file };
	struct bytes *to;
	bool fresh;
	uint64_t id = set_number(&b->functions, key, sizeof key, &fresh) + UINT64_C(1);

	if (!fresh)
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
		.name = string(b, sym.function),
		.file = string(b, sym.file),
		.mapping = mapping_of(b, address),
		.line = sym.line,
		.frame = frame_of_symbol(address, &sym),
	};
}

/* The number of an address, from 1; it is known now. */
static uint64_t location(struct pprof *b, uintptr_t address)
{
	bool fresh;
	uint64_t id = set_number(&b->locations, &address, sizeof address, &fresh) + UINT64_C(1);
	struct place f;

	if (fresh) {
		f = describe(b, address);
		bytes_add(&b->places, &f, sizeof f);
	}
	return id;
}

/* False: there was no memory for it. */
static bool place_of(const struct pprof *b, uint64_t id, struct place **f)
{
	*f = (struct place *)b->places.at + id - 1;
	return id <= b->places.n / sizeof **f;
}

/* ---------------------------------------------------------------- samples */

static struct frame look(void *arg, uintptr_t address)
{
	struct pprof *b = arg;
	struct place *p;

	return place_of(b, location(b, address), &p) ? p->frame : (struct frame){ .function = 0 };
}

size_t pprof_trim(struct pprof *b, const struct profile_record *r, uintptr_t *address)
{
	return frame_program(r->pc, r->n, r->from, look, b, address);
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
	struct place *f;

	for (size_t i = 0; i < r->n; i++) {
		id[i] = location(b, r->pc[i]);
		if (place_of(b, id[i], &f) && !f->is_put) {
			f->is_put = true;
			put_location(b, id[i], r->pc[i], f);
		}
	}
	put_sample(b, id, r->n, value, r->name, r->id);
}

void pprof_sample_named(struct pprof *b, const char *name, const int64_t *value)
{
	struct place f = { .name = string(b, name) };
	bool fresh;
	uint64_t id;

	if (value[0] == 0)
		return;
	/* No code has this address. */
	id = set_number(&b->locations, name, strlen(name), &fresh) + UINT64_C(1);
	bytes_add(&b->places, &f, sizeof f);
	put_location(b, id, 0, &f);
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
	*b = (struct pprof){ .types = kind->types };
	string(b, "");		/* the first, by definition */
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

static bool has_failed(const struct pprof *b)
{
	for (int i = 0; i < PPROF_LEVELS; i++)
		if (b->level[i].failed)
			return true;
	return b->mappings.failed || b->places.failed || set_failed(&b->strings) ||
	       set_failed(&b->locations) || set_failed(&b->functions);
}

int pprof_end(struct pprof *b, struct bytes *out)
{
	bool failed;

	*out = (struct bytes){ .at = NULL };
	put_mappings(b);
	put_strings(b);
	gzip_store(out, &b->level[0]);
	failed = out->failed || has_failed(b);
	for (int i = 0; i < PPROF_LEVELS; i++)
		bytes_free(&b->level[i]);
	bytes_free(&b->mappings);
	bytes_free(&b->places);
	set_free(&b->strings);
	set_free(&b->locations);
	set_free(&b->functions);
	if (!failed)
		return 0;
	bytes_free(out);
	return -ENOMEM;
}

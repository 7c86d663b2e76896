/*
 * pprof.h - a reader of profiles, for tests: gzip with stored blocks, and profile.proto.
 *
 *	struct pprof_file *p = pprof_read(fd);       from the beginning of a file
 *	pprof_type(p, "delay")                       its number, or FAIL
 *	pprof_sum(p, type, NULL)                     of all samples
 *	pprof_sum(p, type, "worker")                 of those with this function anywhere
 *	pprof_sum_leaf(p, type, "worker")            .. innermost
 *	pprof_sum_label(p, type, "goroutine", "w")   .. with this label
 *
 * What is not as the format has it FAILs.
 */
#ifndef GORO_TEST_PPROF_H
#define GORO_TEST_PPROF_H

#include <goro.h>

#include "test.h"

#define PPROF_MAX_TYPES 4
#define PPROF_MAX_LABELS 4

struct pprof_location {
	uint64_t id, mapping, address, function;
	int line;
};

struct pprof_function {
	uint64_t id;
	const char *name, *file;
	uint64_t name_at, file_at;
};

struct pprof_mapping {
	uint64_t id, start, limit, offset, file_at, build_id_at;
	const char *file, *build_id;
	bool has_functions;
};

struct pprof_sample {
	int n, values, labels;
	uint64_t location[128];
	int64_t value[PPROF_MAX_TYPES];
	struct { uint64_t key, text; int64_t number; } label[PPROF_MAX_LABELS];
};

struct pprof_file {
	const char *string[65536];
	int strings;
	struct { uint64_t what, unit; } type[PPROF_MAX_TYPES], period_type;
	int types;
	int64_t period, time, duration;
	struct pprof_sample *sample;
	int samples;
	struct pprof_location *location;
	int locations;
	struct pprof_function *function;
	int functions;
	struct pprof_mapping *mapping;
	int mappings;
};

/* ------------------------------------------------------------------- gzip */

static uint8_t *pprof_unzip(const uint8_t *in, size_t n, size_t *out_n)
{
	uint8_t *out = malloc(n ? n : 1);
	size_t at = 10, total = 0;
	bool last = false;

	if (n < 18 || in[0] != 0x1f || in[1] != 0x8b || in[2] != 8 || in[3] != 0)
		FAIL("not gzip: %zu bytes", n);
	while (!last) {
		if (at + 5 > n - 8)
			FAIL("gzip ends early");
		last = in[at] & 1;
		if (in[at] >> 1 != 0)
			FAIL("a block that is not stored");
		size_t len = (size_t)in[at + 1] | (size_t)in[at + 2] << 8;
		size_t not = (size_t)in[at + 3] | (size_t)in[at + 4] << 8;
		if ((len ^ not) != 0xffff || at + 5 + len > n - 8)
			FAIL("gzip: wrong length of a block");
		memcpy(out + total, in + at + 5, len);
		total += len;
		at += 5 + len;
	}
	if (at + 8 != n)
		FAIL("gzip: %zu bytes too many", n - at - 8);
	uint32_t size;
	memcpy(&size, in + at + 4, 4);
	CHECK_EQ(size, total);
	*out_n = total;
	return out;
}

/* ------------------------------------------------------- protocol buffers */

struct pprof_cursor {
	const uint8_t *at, *end;
};

static uint64_t pprof_varint(struct pprof_cursor *c)
{
	uint64_t v = 0;
	for (int shift = 0; shift < 64; shift += 7) {
		if (c->at == c->end)
			FAIL("a number ends early");
		v |= (uint64_t)(*c->at & 0x7f) << shift;
		if (!(*c->at++ & 0x80))
			return v;
	}
	FAIL("a number is too long");
}

struct pprof_field {
	int number;
	uint64_t value;			/* of a number */
	struct pprof_cursor bytes;	/* or these */
	bool is_bytes;
};

static bool pprof_next(struct pprof_cursor *c, struct pprof_field *f)
{
	if (c->at == c->end)
		return false;
	uint64_t tag = pprof_varint(c);
	f->number = (int)(tag >> 3);
	f->is_bytes = (tag & 7) == 2;
	if (!f->is_bytes && (tag & 7) != 0)
		FAIL("field %d has wire type %d", f->number, (int)(tag & 7));
	f->value = pprof_varint(c);
	if (f->is_bytes) {
		if (f->value > (uint64_t)(c->end - c->at))
			FAIL("field %d ends early", f->number);
		f->bytes = (struct pprof_cursor){ c->at, c->at + f->value };
		c->at += f->value;
	}
	return true;
}

#define PPROF_APPEND(p, array, count) \
	((p)->array = realloc((p)->array, sizeof(*(p)->array) * (size_t)((p)->count + 1)), \
	 memset(&(p)->array[(p)->count], 0, sizeof(*(p)->array)), &(p)->array[(p)->count++])

static void pprof_parse_label(struct pprof_sample *s, struct pprof_cursor c)
{
	struct pprof_field f;
	CHECK(s->labels < PPROF_MAX_LABELS);
	while (pprof_next(&c, &f)) {
		if (f.number == 1)
			s->label[s->labels].key = f.value;
		else if (f.number == 2)
			s->label[s->labels].text = f.value;
		else if (f.number == 3)
			s->label[s->labels].number = (int64_t)f.value;
	}
	s->labels++;
}

static void pprof_parse_sample(struct pprof_file *p, struct pprof_cursor c)
{
	struct pprof_sample *s = PPROF_APPEND(p, sample, samples);
	struct pprof_field f;
	while (pprof_next(&c, &f)) {
		CHECK(f.is_bytes);
		if (f.number == 3)
			pprof_parse_label(s, f.bytes);
		while (f.number != 3 && f.bytes.at < f.bytes.end) {
			uint64_t v = pprof_varint(&f.bytes);
			if (f.number == 1) {
				CHECK(s->n < 128);
				s->location[s->n++] = v;
			} else {
				CHECK(s->values < PPROF_MAX_TYPES);
				s->value[s->values++] = (int64_t)v;
			}
		}
	}
}

static void pprof_parse_location(struct pprof_file *p, struct pprof_cursor c)
{
	struct pprof_location *l = PPROF_APPEND(p, location, locations);
	struct pprof_field f, g;
	while (pprof_next(&c, &f)) {
		if (f.number == 1)
			l->id = f.value;
		else if (f.number == 2)
			l->mapping = f.value;
		else if (f.number == 3)
			l->address = f.value;
		else if (f.number == 4)
			while (pprof_next(&f.bytes, &g))
				*(g.number == 1 ? &l->function : &g.value) = g.value,
				l->line = g.number == 2 ? (int)g.value : l->line;
	}
}

static void pprof_parse_function(struct pprof_file *p, struct pprof_cursor c)
{
	struct pprof_function *fn = PPROF_APPEND(p, function, functions);
	struct pprof_field f;
	while (pprof_next(&c, &f)) {
		if (f.number == 1)
			fn->id = f.value;
		else if (f.number == 2)
			fn->name_at = f.value;
		else if (f.number == 4)
			fn->file_at = f.value;
	}
}

static void pprof_parse_mapping(struct pprof_file *p, struct pprof_cursor c)
{
	struct pprof_mapping *m = PPROF_APPEND(p, mapping, mappings);
	struct pprof_field f;
	while (pprof_next(&c, &f))
		switch (f.number) {
		case 1: m->id = f.value; break;
		case 2: m->start = f.value; break;
		case 3: m->limit = f.value; break;
		case 4: m->offset = f.value; break;
		case 5: m->file_at = f.value; break;
		case 6: m->build_id_at = f.value; break;
		case 7: m->has_functions = f.value; break;
		}
}

static void pprof_parse_type(struct pprof_cursor c, uint64_t *what, uint64_t *unit)
{
	struct pprof_field f;
	while (pprof_next(&c, &f))
		*(f.number == 1 ? what : unit) = f.value;
}

static const char *pprof_string(const struct pprof_file *p, uint64_t at)
{
	if (at >= (uint64_t)p->strings)
		FAIL("no string %llu", (unsigned long long)at);
	return p->string[at];
}

static void pprof_parse_field(struct pprof_file *p, struct pprof_field *f)
{
	switch (f->number) {
	case 1:
		CHECK(p->types < PPROF_MAX_TYPES);
		pprof_parse_type(f->bytes, &p->type[p->types].what, &p->type[p->types].unit);
		p->types++;
		break;
	case 2: pprof_parse_sample(p, f->bytes); break;
	case 3: pprof_parse_mapping(p, f->bytes); break;
	case 4: pprof_parse_location(p, f->bytes); break;
	case 5: pprof_parse_function(p, f->bytes); break;
	case 6:
		CHECK(p->strings < 65536);
		p->string[p->strings++] = strndup((const char *)f->bytes.at,
		                                  (size_t)(f->bytes.end - f->bytes.at));
		break;
	case 9: p->time = (int64_t)f->value; break;
	case 10: p->duration = (int64_t)f->value; break;
	case 11: pprof_parse_type(f->bytes, &p->period_type.what, &p->period_type.unit); break;
	case 12: p->period = (int64_t)f->value; break;
	}
}

/* ----------------------------------------------------------------- the whole */

static const struct pprof_location *pprof_location_of(const struct pprof_file *p, uint64_t id)
{
	for (int i = 0; i < p->locations; i++)
		if (p->location[i].id == id)
			return &p->location[i];
	FAIL("no location %llu", (unsigned long long)id);
}

static const struct pprof_function *pprof_function_of(const struct pprof_file *p, uint64_t id)
{
	for (int i = 0; i < p->functions; i++)
		if (p->function[i].id == id)
			return &p->function[i];
	FAIL("no function %llu", (unsigned long long)id);
}

static const struct pprof_mapping *pprof_mapping_of(const struct pprof_file *p, uint64_t id)
{
	for (int i = 0; i < p->mappings; i++)
		if (p->mapping[i].id == id)
			return &p->mapping[i];
	FAIL("no mapping %llu", (unsigned long long)id);
}

/* The function of a sample's frame, from 0, innermost first; "" if it has no name. */
static const char *pprof_frame(const struct pprof_file *p, const struct pprof_sample *s, int i)
{
	const struct pprof_location *l = pprof_location_of(p, s->location[i]);
	return l->function ? pprof_function_of(p, l->function)->name : "";
}

/* What refers to each other is there; numbers are given once. */
static void pprof_check(const struct pprof_file *p)
{
	CHECK(p->strings > 0);
	CHECK_STR(p->string[0], "");
	CHECK(p->types > 0);
	for (int i = 0; i < p->locations; i++) {
		const struct pprof_location *l = &p->location[i];
		CHECK(l->id != 0 && pprof_location_of(p, l->id) == l);
		if (l->function)
			pprof_function_of(p, l->function);
		if (l->mapping) {
			const struct pprof_mapping *m = pprof_mapping_of(p, l->mapping);
			CHECK(l->address >= m->start && l->address < m->limit);
		}
	}
	for (int i = 0; i < p->functions; i++)
		CHECK(pprof_function_of(p, p->function[i].id) == &p->function[i]);
	for (int i = 0; i < p->samples; i++) {
		CHECK_EQ(p->sample[i].values, p->types);
		for (int k = 0; k < p->sample[i].n; k++)
			pprof_frame(p, &p->sample[i], k);
	}
}

__attribute__((unused))
static struct pprof_file *pprof_parse(const uint8_t *bytes, size_t size)
{
	struct pprof_file *p = calloc(1, sizeof(*p));
	struct pprof_field f;
	size_t n;
	uint8_t *raw = pprof_unzip(bytes, size, &n);
	struct pprof_cursor c = { raw, raw + n };
	while (pprof_next(&c, &f))
		pprof_parse_field(p, &f);
	free(raw);
	for (int i = 0; i < p->functions; i++) {
		p->function[i].name = pprof_string(p, p->function[i].name_at);
		p->function[i].file = pprof_string(p, p->function[i].file_at);
	}
	for (int i = 0; i < p->mappings; i++) {
		p->mapping[i].file = pprof_string(p, p->mapping[i].file_at);
		p->mapping[i].build_id = pprof_string(p, p->mapping[i].build_id_at);
	}
	pprof_check(p);
	return p;
}

__attribute__((unused))
static struct pprof_file *pprof_read(int fd)
{
	size_t n = (size_t)lseek(fd, 0, SEEK_END);
	uint8_t *bytes = malloc(n + 1);
	CHECK_EQ(pread(fd, bytes, n, 0), n);
	struct pprof_file *p = pprof_parse(bytes, n);
	free(bytes);
	return p;
}

__attribute__((unused))
static void pprof_free(struct pprof_file *p)
{
	for (int i = 0; i < p->strings; i++)
		free((void *)(uintptr_t)p->string[i]);
	free(p->sample);
	free(p->location);
	free(p->function);
	free(p->mapping);
	free(p);
}

__attribute__((unused))
static int pprof_type(const struct pprof_file *p, const char *what)
{
	for (int i = 0; i < p->types; i++)
		if (strcmp(pprof_string(p, p->type[i].what), what) == 0)
			return i;
	FAIL("no type %s", what);
}

static bool pprof_has(const struct pprof_file *p, const struct pprof_sample *s, const char *function)
{
	for (int i = 0; i < s->n; i++)
		if (!function || strcmp(pprof_frame(p, s, i), function) == 0)
			return true;
	return !function;
}

__attribute__((unused))
static int64_t pprof_sum(const struct pprof_file *p, int type, const char *function)
{
	int64_t sum = 0;
	for (int i = 0; i < p->samples; i++)
		if (pprof_has(p, &p->sample[i], function))
			sum += p->sample[i].value[type];
	return sum;
}

__attribute__((unused))
static int64_t pprof_sum_leaf(const struct pprof_file *p, int type, const char *function)
{
	int64_t sum = 0;
	for (int i = 0; i < p->samples; i++)
		if (p->sample[i].n > 0 && strcmp(pprof_frame(p, &p->sample[i], 0), function) == 0)
			sum += p->sample[i].value[type];
	return sum;
}

static bool pprof_has_label(const struct pprof_file *p, const struct pprof_sample *s,
                            const char *key, const char *text)
{
	for (int k = 0; k < s->labels; k++)
		if (!strcmp(pprof_string(p, s->label[k].key), key) &&
		    !strcmp(pprof_string(p, s->label[k].text), text))
			return true;
	return false;
}

__attribute__((unused))
static int64_t pprof_sum_label(const struct pprof_file *p, int type, const char *key,
                               const char *text)
{
	int64_t sum = 0;
	for (int i = 0; i < p->samples; i++)
		if (pprof_has_label(p, &p->sample[i], key, text))
			sum += p->sample[i].value[type];
	return sum;
}

/* For people: what a failing test saw. */
__attribute__((unused))
static void pprof_print(const struct pprof_file *p)
{
	for (int i = 0; i < p->samples; i++) {
		for (int k = 0; k < p->types; k++)
			dprintf(2, "%lld ", (long long)p->sample[i].value[k]);
		for (int k = 0; k < p->sample[i].n; k++)
			dprintf(2, " %s", pprof_frame(p, &p->sample[i], k));
		dprintf(2, "\n");
	}
}

/* The profile of that name, as it is now. */
__attribute__((unused))
static struct pprof_file *pprof_take(const char *name)
{
	int fd = memfd_create("profile", MFD_CLOEXEC);
	struct pprof_file *p;

	CHECK_EQ(goro_profile_write(name, fd), 0);
	p = pprof_read(fd);
	close(fd);
	return p;
}

#endif

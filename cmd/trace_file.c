/*
 * trace_file.c - the generations of a trace file, in Go's format (1.22 and 1.23).
 *
 * A file is a header and then batches: of one thread's events, of texts, of stacks, of
 * CPU samples, or with the clock's frequency. Each names its generation. A generation is
 * whole when its frequency is there, which comes last. A file that ends early, as when
 * the program was killed, is read up to its last whole generation.
 *
 * Batches are found by their heads, without reading them. One generation at a time is
 * loaded, so memory is needed for one; the file may change meanwhile without harm.
 */
#include "trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd.h"

#define HEADER_BYTES   16
#define FRAMES_MAX     1024

enum { EVENT_BATCH = 1, STACKS, STACK, STRINGS, STRING, CPU_SAMPLES, FREQUENCY = 8, EXPERIMENTAL_BATCH = 49 };

static bool fail(struct trace_file *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static bool fail(struct trace_file *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f->why, sizeof f->why, fmt, ap);
	va_end(ap);
	return false;
}

/* ------------------------------------------------------------------- heads */

/* What stands before a batch's data. */
struct head {
	uint64_t generation, thread, time, bytes;
	size_t size;		/* of the head */
	bool experimental;	/* its data has a format of its own */
	uint8_t kind;		/* the first byte of the data */
};

/* False: there is no whole head. */
static bool parse_head(const uint8_t *p, const uint8_t *end, struct head *h)
{
	const uint8_t *at = p + 1;
	uint64_t experiment;

	if (p >= end || (*p != EVENT_BATCH && *p != EXPERIMENTAL_BATCH))
		return false;
	h->experimental = *p == EXPERIMENTAL_BATCH;
	if (h->experimental && !take_number(&at, end, &experiment))
		return false;
	if (!take_number(&at, end, &h->generation) || !take_number(&at, end, &h->thread) ||
	    !take_number(&at, end, &h->time) || !take_number(&at, end, &h->bytes))
		return false;
	h->size = (size_t)(at - p);
	h->kind = h->bytes > 0 && at < end ? *at : 0;
	return true;
}

/* The head at an offset. False: there is no whole batch. */
static bool read_head(const struct trace_file *f, off_t at, off_t size, struct head *h)
{
	uint8_t buf[64];
	ssize_t n = pread(f->fd, buf, sizeof buf, at);

	return n > 0 && parse_head(buf, buf + n, h) && h->bytes <= (uint64_t)(size - at) - h->size;
}

/* ----------------------------------------------------------------- opening */

static bool check_header(struct trace_file *f)
{
	char header[HEADER_BYTES + 1] = "";
	ssize_t n = pread(f->fd, header, HEADER_BYTES, 0);
	unsigned minor;

	if (n == 0)
		return fail(f, "is empty");
	if (n < HEADER_BYTES || sscanf(header, "go 1.%u trace", &minor) != 1)
		return fail(f, "is not an execution trace");
	if (minor != 22 && minor != 23)
		return fail(f, "is a trace in the format of Go 1.%u; only those of 1.22 and 1.23 can be read", minor);
	return true;
}

static void add_extent(struct trace_file *f, const struct trace_extent *e)
{
	f->at = realloc(f->at, (f->n + 1) * sizeof *f->at);
	if (!f->at)
		die("out of memory");
	f->at[f->n++] = *e;
}

/* All batches; each generation that has its frequency is added. */
static void find_generations(struct trace_file *f, off_t size)
{
	struct trace_extent e = { .from = HEADER_BYTES, .to = HEADER_BYTES };
	bool whole = false;
	struct head h;

	while (e.to < size && read_head(f, e.to, size, &h)) {
		if (h.generation != e.number) {
			if (whole)
				add_extent(f, &e);
			if ((e.number != 0 && !whole) || h.generation <= e.number) {
				f->cut = true;
				return;
			}
			e = (struct trace_extent){ h.generation, e.to, e.to };
			whole = false;
		}
		whole |= h.kind == FREQUENCY && !h.experimental;
		e.to += (off_t)(h.size + h.bytes);
	}
	if (whole)
		add_extent(f, &e);
	f->cut = !whole || e.to < size;
}

bool trace_file_open(struct trace_file *f, const char *path)
{
	struct stat st;

	*f = (struct trace_file){ .path = path, .fd = open(path, O_RDONLY | O_CLOEXEC) };
	if (f->fd < 0 || fstat(f->fd, &st) != 0)
		return fail(f, "%s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return fail(f, "is not a regular file");
	if (!check_header(f))
		return false;
	find_generations(f, st.st_size);
	if (f->n == 0)
		return fail(f, "has no whole generation: the program was killed, or still runs (a generation "
		            "takes a second)");
	return true;
}

void trace_file_close(struct trace_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	free(f->at);
	f->at = NULL;
	f->n = 0;
}

bool is_trace_file(const char *path)
{
	char header[5] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool is = fd >= 0 && pread(fd, header, 5, 0) == 5 && memcmp(header, "go 1.", 5) == 0;

	if (fd >= 0)
		close(fd);
	return is;
}

/* ----------------------------------------------------------------- loading */

static bool load_texts(struct trace_generation *g, struct names *names, const uint8_t *p, const uint8_t *end)
{
	uint64_t id, n;

	while (p < end) {
		if (*p++ != STRING || !take_number(&p, end, &id) || !take_number(&p, end, &n) ||
		    n > (uint64_t)(end - p))
			return false;
		map_put(&g->texts, id, names_text(names, p, n));
		p += n;
	}
	return true;
}

static bool load_frame(const struct trace_generation *g, const uint8_t **p, const uint8_t *end, struct frame *f)
{
	uint64_t pc, function, file, line;

	if (!take_number(p, end, &pc) || !take_number(p, end, &function) || !take_number(p, end, &file) ||
	    !take_number(p, end, &line))
		return false;
	f->function = (uint32_t)map_get(&g->texts, function);
	f->file = (uint32_t)map_get(&g->texts, file);
	f->line = (uint32_t)line;
	return true;
}

static bool load_stacks(struct trace_generation *g, struct names *names, const uint8_t *p, const uint8_t *end)
{
	struct frame frames[FRAMES_MAX];
	uint64_t id, n;
	uint32_t stack;

	while (p < end) {
		if (*p++ != STACK || !take_number(&p, end, &id) || !take_number(&p, end, &n) || n > FRAMES_MAX)
			return false;
		for (uint64_t i = 0; i < n; i++)
			if (!load_frame(g, &p, end, &frames[i]))
				return false;
		stack = names_stack(names, frames, n);
		if (stack)
			map_put(&g->stacks, id, stack);
	}
	return true;
}

static void add_batch(struct trace_generation *g, const struct head *h, const uint8_t *data)
{
	if (g->batches == g->room) {
		g->room = 2 * g->room + 64;
		g->batch = realloc(g->batch, g->room * sizeof *g->batch);
		if (!g->batch)
			die("out of memory");
	}
	g->batch[g->batches++] = (struct trace_batch){ h->thread, h->time, data, data + h->bytes };
}

/* The batches of one kind: texts before the stacks, which name them. STRINGS, STACKS or
 * 0: all others. */
static bool load_batches(struct trace_generation *g, struct names *names, size_t size, int kind)
{
	const uint8_t *p = g->bytes, *end = p + size;
	bool ok = true;
	struct head h;

	for (; ok && p < end; p += h.bytes) {
		if (!parse_head(p, end, &h) || h.bytes > (uint64_t)(end - p) - h.size)
			return false;
		p += h.size;
		if (h.experimental || h.bytes == 0)
			continue;
		if (kind == STRINGS && h.kind == STRINGS)
			ok = load_texts(g, names, p + 1, p + h.bytes);
		else if (kind == STACKS && h.kind == STACKS)
			ok = load_stacks(g, names, p + 1, p + h.bytes);
		else if (kind == 0 && h.kind == FREQUENCY)
			ok = take_number(&(const uint8_t *){ p + 1 }, p + h.bytes, &g->frequency) && g->frequency > 0;
		else if (kind == 0 && h.kind != STRINGS && h.kind != STACKS && h.kind != CPU_SAMPLES)
			add_batch(g, &h, p);
	}
	return ok;
}

static bool read_bytes(int fd, off_t from, uint8_t *to, size_t n)
{
	while (n > 0) {
		ssize_t r = pread(fd, to, n, from);

		if (r <= 0)
			return false;
		to += r;
		from += r;
		n -= (size_t)r;
	}
	return true;
}

bool trace_generation_load(struct trace_file *f, size_t index, struct names *names,
                           struct trace_generation *g)
{
	const struct trace_extent *e = &f->at[index];
	size_t size = (size_t)(e->to - e->from);

	*g = (struct trace_generation){ .number = e->number };
	g->bytes = alloc(size);
	if (!read_bytes(f->fd, e->from, g->bytes, size))
		return fail(f, "has become shorter meanwhile");
	if (!load_batches(g, names, size, STRINGS) || !load_batches(g, names, size, STACKS) ||
	    !load_batches(g, names, size, 0))
		return fail(f, "generation %llu makes no sense: its tables are broken", (unsigned long long)g->number);
	return true;
}

void trace_generation_free(struct trace_generation *g)
{
	free(g->bytes);
	free(g->batch);
	map_free(&g->texts);
	map_free(&g->stacks);
	*g = (struct trace_generation){ 0 };
}

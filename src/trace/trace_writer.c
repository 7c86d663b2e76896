/*
 * trace_writer.c - a trace's bytes to its file, in the format of Go 1.23.
 *
 * A header, and then for each generation its batches: of events, those of one thread
 * in order; and, when it is over, those with the tables of stacks and strings, and one with
 * the clock's frequency. That comes last: a generation has to have it, so of a file that
 * ends early, as when the process was killed, it is known which ones are whole.
 *
 * Stacks are addresses up to here, and get their names now: functions, files and lines of
 * addresses that were looked up once are kept, since looking one up takes a fraction of a
 * millisecond.
 *
 * By the writer alone, outside of any lock: a write may take long.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "frame.h"
#include "os.h"
#include "trace_impl.h"

/* How often the writer looks up while nobody reads what it writes. */
#define STUCK_LOOK_MS 100

/* ----------------------------------------------------------------- writing */

static bool may_stick;		/* a pipe or a socket, that somebody has to read */
static bool may_block;		/* .. and a write of more than there is room for waits */

/* The trace may fail while nobody reads, and the writer must see that: so it waits in poll, for
 * a limited time, and not in write. When poll says that there is room, there is PIPE_BUF. */
static bool wait_for_room(int fd, size_t *n)
{
	if (may_block && *n > PIPE_BUF)
		*n = PIPE_BUF;
	return poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1, STUCK_LOOK_MS) > 0;
}

/* What the trace is written to. */
static dev_t file_dev;
static ino_t file_ino;

bool trace_file_is(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_dev == file_dev && st.st_ino == file_ino;
}

static void write_all(int fd, const void *data, size_t n)
{
	const char *p = data;

	if (!trace_file_is(fd))
		trace_fail(EBADF);	/* the program has closed it, and may have another there */
	while (n > 0 && !trace_failed()) {
		size_t now = n;
		ssize_t r;

		if (may_stick && !wait_for_room(fd, &now))
			continue;
		r = write(fd, p, now);
		if (r > 0) {
			p += r;
			n -= (size_t)r;
		} else if (r == 0 || (errno != EINTR && errno != EAGAIN)) {
			trace_fail(r == 0 ? EIO : errno);
		}
	}
}

void trace_write_header(int fd)
{
	struct stat st = { 0 };
	bool known = fstat(fd, &st) == 0;

	may_block = !(fcntl(fd, F_GETFL) & O_NONBLOCK);
	may_stick = !known || S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) || !may_block;
	file_dev = st.st_dev;
	file_ino = st.st_ino;
	write_all(fd, "go 1.23 trace\0\0\0", 16);
}

static void write_batch(int fd, uint32_t gen, uint64_t m, int64_t time, const void *data, size_t n)
{
	uint8_t head[1 + 4 * 10], *p = head;

	*p++ = EV_EVENT_BATCH;
	p = trace_put_number(p, gen);
	p = trace_put_number(p, m);
	p = trace_put_number(p, (uint64_t)time);
	p = trace_put_number(p, n);
	write_all(fd, head, (size_t)(p - head));
	write_all(fd, data, n);
}

void trace_write_batches(int fd, struct trace_buf *list)
{
	struct trace_buf *next;

	for (struct trace_buf *b = list; b; b = next) {
		next = b->next;
		if (b->used > 0)
			write_batch(fd, b->gen, b->m, b->first, b->data, b->used);
		trace_buf_free(b);
	}
}

/* A batch of a table's, being put together. */
struct section {
	int fd;
	uint32_t gen;
	enum trace_ev kind;
	size_t used;
	uint8_t data[TRACE_BUF_BYTES];
};

static void section_end(struct section *s)
{
	if (s->used > 0)
		write_batch(s->fd, s->gen, TRACE_NO_THREAD, os_now(), s->data, s->used);
	s->used = 0;
}

/* Where n more bytes go. */
static uint8_t *section_room(struct section *s, size_t n)
{
	if (sizeof s->data - s->used < n)
		section_end(s);
	if (s->used == 0)
		s->data[s->used++] = (uint8_t)s->kind;
	return s->data + s->used;
}

/* ------------------------------------------------------------------- names */

/* What an address is called. */
struct place {
	uintptr_t pc;		/* 0: no place */
	struct frame frame;
	int line;
	const char *function, *file;
};

static struct {
	struct place *at;
	size_t n, slots;	/* a power of two; at most half full */
	char *text, *text_end;	/* room for names */
} places;

static const char *keep(const char *s, size_t n)
{
	const size_t chunk = 256 << 10;
	char *copy;

	if ((size_t)(places.text_end - places.text) < n + 1) {
		places.text = os_map(chunk);
		places.text_end = places.text ? places.text + chunk : NULL;
		if (!places.text)
			return "";
	}
	copy = places.text;
	memcpy(copy, s, n);
	copy[n] = '\0';
	places.text += n + 1;
	return copy;
}

static struct place *slot_of(uintptr_t pc)
{
	size_t i = (size_t)((uint64_t)pc * UINT64_C(0x9e3779b97f4a7c15) >> 32);

	for (;; i++) {
		struct place *p = &places.at[i & (places.slots - 1)];

		if (p->pc == pc || p->pc == 0)
			return p;
	}
}

static bool grow(void)
{
	struct place *old = places.at;
	size_t n = places.slots, to = n ? 2 * n : 4096;
	struct place *at = os_map(to * sizeof *at);

	if (!at)
		return false;
	places.at = at;
	places.slots = to;
	for (size_t i = 0; i < n; i++)
		if (old[i].pc)
			*slot_of(old[i].pc) = old[i];
	if (old)
		os_unmap(old, n * sizeof *old);
	return true;
}

/* What threads begin with: readers name a goroutine by its outermost frame. */
static bool is_thread_beginning(const char *function)
{
	static const char *const names[] = {
		"clone", "clone3", "__clone3", "start_thread", "_start", "__libc_start_main",
		"__libc_start_call_main", "__libc_start_main_impl",
	};

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strcmp(function, names[i]) == 0)
			return true;
	return false;
}

static void look_up(struct place *p, uintptr_t pc)
{
	struct symbol sym = { .function = "" };

	symbol_find(pc, &sym);
	p->pc = pc;
	p->line = sym.line;
	p->frame = frame_of_symbol(pc, &sym);
	p->frame.is_beginning |= is_thread_beginning(sym.function);
	p->function = sym.function[0] ? keep(sym.function, strlen(sym.function)) : "?";
	p->file = sym.file[0] ? keep(sym.file, strlen(sym.file))
	                      : keep(sym.module, strlen(sym.module));
}

static const struct place *place_of(uintptr_t pc)
{
	static const struct place unknown = { .function = "?", .file = "" };
	struct place *p;

	if (2 * places.n >= places.slots && !grow())
		return &unknown;
	p = slot_of(pc);
	if (p->pc == 0) {
		look_up(p, pc);
		places.n++;
	}
	return p;
}

/* ------------------------------------------------------------------ stacks */

static struct frame look(void *unused, uintptr_t address)
{
	(void)unused;
	return place_of(address)->frame;
}

static uint64_t string_of(struct trace_table *strings, const char *s)
{
	size_t n = strlen(s);

	return trace_table_put(strings, s, n < TRACE_STRING_MAX ? n : TRACE_STRING_MAX);
}

static void write_stack(struct section *out, struct trace_table *strings,
                        const struct trace_entry *e)
{
	uintptr_t address[TRACE_FRAMES_MAX];
	struct trace_stack s;
	size_t n = (e->n - offsetof(struct trace_stack, pc)) / sizeof s.pc[0];
	uint8_t *p;

	memcpy(&s, e->data, e->n);
	n = frame_program(s.pc, n, (enum frames)s.from, look, NULL, address);
	p = section_room(out, 1 + 2 * 10 + n * 4 * 10);
	*p++ = EV_STACK;
	p = trace_put_number(p, e->id);
	p = trace_put_number(p, n);
	for (size_t i = 0; i < n; i++) {
		const struct place *place = place_of(address[i]);

		p = trace_put_number(p, address[i]);
		p = trace_put_number(p, string_of(strings, place->function));
		p = trace_put_number(p, string_of(strings, place->file));
		p = trace_put_number(p, (uint64_t)place->line);
	}
	out->used = (size_t)(p - out->data);
}

static void write_string(struct section *out, const struct trace_entry *e)
{
	uint8_t *p = section_room(out, 1 + 2 * 10 + e->n);

	*p++ = EV_STRING;
	p = trace_put_number(p, e->id);
	p = trace_put_number(p, e->n);
	memcpy(p, e->data, e->n);
	out->used = (size_t)(p + e->n - out->data);
}

/* The strings after the stacks, whose names are among them. */
void trace_write_tables(int fd, uint32_t gen)
{
	static struct section out;
	struct trace_table *strings = &trace_strings[gen % 2], *stacks = &trace_stacks[gen % 2];
	uint8_t frequency[1 + 10];

	out.fd = fd;
	out.gen = gen;
	out.kind = EV_STACKS;
	for (const struct trace_entry *e = stacks->newest; e; e = e->made_before)
		write_stack(&out, strings, e);
	section_end(&out);
	out.kind = EV_STRINGS;
	for (const struct trace_entry *e = strings->newest; e; e = e->made_before)
		write_string(&out, e);
	section_end(&out);
	frequency[0] = EV_FREQUENCY;
	write_batch(fd, gen, TRACE_NO_THREAD, os_now(), frequency,
	            (size_t)(trace_put_number(frequency + 1, 1000000000) - frequency));
	trace_table_clear(stacks);
	trace_table_clear(strings);
}

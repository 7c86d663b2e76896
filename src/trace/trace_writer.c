/*
 * trace_writer.c - a trace's bytes to its file, in the format of Go 1.23.
 *
 * The file has a header, and then each generation's batches: first those of events, each
 * thread's in order, then those with the tables of stacks and strings, then one with the
 * clock's frequency. Every generation must have a frequency. Because it comes last, a
 * reader of a file that ends early, as when the process was killed, knows which
 * generations are whole.
 *
 * Stacks are addresses up to here. The writer looks up their functions, files and lines,
 * and keeps what it found, since a lookup is slow.
 *
 * Only the writer runs this, and holds no lock: a write may take long.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "observe/frame.h"
#include "platform/os.h"
#include "platform/sys.h"
#include "trace/trace.h"

/* While the pipe is full, the writer looks this often whether the trace has failed. */
#define STUCK_LOOK_MS 100

/* ----------------------------------------------------------------- writing */

static bool may_stick;		/* a pipe or a socket, which may have no room */
static bool may_block;		/* a write of more than there is room for waits */

/* The trace may fail while nobody reads the pipe, and the writer must see that. So it
 * waits in poll, for a limited time, and not in write. PIPE_BUF bytes fit if any do. */
static bool wait_for_room(int fd, size_t *n)
{
	if (may_block && *n > PIPE_BUF)
		*n = PIPE_BUF;
	return poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1, STUCK_LOOK_MS) > 0;
}

/* The file that the header was written to. */
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
		trace_fail(EBADF);	/* the program closed fd */
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
	/* Not libc's: TSan would report a program that closes the descriptor. */
	bool known = sys4(SYS_newfstatat, fd, "", &st, AT_EMPTY_PATH) == 0;

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
		os_unmap(b, TRACE_BUF_BYTES);
	}
}

/* A batch of a table, while it is put together. */
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

/* Where to write n more bytes. */
static uint8_t *section_room(struct section *s, size_t n)
{
	check(n < sizeof s->data);
	if (sizeof s->data - s->used < n)
		section_end(s);
	if (s->used == 0)
		s->data[s->used++] = (uint8_t)s->kind;
	return s->data + s->used;
}

/* ------------------------------------------------------------------- names */

/* The names of an address. */
struct place {
	struct frame frame;
	int line;
	const char *function, *file;
};

static struct table places = { .extra = sizeof(struct place) };	/* by address */
static struct chunks kept_names;

static const char *keep(const char *s)
{
	size_t bytes = strlen(s) + 1;
	char *copy = chunks_take(&kept_names, bytes, SIZE_MAX);

	return copy ? memcpy(copy, s, bytes) : "";
}

/* Frames that threads begin with are left out: the outermost names a goroutine. */
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
	p->line = sym.line;
	p->frame = frame_of_symbol(pc, &sym);
	p->frame.is_beginning |= is_thread_beginning(sym.function);
	p->function = sym.function[0] ? keep(sym.function) : "?";
	p->file = keep(sym.file[0] ? sym.file : sym.module);
}

static const struct place *place_of(uintptr_t pc)
{
	static const struct place unknown = { .function = "?", .file = "" };
	struct table_entry *e = table_put(&places, &pc, sizeof pc);
	struct place *p = e ? table_data(e) : NULL;

	if (p && !p->function)
		look_up(p, pc);
	return p ? p : &unknown;
}

/* ------------------------------------------------------------------ stacks */

static struct frame look(void *unused, uintptr_t address)
{
	(void)unused;
	return place_of(address)->frame;
}

static void write_stack(struct section *out, struct trace_table *strings,
                        const struct table *stacks, const struct table_entry *e)
{
	uintptr_t address[TRACE_FRAMES_MAX];
	struct trace_stack s;
	size_t n = (e->n - offsetof(struct trace_stack, pc)) / sizeof s.pc[0];
	uint8_t *p;

	memcpy(&s, table_key(stacks, e), e->n);
	n = frame_program(s.pc, n, (enum frames)s.from, look, NULL, address);
	p = section_room(out, 1 + 2 * 10 + n * 4 * 10);
	*p++ = EV_STACK;
	p = trace_put_number(p, e->id);
	p = trace_put_number(p, n);
	for (size_t i = 0; i < n; i++) {
		const struct place *place = place_of(address[i]);

		p = trace_put_number(p, address[i]);
		p = trace_put_number(p, trace_table_string(strings, place->function));
		p = trace_put_number(p, trace_table_string(strings, place->file));
		p = trace_put_number(p, (uint64_t)place->line);
	}
	out->used = (size_t)(p - out->data);
}

static void write_string(struct section *out, const struct table *strings, const struct table_entry *e)
{
	uint8_t *p = section_room(out, 1 + 2 * 10 + e->n);

	*p++ = EV_STRING;
	p = trace_put_number(p, e->id);
	p = trace_put_number(p, e->n);
	memcpy(p, table_key(strings, e), e->n);
	out->used = (size_t)(p + e->n - out->data);
}

/* Strings come after stacks, since writing the stacks adds their names to the strings. */
void trace_write_tables(int fd, uint32_t gen)
{
	static struct section out;
	struct table *strings = &trace_strings[gen % 2].entries;
	struct table *stacks = &trace_stacks[gen % 2].entries;
	uint8_t frequency[1 + 10];

	out.fd = fd;
	out.gen = gen;
	out.kind = EV_STACKS;
	for (const struct table_entry *e = stacks->first; e; e = e->after)
		write_stack(&out, &trace_strings[gen % 2], stacks, e);
	section_end(&out);
	out.kind = EV_STRINGS;
	for (const struct table_entry *e = strings->first; e; e = e->after)
		write_string(&out, strings, e);
	section_end(&out);
	frequency[0] = EV_FREQUENCY;
	write_batch(fd, gen, TRACE_NO_THREAD, os_now(), frequency,
	            (size_t)(trace_put_number(frequency + 1, 1000000000) - frequency));
	table_clear(stacks);
	table_clear(strings);
}

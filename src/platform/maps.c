/*
 * maps.c - the process's mappings, as the kernel lists them
 *
 * /proc/self/maps has a line a mapping, sorted by address:
 *
 *	7f1c00000000-7f1c00028000 r--p 00000000 08:01 12345      /usr/lib/libc.so.6
 *
 * The loader maps a library in several pieces, the one with file offset 0 lowest. So one
 * pass finds the library that holds an address: it remembers the last line with offset 0
 * and stops at the line that holds the address. If both have the same path, the first is
 * the start of the library.
 *
 * Lines are parsed byte by byte from a small buffer, since this runs on signal stacks.
 * stdio would allocate and lock.
 */
#include "platform/maps.h"

#include <errno.h>
#include <string.h>

#include "platform/raw_file.h"

struct stream {
	int fd;
	ssize_t have;
	ssize_t next;
	bool failed;
	char buf[512];
};

/* The next byte, or -1 at the end. */
static int stream_byte(struct stream *s)
{
	if (s->next == s->have) {
		do
			s->have = raw_read(s->fd, s->buf, sizeof(s->buf));
		while (s->have < 0 && errno == EINTR);
		s->next = 0;
		if (s->have <= 0) {
			s->failed |= s->have < 0;
			s->have = 0;
			return -1;
		}
	}
	return (unsigned char)s->buf[s->next++];
}

static int hex_digit(int c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/* Reads a hexadecimal number, whose first byte is c, and the byte after it. */
static uint64_t stream_hex(struct stream *s, int c)
{
	uint64_t value = 0;

	for (int digit; (digit = hex_digit(c)) >= 0; c = stream_byte(s))
		value = value << 4 | (unsigned)digit;
	return value;
}

/* Skips this field and the blanks after it. Returns the first byte of the next, '\n' or
 * -1. */
static int stream_next_field(struct stream *s)
{
	int c;

	do
		c = stream_byte(s);
	while (c != ' ' && c != '\n' && c >= 0);
	while (c == ' ')
		c = stream_byte(s);
	return c;
}

static void stream_path(struct stream *s, int c, char path[MAPS_PATH_MAX])
{
	size_t n = 0;

	for (; c != '\n' && c >= 0; c = stream_byte(s))
		if (n < MAPS_PATH_MAX)
			path[n++] = (char)c;
	/* A path that was cut would name another file. */
	path[n < MAPS_PATH_MAX ? n : 0] = '\0';
}

/* Reads "r-xp" and the blank after it. Returns the byte after that. */
static int stream_permissions(struct stream *s, struct maps_line *line)
{
	int c = stream_byte(s);

	line->executable = line->writable = line->shared = false;
	for (; c != ' ' && c != '\n' && c >= 0; c = stream_byte(s)) {
		line->executable |= c == 'x';
		line->writable |= c == 'w';
		line->shared |= c == 's';
	}
	return stream_byte(s);
}

static bool stream_line(struct stream *s, struct maps_line *line)
{
	line->start = stream_hex(s, stream_byte(s));
	line->end = stream_hex(s, stream_byte(s));
	if (line->end == 0)
		return false;
	line->offset = stream_hex(s, stream_permissions(s, line));
	stream_next_field(s);					/* past the device */
	stream_path(s, stream_next_field(s), line->path);	/* past the inode */
	return true;
}

bool maps_each(bool (*fn)(const struct maps_line *line, void *arg), void *arg)
{
	int saved = errno;
	struct stream s = { .fd = raw_open("/proc/self/maps") };
	struct maps_line line;
	bool any = false;

	if (s.fd >= 0) {
		while (stream_line(&s, &line) && (any = true) && fn(&line, arg))
			;
		raw_close(s.fd);
	}
	errno = saved;
	return any && !s.failed;
}

struct search {
	uintptr_t addr;
	struct maps_file *out;
	bool found;
};

static bool search_line(const struct maps_line *line, void *arg)
{
	struct search *s = arg;

	if (line->offset == 0 && line->path[0]) {
		s->out->base = line->start;
		memcpy(s->out->path, line->path, sizeof(s->out->path));
	}
	if (s->addr >= line->start && s->addr < line->end) {
		s->out->end = line->end;
		s->found = line->path[0] && strcmp(line->path, s->out->path) == 0;
	}
	return s->addr >= line->end;
}

bool maps_find(uintptr_t addr, struct maps_file *out)
{
	struct search s = { .addr = addr, .out = out };

	out->path[0] = '\0';
	maps_each(search_line, &s);
	return s.found;
}

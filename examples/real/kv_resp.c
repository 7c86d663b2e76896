/*
 * kv_resp.c - the Redis protocol, RESP2: reads requests, gathers replies.
 *
 * A request is an array of bulks, or a line of words as one types them:
 *
 *	*2\r\n$3\r\nGET\r\n$4\r\nname\r\n	GET name\r\n
 *
 * The parser is straight code: where it needs more bytes it waits for them (fill), in
 * the middle of whatever it does. A goroutine has a stack; there is no state to be kept
 * between events.
 *
 * Pipelining
 *
 * Replies are gathered, and sent when there is nothing more to read: a client that
 * sends 16 requests at once costs one read and one write. So whoever waits for a reply
 * has it, since nobody waits for more input with replies unsent.
 *
 * What a request may claim
 *
 * A length is believed when the bytes have come: buffers double as they fill up, and
 * what is announced takes no memory. What breaks the protocol is answered as Redis
 * does, and is the connection's last request: nobody knows where the next one would
 * begin.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "kv.h"

#define LINE_BYTES  (64 << 10)		/* bytes of a line */
#define ARGS_MAX    (1 << 20)
#define BULK_MAX    (512 << 20)		/* bytes */
#define REQUEST_MAX (1 << 30)
#define READ_MAX    (64 << 10)		/* bytes read at a time, if so many come */
#define NUMBER_MAX  24			/* characters that a number takes, and \r\n */

/* ----------------------------------------------------------------- buffers */

static void buffer_init(struct buffer *b)
{
	b->at = b->first;
	b->n = 0;
	b->room = sizeof b->first;
}

static void buffer_free(struct buffer *b)
{
	if (b->at != b->first)
		memory_put(MEMORY_BUFFERS, b->at, b->room);
	buffer_init(b);
}

/* Room for n more, in a buffer that is at least twice as large. */
static bool buffer_grow(struct buffer *b, size_t n)
{
	size_t room = b->room;
	char *at;

	while (room - b->n < n)
		room *= 2;
	if (room == b->room)
		return true;
	at = memory_get(MEMORY_BUFFERS, room);
	if (!at)
		return false;
	memcpy(at, b->at, b->n);
	if (b->at != b->first)
		memory_put(MEMORY_BUFFERS, b->at, b->room);
	b->at = at;
	b->room = room;
	return true;
}

/* Forgets what it has, and its room, too, if little of that was needed. */
static void buffer_clear(struct buffer *b)
{
	if (b->at != b->first && b->n < b->room / 4)
		buffer_free(b);
	b->n = 0;
}

void resp_init(struct conn *c, int fd)
{
	c->fd = fd;
	c->closing = c->broken = false;
	c->write_lock = (goro_mutex){ .opaque = { 0 } };
	c->sub = NULL;
	buffer_init(&c->in);
	buffer_init(&c->out);
	c->start = c->at = 0;
	c->argc = 0;
	c->argv_room = ARGS_FIRST;
	c->argv = c->first_argv;
}

static void free_args(struct conn *c)
{
	if (c->argv != c->first_argv)
		memory_put(MEMORY_BUFFERS, c->argv,
		           (size_t)c->argv_room * sizeof *c->argv);
	c->argv = c->first_argv;
	c->argv_room = ARGS_FIRST;
}

void resp_free(struct conn *c)
{
	buffer_free(&c->in);
	buffer_free(&c->out);
	free_args(c);
}

/* ----------------------------------------------------------------- replies */

bool resp_send(struct conn *c)
{
	if (c->out.n > 0 && !c->broken)
		c->broken = goro_write_full(c->fd, c->out.at, c->out.n) < 0;
	buffer_clear(&c->out);
	return !c->broken;
}

bool resp_flush(struct conn *c)
{
	bool sent;

	goro_mutex_lock(&c->write_lock);
	sent = resp_send(c);
	goro_mutex_unlock(&c->write_lock);
	return sent;
}

/* A reply must be there whole before it is sent, since shards are locked while it is
 * made. */
char *reply_room(struct conn *c, size_t n)
{
	struct buffer *b = &c->out;

	if (b->room - b->n < n && !buffer_grow(b, n))
		c->broken = true;
	if (c->broken)
		return NULL;
	b->n += n;
	return b->at + b->n - n;
}

static void put(struct conn *c, const char *at, size_t n)
{
	char *to = reply_room(c, n);

	if (to)
		memcpy(to, at, n);
}

/* A line of a letter and a number: the number's text ends at end. */
static char *put_number(char *end, char kind, int64_t n)
{
	uint64_t left = n < 0 ? -(uint64_t)n : (uint64_t)n;

	*--end = '\n';
	*--end = '\r';
	do
		*--end = (char)('0' + left % 10);
	while ((left /= 10) > 0);
	if (n < 0)
		*--end = '-';
	*--end = kind;
	return end;
}

static void reply_number(struct conn *c, char kind, int64_t n)
{
	char line[NUMBER_MAX], *end = line + sizeof line, *at = put_number(end, kind, n);

	put(c, at, (size_t)(end - at));
}

void reply_int(struct conn *c, int64_t n)
{
	reply_number(c, ':', n);
}

void reply_array(struct conn *c, size_t n)
{
	reply_number(c, '*', (int64_t)n);
}

void reply_move(struct conn *c, size_t from, size_t to)
{
	char moved[128], *at = c->out.at + to;
	size_t n = c->out.n - from;

	memcpy(moved, c->out.at + from, n);
	memmove(at + n, at, from - to);
	memcpy(at, moved, n);
}

void reply_bulk(struct conn *c, const char *at, size_t n)
{
	char line[NUMBER_MAX], *end = line + sizeof line;
	char *head = put_number(end, '$', (int64_t)n);
	size_t head_n = (size_t)(end - head);
	char *to = reply_room(c, head_n + n + 2);

	if (!to)
		return;
	memcpy(to, head, head_n);
	memcpy(to + head_n, at, n);
	memcpy(to + head_n + n, "\r\n", 2);
}

void reply_text(struct conn *c, const char *s)
{
	reply_bulk(c, s, strlen(s));
}

void reply_null(struct conn *c)
{
	put(c, "$-1\r\n", 5);
}

void reply_simple(struct conn *c, const char *line)
{
	size_t n = strlen(line);
	char *to = reply_room(c, n + 3);

	if (!to)
		return;
	to[0] = '+';
	memcpy(to + 1, line, n);
	memcpy(to + 1 + n, "\r\n", 2);
}

/* What a client sent may be in it: it must not end the line. */
void reply_error(struct conn *c, const char *fmt, ...)
{
	char line[256] = "-";
	va_list args;

	va_start(args, fmt);
	vsnprintf(line + 1, sizeof line - 1, fmt, args);
	va_end(args);
	for (char *at = line; (at = strpbrk(at, "\r\n")); )
		*at = ' ';
	put(c, line, strlen(line));
	put(c, "\r\n", 2);
}

/* ------------------------------------------------------------------- input */

/* Answers what cannot be gone on with. */
static bool refuse(struct conn *c, const char *why)
{
	reply_error(c, "ERR %s", why);
	c->closing = true;
	return false;
}

/* What was used makes room, if it is much; the buffer doubles otherwise. */
static bool make_room(struct conn *c)
{
	struct buffer *b = &c->in;

	if (b->n < b->room)
		return true;
	if (c->start >= b->room / 2) {
		b->n -= c->start;
		c->at -= c->start;
		memmove(b->at, b->at + c->start, b->n);
		c->start = 0;
		return true;
	}
	if (b->n - c->start >= REQUEST_MAX)
		return refuse(c, "Protocol error: too big request");
	return buffer_grow(b, 1) || refuse(c, "no memory for this request");
}

/* Waits for more bytes. What was answered so far is sent first. */
static bool fill(struct conn *c)
{
	ssize_t n;

	if (!make_room(c) || !resp_flush(c))
		return false;
	n = goro_read(c->fd, c->in.at + c->in.n, c->in.room - c->in.n);
	if (n <= 0)
		return false;
	c->in.n += (size_t)n;
	/* There may be more: next time it is read by fewer calls. */
	if (c->in.n == c->in.room && c->in.room < READ_MAX)
		buffer_grow(&c->in, 1);
	return true;
}

/* A line, without its end; valid until the next fill. */
static bool read_line(struct conn *c, struct text *line, const char *too_long)
{
	size_t seen = 0;

	for (;;) {
		char *start = c->in.at + c->at;
		size_t there = c->in.n - c->at;
		char *end = memchr(start + seen, '\n', there - seen);

		if (end) {
			c->at += (size_t)(end - start) + 1;
			line->at = start;
			line->n = (size_t)(end - start);
			line->n -= line->n > 0 && end[-1] == '\r';
			return true;
		}
		if (there > LINE_BYTES)
			return refuse(c, too_long);
		seen = there;
		if (!fill(c))
			return false;
	}
}

/* The number in a line that begins with a letter: "*2", "$4". */
static bool line_number(struct text line, int64_t max, int64_t *n)
{
	struct text digits = { .at = line.at + 1, .n = line.n - 1 };

	return text_int(digits, n) && *n <= max;
}

static bool add_arg(struct conn *c, size_t offset, size_t n)
{
	struct text *argv = c->argv;
	int room = c->argv_room;

	if (c->argc == room) {
		size_t old = (size_t)room * sizeof *argv;

		argv = memory_get(MEMORY_BUFFERS, 2 * old);
		if (!argv)
			return refuse(c, "no memory for this request");
		memcpy(argv, c->argv, old);
		free_args(c);
		c->argv = argv;
		c->argv_room = 2 * room;
	}
	argv[c->argc++] = (struct text){ .n = n, .offset = offset };
	return true;
}

static bool read_bulk(struct conn *c)
{
	struct text line;
	int64_t n;

	if (!read_line(c, &line, "Protocol error: too big bulk count string"))
		return false;
	if (line.n == 0 || line.at[0] != '$') {
		char why[] = "Protocol error: expected '$', got '?'";

		why[sizeof why - 3] = line.n == 0 ? ' ' : line.at[0];
		return refuse(c, why);
	}
	if (!line_number(line, BULK_MAX, &n) || n < 0)
		return refuse(c, "Protocol error: invalid bulk length");
	while (c->in.n - c->at < (size_t)n + 2)
		if (!fill(c))
			return false;
	if (memcmp(c->in.at + c->at + n, "\r\n", 2) != 0)
		return refuse(c, "Protocol error: bulk of another length");
	c->at += (size_t)n + 2;
	return add_arg(c, c->at - c->start - (size_t)n - 2, (size_t)n);
}

static bool read_array(struct conn *c, struct text line)
{
	int64_t n;

	if (!line_number(line, ARGS_MAX, &n))
		return refuse(c, "Protocol error: invalid multibulk length");
	while (n-- > 0)
		if (!read_bulk(c))
			return false;
	return true;
}

/* ---------------------------------------------------- a line, typed by hand */

static int hex(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	digit |= 0x20;
	return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/* The character that begins at *at, in double quotes, where a backslash has a meaning. */
static char unescape(const char **at, const char *end)
{
	static const char from[] = "nrtba", to[] = "\n\r\t\b\a";
	const char *p = *at, *found;

	if (p[0] != '\\' || end - p < 2) {
		*at = p + 1;
		return p[0];
	}
	if (p[1] == 'x' && end - p >= 4 && hex(p[2]) >= 0 && hex(p[3]) >= 0) {
		*at = p + 4;
		return (char)(hex(p[2]) << 4 | hex(p[3]));
	}
	*at = p + 2;
	found = memchr(from, p[1], sizeof from - 1);
	return found ? to[found - from] : p[1];
}

static bool is_space(char ch)
{
	return ch == ' ' || (ch >= '\t' && ch <= '\r');
}

/* Takes the word that begins at *at, to the place where it stands: it does not become
 * longer. Its length, or -1: a quote is missing, or something follows it. */
static ssize_t unquote(const char **at, const char *end, char *to)
{
	const char *p = *at;
	char *start = to;

	while (p < end && !is_space(*p)) {
		char quote = *p;

		if (quote != '"' && quote != '\'') {
			*to++ = *p++;
			continue;
		}
		for (p++; p < end && *p != quote; ) {
			bool quoted = end - p >= 2 && p[0] == '\\' && p[1] == '\'';

			if (quote == '"') {
				*to++ = unescape(&p, end);
			} else {
				p += quoted;
				*to++ = *p++;
			}
		}
		if (p == end || (++p < end && !is_space(*p)))
			return -1;
	}
	*at = p;
	return to - start;
}

static bool split_line(struct conn *c, struct text line)
{
	const char *at = line.at, *end = at + line.n;

	for (;;) {
		char *start;
		ssize_t n;

		while (at < end && is_space(*at))
			at++;
		if (at == end)
			return true;
		start = line.at + (at - line.at);
		n = unquote(&at, end, start);
		if (n < 0)
			return refuse(c, "Protocol error: unbalanced quotes in request");
		if (!add_arg(c, (size_t)(start - c->in.at) - c->start, (size_t)n))
			return false;
	}
}

/* A web page can make its reader's browser send these here, with commands behind them. */
static bool is_http(const struct conn *c)
{
	struct text name = c->argv[0];

	name.at = c->in.at + c->start + name.offset;
	return text_is(name, "post") || text_is(name, "host:");
}

static bool read_typed(struct conn *c, struct text line)
{
	return split_line(c, line) && (c->argc == 0 || !is_http(c));
}

/* ---------------------------------------------------------------- requests */

static bool read_request(struct conn *c)
{
	struct text line;

	if (!read_line(c, &line, "Protocol error: too big inline request"))
		return false;
	if (line.n > 0 && line.at[0] == '*')
		return read_array(c, line);
	return read_typed(c, line);
}

bool resp_read(struct conn *c)
{
	do {
		if (c->at == c->in.n) {
			buffer_clear(&c->in);
			c->at = 0;
		}
		c->start = c->at;
		c->argc = 0;
		if (c->argv_room > ARGS_FIRST)
			free_args(c);
		if (!read_request(c))
			return false;
	} while (c->argc == 0);		/* an empty line, or an empty array */

	for (int i = 0; i < c->argc; i++)
		c->argv[i].at = c->in.at + c->start + c->argv[i].offset;
	return true;
}

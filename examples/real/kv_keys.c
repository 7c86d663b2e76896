/*
 * kv_keys.c - commands on keys, whatever they hold.
 */
#include "kv.h"

COMMAND(del)
{
	int64_t n = 0;

	for (int i = 1; i < c->argc; i++)
		n += store_remove(&c->argv[i]);
	reply_int(c, n);
}

COMMAND(exists)
{
	int64_t n = 0;

	for (int i = 1; i < c->argc; i++)
		n += store_find(&c->argv[i]) != NULL;
	reply_int(c, n);
}

COMMAND(type)
{
	struct entry *e = store_find(&c->argv[1]);

	reply_simple(c, !e ? "none" : e->type == TYPE_LIST ? "list" : "string");
}

/* A time that is over removes the key. */
static void expire(struct conn *c, int64_t unit)
{
	struct entry *e = store_find(&c->argv[1]);
	int64_t when;

	if (!command_time(c, 2, unit, &when))
		return;
	if (e)
		store_expire(e, when);
	reply_int(c, e != NULL);
}

COMMAND(expire)
{
	expire(c, GORO_SECOND);
}

COMMAND(pexpire)
{
	expire(c, GORO_MILLISECOND);
}

static void time_left(struct conn *c, int64_t unit)
{
	struct entry *e = store_find(&c->argv[1]);

	if (!e)
		reply_int(c, -2);
	else if (e->expires == GORO_FOREVER)
		reply_int(c, -1);
	else
		reply_int(c, (e->expires - goro_now() + unit / 2) / unit);
}

COMMAND(ttl)
{
	time_left(c, GORO_SECOND);
}

COMMAND(pttl)
{
	time_left(c, GORO_MILLISECOND);
}

COMMAND(persist)
{
	struct entry *e = store_find(&c->argv[1]);
	bool expires = e && e->expires != GORO_FOREVER;

	if (expires)
		store_expire(e, GORO_FOREVER);
	reply_int(c, expires);
}

COMMAND(dbsize)
{
	reply_int(c, (int64_t)store_count());
}

COMMAND(flushall)
{
	store_clear();
	reply_simple(c, "OK");
}

/* ------------------------------------------------------------ all the keys */

struct wanted {
	struct conn *c;
	struct text pattern;
	size_t n;			/* found */
};

static void list_key(struct entry *e, void *arg)
{
	struct wanted *w = arg;

	if (!text_matches((struct text){ .at = e->key, .n = e->key_n }, w->pattern))
		return;
	reply_bulk(w->c, e->key, e->key_n);
	w->n++;
}

COMMAND(keys)
{
	struct wanted w = { .c = c, .pattern = c->argv[1] };
	size_t keys = c->out.n, head;

	store_walk(0, SIZE_MAX, list_key, &w);
	head = c->out.n;
	reply_array(c, w.n);
	reply_move(c, head, keys);
}

static bool scan_options(struct conn *c, struct text *pattern, int64_t *count)
{
	for (int i = 2; i < c->argc; i += 2) {
		bool is_count = text_is(c->argv[i], "count");

		if (i + 1 == c->argc || (!is_count && !text_is(c->argv[i], "match"))) {
			reply_syntax_error(c);
			return false;
		}
		if (!is_count)
			*pattern = c->argv[i + 1];
		else if (!command_int(c, i + 1, count))
			return false;
	}
	if (*count < 1)
		reply_syntax_error(c);
	return *count >= 1;
}

/* The cursor is a place in the table (store_walk), so none is kept for a client.
 * Places are even: half of one is a number that all clients can read. */
COMMAND(scan)
{
	struct wanted w = { .c = c, .pattern = { .at = "*", .n = 1 } };
	size_t keys = c->out.n, head;
	int64_t cursor, count = 10;
	uint64_t place;
	char digits[24];

	if (!text_int(c->argv[1], &cursor) || cursor < 0) {
		reply_error(c, "ERR invalid cursor");
		return;
	}
	if (!scan_options(c, &w.pattern, &count))
		return;
	place = store_walk((uint64_t)cursor << 1, (size_t)count, list_key, &w);
	snprintf(digits, sizeof digits, "%llu", (unsigned long long)place >> 1);
	head = c->out.n;
	reply_array(c, 2);
	reply_text(c, digits);
	reply_array(c, w.n);
	reply_move(c, head, keys);
}

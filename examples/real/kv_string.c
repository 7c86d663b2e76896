/*
 * kv_string.c - commands on strings. A number is a string, too, that reads as one.
 */
#include <string.h>

#include "kv.h"

#define STRING_MAX (512 << 20)		/* bytes */

/* What SET was asked for behind the value. */
struct options {
	int64_t expires;
	bool if_absent, if_present, keep_expiry;
};

static bool read_expiry(struct conn *c, int arg, bool seconds, int64_t *expires)
{
	int64_t unit = seconds ? GORO_SECOND : GORO_MILLISECOND;

	if (!command_time(c, arg, unit, expires))
		return false;
	if (*expires > goro_now())
		return true;
	reply_error(c, "ERR invalid expire time in 'set' command");
	return false;
}

static bool options_read(struct conn *c, struct options *o)
{
	bool timed = false;

	*o = (struct options){ .expires = GORO_FOREVER };
	for (int i = 3; i < c->argc; i++) {
		struct text word = c->argv[i];
		bool seconds = text_is(word, "ex");

		if (text_is(word, "nx")) {
			o->if_absent = true;
		} else if (text_is(word, "xx")) {
			o->if_present = true;
		} else if (text_is(word, "keepttl")) {
			o->keep_expiry = true;
		} else if ((seconds || text_is(word, "px")) && !timed &&
			   i + 1 < c->argc) {
			timed = true;
			if (!read_expiry(c, ++i, seconds, &o->expires))
				return false;
		} else {
			reply_syntax_error(c);
			return false;
		}
	}
	if ((o->if_absent && o->if_present) || (o->keep_expiry && timed)) {
		reply_syntax_error(c);
		return false;
	}
	return true;
}

/* Sets a key, whatever it was; NULL: no memory, and it is what it was, or not there. */
static struct entry *set(const struct text *key, const char *at, size_t n)
{
	struct entry *e = store_find(key);

	if (e && e->type != TYPE_STRING) {
		store_remove(key);
		e = NULL;
	}
	if (e)
		return string_set(&e->string, at, n) ? e : NULL;
	e = store_add(key, TYPE_STRING);
	if (e && !string_set(&e->string, at, n)) {
		store_remove(key);
		return NULL;
	}
	return e;
}

COMMAND(set)
{
	const struct text *key = &c->argv[1], *value = &c->argv[2];
	struct options o = { .expires = GORO_FOREVER };
	struct entry *e;

	if (c->argc > 3) {
		bool there = store_find(key);

		if (!options_read(c, &o))
			return;
		if ((o.if_absent && there) || (o.if_present && !there)) {
			reply_null(c);
			return;
		}
	}
	e = set(key, value->at, value->n);
	if (!e) {
		reply_no_memory(c);
		return;
	}
	if (!o.keep_expiry)
		store_expire(e, o.expires);
	reply_simple(c, "OK");
}

COMMAND(get)
{
	struct entry *e;

	if (!command_find(c, TYPE_STRING, &e))
		return;
	if (e)
		reply_bulk(c, e->string.at, e->string.n);
	else
		reply_null(c);
}

COMMAND(mget)
{
	reply_array(c, (size_t)c->argc - 1);
	for (int i = 1; i < c->argc; i++) {
		struct entry *e = store_find(&c->argv[i]);

		if (e && e->type == TYPE_STRING)
			reply_bulk(c, e->string.at, e->string.n);
		else
			reply_null(c);
	}
}

/* Where malloc fails in the middle the first keys are set. That memory is not at its
 * limit was checked before. */
COMMAND(mset)
{
	if (c->argc % 2 == 0) {
		reply_error(c, "ERR wrong number of arguments for 'mset' command");
		return;
	}
	for (int i = 1; i < c->argc; i += 2) {
		struct entry *e = set(&c->argv[i], c->argv[i + 1].at, c->argv[i + 1].n);

		if (!e) {
			reply_no_memory(c);
			return;
		}
		store_expire(e, GORO_FOREVER);
	}
	reply_simple(c, "OK");
}

static void add(struct conn *c, int64_t n)
{
	struct entry *e;
	int64_t sum = 0;
	char digits[24];
	int length;

	if (!command_find(c, TYPE_STRING, &e))
		return;
	if (e && !text_int((struct text){ .at = e->string.at, .n = e->string.n }, &sum)) {
		reply_error(c, "ERR value is not an integer or out of range");
		return;
	}
	if (__builtin_add_overflow(sum, n, &sum)) {
		reply_error(c, "ERR increment or decrement would overflow");
		return;
	}
	length = snprintf(digits, sizeof digits, "%lld", (long long)sum);
	if (set(&c->argv[1], digits, (size_t)length))
		reply_int(c, sum);
	else
		reply_no_memory(c);
}

COMMAND(incr)
{
	add(c, 1);
}

COMMAND(decr)
{
	add(c, -1);
}

COMMAND(incrby)
{
	int64_t n;

	if (command_int(c, 2, &n))
		add(c, n);
}

COMMAND(decrby)
{
	int64_t n;

	if (!command_int(c, 2, &n))
		return;
	if (n == INT64_MIN)
		reply_error(c, "ERR decrement would overflow");
	else
		add(c, -n);
}

COMMAND(append)
{
	const struct text *more = &c->argv[2];
	struct entry *e;

	if (!command_find(c, TYPE_STRING, &e))
		return;
	if (e && e->string.n + more->n > STRING_MAX) {
		reply_error(c, "ERR string exceeds maximum allowed size");
		return;
	}
	if (!e)
		e = set(&c->argv[1], more->at, more->n);
	else if (!string_append(&e->string, more->at, more->n))
		e = NULL;
	if (e)
		reply_int(c, (int64_t)e->string.n);
	else
		reply_no_memory(c);
}

COMMAND(strlen)
{
	struct entry *e;

	if (command_find(c, TYPE_STRING, &e))
		reply_int(c, e ? (int64_t)e->string.n : 0);
}

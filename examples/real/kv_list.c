/*
 * kv_list.c - commands on lists. A list that becomes empty is removed.
 */
#include "kv.h"

/* All of the words, or none of them. */
static void push(struct conn *c, bool left)
{
	struct entry *e;
	int i = 2;

	if (!command_find(c, TYPE_LIST, &e))
		return;
	if (!e)
		e = store_add(&c->argv[1], TYPE_LIST);
	while (e && i < c->argc && list_push(&e->list, left, c->argv[i].at, c->argv[i].n))
		i++;
	if (e && i == c->argc) {
		reply_int(c, (int64_t)e->list.n);
		return;
	}
	while (e && i-- > 2)
		list_pop(&e->list, left);
	if (e && e->list.n == 0)
		store_remove(&c->argv[1]);
	reply_no_memory(c);
}

COMMAND(lpush)
{
	push(c, true);
}

COMMAND(rpush)
{
	push(c, false);
}

static void pop(struct conn *c, bool left)
{
	struct string *s;
	struct entry *e;

	if (!command_find(c, TYPE_LIST, &e))
		return;
	if (!e) {
		reply_null(c);
		return;
	}
	s = list_at(&e->list, left ? 0 : e->list.n - 1);
	reply_bulk(c, s->at, s->n);
	list_pop(&e->list, left);
	if (e->list.n == 0)
		store_remove(&c->argv[1]);
}

COMMAND(lpop)
{
	pop(c, true);
}

COMMAND(rpop)
{
	pop(c, false);
}

COMMAND(llen)
{
	struct entry *e;

	if (command_find(c, TYPE_LIST, &e))
		reply_int(c, e ? (int64_t)e->list.n : 0);
}

/* From an index to another, which is in it, too; negative ones count from the end. */
COMMAND(lrange)
{
	int64_t from, to, n;
	struct entry *e;

	if (!command_int(c, 2, &from) || !command_int(c, 3, &to) ||
	    !command_find(c, TYPE_LIST, &e))
		return;
	n = e ? (int64_t)e->list.n : 0;
	from += from < 0 ? n : 0;
	to += to < 0 ? n : 0;
	from = from < 0 ? 0 : from;
	to = to >= n ? n - 1 : to;
	reply_array(c, from <= to ? (size_t)(to - from + 1) : 0);
	for (; from <= to; from++) {
		struct string *s = list_at(&e->list, (size_t)from);

		reply_bulk(c, s->at, s->n);
	}
}

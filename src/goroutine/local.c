/*
 * local.c - goroutine-local storage: a short list of (key, value) for each goroutine.
 *
 * Few goroutines use it, and these have a handful of values. So a list in the order of
 * last use is both the smallest and the quickest. It is the goroutine's own, and nothing
 * is locked.
 *
 * Destructors run when the goroutine ends, after its defers, as those of pthread keys do:
 * in no particular order, for values that are not NULL, and again for values that a
 * destructor sets, up to DESTRUCTOR_ROUNDS times.
 */

#include <goro.h>
#include <stdlib.h>

#include "sched/cxx.h"
#include "sched/g.h"
#include "sched/runtime.h"

struct goro_key {
	void (*destroy)(void *value);
};

struct local_slot {
	struct local_slot *next;
	goro_key *key;
	void *value;
};

/* As PTHREAD_DESTRUCTOR_ITERATIONS. */
#define DESTRUCTOR_ROUNDS 4

goro_key *goro_key_make(void (*destroy)(void *value))
{
	goro_key *key = malloc(sizeof *key);

	if (key)
		key->destroy = destroy;
	return key;
}

static struct local_slot *find(struct local_slot **head, goro_key *key)
{
	for (struct local_slot **at = head, *s; (s = *at); at = &s->next)
		if (s->key == key) {
			*at = s->next;
			s->next = *head;
			*head = s;
			return s;
		}
	return NULL;
}

void goro_local_set(goro_key *key, void *value)
{
	struct local_slot **head = &rt_g()->locals;
	struct local_slot *s = find(head, key);

	if (unlikely(!key))
		goro_panic("nil key");
	if (!s) {
		if (!value)
			return;
		s = malloc(sizeof *s);
		if (!s)
			goro_panic("runtime error: out of memory");
		s->key = key;
		store_relaxed(&m_self()->curg->untidy, true);
		s->next = *head;
		*head = s;
	}
	s->value = value;
}

void *goro_local_get(goro_key *key)
{
	struct local_slot *s = find(&rt_g()->locals, key);

	return s ? s->value : NULL;
}

/* Runs the destructors. What the last round has left is freed without. */
static void locals_end(struct g *gp)
{
	CXX_PERSONALITY(cxx_no_way_out);
	for (int round = 0; gp->locals; round++) {
		struct local_slot *s = gp->locals, *next;

		gp->locals = NULL;
		for (; s; s = next) {
			next = s->next;
			if (s->value && s->key->destroy && round < DESTRUCTOR_ROUNDS)
				s->key->destroy(s->value);
			free(s);
		}
	}
}
G_END(G_END_LOCALS, locals_end);

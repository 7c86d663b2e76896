/*
 * local.c - goroutine-local storage: a short list of (key, value) a goroutine.
 *
 * Few goroutines use it and those that do have a handful of values, so a list
 * in the order of last use is both the smallest and the quickest. It is private
 * to the goroutine, so nothing here locks; memory comes from malloc, in state
 * USER, where that is allowed.
 *
 * Destructors run when the goroutine ends, after its defers, as those of
 * pthread keys do when a thread ends: in no particular order, for values that
 * are not NULL, and again while destructors set new values, a few times.
 */
#include "local.h"

#include <goro.h>
#include <stdlib.h>

#include "cxx.h"
#include "runtime.h"

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

/* The calling goroutine's list; a plain thread has one too. */
static struct local_slot **my_locals(void)
{
	struct m *mp = m_self();

	if (!mp) {
		mp = rt_enter();
		rt_exit(mp);
	}
	return &mp->curg->locals;
}

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
	struct local_slot **head = my_locals();
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
	struct local_slot *s = find(my_locals(), key);

	return s ? s->value : NULL;
}

void g_locals_end(struct g *gp)
{
	CXX_PERSONALITY(cxx_no_way_out);
	for (int round = 0; gp->locals && round < DESTRUCTOR_ROUNDS; round++) {
		struct local_slot *s = gp->locals;

		gp->locals = NULL;
		while (s) {
			struct local_slot *next = s->next;

			if (s->value && s->key->destroy)
				s->key->destroy(s->value);
			free(s);
			s = next;
		}
	}
	while (gp->locals) {
		struct local_slot *s = gp->locals;

		gp->locals = s->next;
		free(s);
	}
}

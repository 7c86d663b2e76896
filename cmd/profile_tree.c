/*
 * profile_tree.c - the tree of calls, and the functions of a profile.
 *
 * A sample goes down the tree from its outermost frame to its innermost. Frames of one
 * function are one, whatever their lines are.
 */
#include "profile_tree.h"

#include <stdlib.h>
#include <string.h>

#include "cmd.h"

static void *room_for_one(void *at, size_t n, size_t *room, size_t size)
{
	if (n < *room)
		return at;
	*room = 2 * n + 64;
	at = realloc(at, *room * size);
	if (!at)
		die("out of memory");
	return at;
}

static size_t child_of(struct tree *t, size_t parent, const struct frame *f)
{
	uint64_t key = (uint64_t)parent << 32 | f->function;
	size_t at = map_get(&t->node_of, key);

	if (at)
		return at;
	t->node = room_for_one(t->node, t->nodes, &t->nodes_room, sizeof *t->node);
	at = t->nodes++;
	t->node[at] = (struct node){ .function = f->function, .file = f->file, .parent = (uint32_t)parent,
	                             .next = t->node[parent].child };
	t->node[parent].child = (uint32_t)at;
	map_put(&t->node_of, key, at);
	return at;
}

static struct function_sum *function_of(struct tree *t, const struct frame *f)
{
	size_t at = map_get(&t->function_of, f->function);

	if (at)
		return &t->function[at - 1];
	t->function = room_for_one(t->function, t->functions, &t->functions_room, sizeof *t->function);
	t->function[t->functions++] = (struct function_sum){ .function = f->function, .file = f->file };
	map_put(&t->function_of, f->function, t->functions);
	return &t->function[t->functions - 1];
}

/* number: the sample's, from 1. */
static void add_sample(struct tree *t, const struct profile_sample *s, uint32_t number)
{
	size_t n, at = 0;
	const struct frame *frame = frames_of(t->profile->names, s->stack, &n);

	t->sum = sum_of(t->sum, s->value);
	t->node[0].all = t->sum;
	while (n-- > 0) {
		struct function_sum *f = function_of(t, &frame[n]);

		if (at == 0 || !t->is_folded || t->node[at].function != f->function)
			at = child_of(t, at, &frame[n]);
		if (t->node[at].seen != number)
			t->node[at].all = sum_of(t->node[at].all, s->value);
		t->node[at].seen = number;
		if (f->seen != number)
			f->all = sum_of(f->all, s->value);
		f->seen = number;
		if (n == 0)
			f->flat = sum_of(f->flat, s->value);
	}
	t->node[at].flat = sum_of(t->node[at].flat, s->value);
}

/* -------------------------------------------------------------------- order */

static const struct tree *sorted;

/* Equals are in the order of their names, so that a profile is always shown in one
 * way. */
static int by_name(uint32_t a, uint32_t b)
{
	return strcmp(text_of(sorted->profile->names, a), text_of(sorted->profile->names, b));
}

static int by_flat(const void *a, const void *b)
{
	const struct function_sum *x = a, *y = b;

	if (x->flat != y->flat)
		return x->flat < y->flat ? 1 : -1;
	if (x->all != y->all)
		return x->all < y->all ? 1 : -1;
	return by_name(x->function, y->function);
}

/* The smallest first: each is then put in front of its siblings. */
static int by_all(const void *a, const void *b)
{
	const struct node *x = &sorted->node[*(const uint32_t *)a], *y = &sorted->node[*(const uint32_t *)b];

	if (x->all != y->all)
		return x->all > y->all ? 1 : -1;
	return by_name(y->function, x->function);
}

static void order_children(struct tree *t)
{
	uint32_t *order = alloc(t->nodes * sizeof *order);

	for (size_t i = 0; i < t->nodes; i++) {
		order[i] = (uint32_t)i;
		t->node[i].child = 0;
	}
	qsort(order + 1, t->nodes - 1, sizeof *order, by_all);
	for (size_t i = 1; i < t->nodes; i++) {
		struct node *node = &t->node[order[i]], *parent = &t->node[node->parent];

		node->next = parent->child;
		parent->child = order[i];
	}
	free(order);
}

void tree_make(struct tree *t, const struct profile *p, bool is_folded)
{
	*t = (struct tree){ .profile = p, .is_folded = is_folded };
	t->node = room_for_one(NULL, 0, &t->nodes_room, sizeof *t->node);
	t->node[0] = (struct node){ 0 };
	t->nodes = 1;
	for (size_t i = 0; i < p->samples; i++)
		add_sample(t, &p->sample[i], (uint32_t)i + 1);
	sorted = t;
	order_children(t);
	if (t->functions > 0)
		qsort(t->function, t->functions, sizeof *t->function, by_flat);
}

void tree_free(struct tree *t)
{
	free(t->node);
	free(t->function);
	map_free(&t->node_of);
	map_free(&t->function_of);
}

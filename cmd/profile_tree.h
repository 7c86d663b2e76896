/*
 * profile_tree.h - the tree of calls, and the functions of a profile. Defined in
 * profile_tree.c.
 */
#ifndef GORO_CMD_PROFILE_TREE_H
#define GORO_CMD_PROFILE_TREE_H

#include "map.h"
#include "profile_read.h"

/* A function at one place of the tree: called by its parent. Node 0 is the root, which
 * stands for the whole program. A child lies behind its parent. */
struct node {
	uint32_t function, file;	/* texts */
	/* the first child, its next sibling: the larger comes first */
	uint32_t parent, child, next;
	int64_t flat, all;		/* itself; with those that it called */
	uint32_t seen;			/* the last sample that had it */
};

/* A function, wherever it was called. */
struct function_sum {
	uint32_t function, file;
	/* all: once for a sample, also where it calls itself */
	int64_t flat, all;
	uint32_t seen;			/* the last sample that had it */
};

struct tree {
	const struct profile *profile;
	bool is_folded;			/* a function that calls itself is one node */
	struct node *node;
	size_t nodes, nodes_room;
	struct function_sum *function;	/* the largest flat first */
	size_t functions, functions_room;
	int64_t sum;
	struct map node_of, function_of;
};

void tree_make(struct tree *t, const struct profile *p, bool is_folded);
void tree_free(struct tree *t);

#endif

/*
 * explain_steps.h - a trace as steps that can be told, one after the other. Defined in
 * explain_steps.c; their words are in explain_words.c.
 */
#ifndef GORO_CMD_EXPLAIN_STEPS_H
#define GORO_CMD_EXPLAIN_STEPS_H

#include "trace_model.h"

enum step_kind {
	STEP_CREATE, STEP_START, STEP_BLOCK, STEP_STOP, STEP_UNBLOCK, STEP_END,
	STEP_CALL, STEP_CALL_END, STEP_CALL_END_BLOCKED,
	STEP_P_START, STEP_P_STOP, STEP_P_STEAL,
	STEP_SEEN,		/* a goroutine or a P that was there before: not told */
};

#define NO_P P_OUTSIDE		/* plain threads, and the global queue */

struct step {
	enum step_kind kind;
	int64_t time;
	uint64_t p, m;		/* where; TRACE_NONE */
	uint64_t g;		/* whom it is about */
	uint64_t by;		/* the goroutine that did it, or 0 */
	uint32_t why;		/* a text */
	enum g_state state;	/* STEP_SEEN */
	bool is_call;		/* STEP_CALL: it is one; else its thread gets no CPU */
};

/* A goroutine at one moment. */
struct being {
	uint64_t id;
	enum g_state state;
	/* running, or in a call: has it. Ready: in its queue; NO_P */
	uint64_t p;
	uint64_t m;		/* running, in a call, or preempted: its thread */
	uint32_t why;
	int64_t since;
	bool is_preempted, is_call;
	uint64_t order;		/* in a queue */
};

/* All of it at one moment. */
struct world {
	struct being *being;	/* in order of their ids: those that live */
	size_t beings, room;
	struct map at;		/* a goroutine: its index + 1 */
	uint64_t m_of[64];	/* by P: its thread, or TRACE_NONE */
	uint64_t order, ended;
};

struct steps {
	struct names *names;
	struct step *at;
	size_t n, room;
	struct world first;	/* before the first step */
	struct map name_of;	/* a goroutine: its text */
	uint64_t procs;
	bool is_cut;		/* there were more */
};

#define STEPS_MAX 2000
#define PS_SHOWN  64

/* Reads the part of the trace to show. */
bool steps_read(struct steps *s, struct trace_model *t);
void steps_free(struct steps *s);

void world_copy(struct world *to, const struct world *from);
void world_apply(struct world *w, const struct step *s);
void world_free(struct world *w);
const struct being *world_find(const struct world *w, uint64_t g);	/* NULL: none */

/* When it was, after the first step: to be freed. */
char *step_time(const struct steps *s, const struct step *step);
/* "G3 worker", to be freed. */
char *step_who(const struct steps *s, uint64_t g);
/* What step i was, and why: w is how it was before it. To be freed. */
char *step_words(const struct steps *s, size_t i, const struct world *w);

#endif

/*
 * dump.h - goroutines printed in Go's layout. Defined in dump.c.
 */
#ifndef GORO_DUMP_H
#define GORO_DUMP_H

#include "backtrace.h"
#include "print.h"

struct g;
struct note_chunk;

/* "goroutine 7 [chan receive, 5 minutes]:" and the frames below it. */
void dump_goroutine(struct printer *pr, const struct g *gp, const struct backtrace *bt);

/* All frames, the runtime's too. */
void dump_frames(struct printer *pr, const struct backtrace *bt);

/* How much a fatal end prints: GORO_TRACEBACK, as GOTRACEBACK. */
enum dump_level { DUMP_NONE, DUMP_SINGLE, DUMP_ALL };
extern enum dump_level dump_level;
void dump_init(void);

/* All goroutines, that of the caller first, without stopping anybody first or
 * taking a lock: for fatal ends, from handlers too. bt is the caller's. */
void dump_all_unstopped(struct printer *pr, const struct g *self, const struct backtrace *bt);

/* Goroutines noted while the world is stopped, and printed, and forgotten, when it
 * goes on. Those for which there is no memory are left out. */
struct dump_list {
	struct note_chunk *first, *last;
};
void dump_note(struct dump_list *l, const struct g *gp);
/* Those of all goroutines. World stopped. */
void dump_note_those(struct dump_list *l, bool (*is_one)(const void *arg, const struct g *gp),
                     const void *arg);
void dump_print(struct dump_list *l, FILE *out);	/* in user code */

/* What a fatal end that is gp's fault prints of goroutines: gp or all of them, as
 * GORO_TRACEBACK says. Flushes. */
void dump_culprit(struct printer *pr, const struct g *gp, const struct backtrace *bt);

/* Ends the process over gp's panic. */
_Noreturn void dump_panic(const struct g *gp);

#endif

/* dump.h - goroutines printed in Go's layout. Defined in dump.c. */
#ifndef GORO_DUMP_H
#define GORO_DUMP_H

#include "base/chunks.h"
#include "base/print.h"
#include "observe/backtrace.h"

struct g;

/* Prints "goroutine 7 [chan receive, 5 minutes]:" and the frames below it. */
void dump_goroutine(struct printer *pr, const struct g *gp, const struct backtrace *bt);

/* Prints all frames, the runtime's too. */
void dump_frames(struct printer *pr, const struct backtrace *bt);

/* How much a fatal end prints: set by GORO_TRACEBACK, as Go's by GOTRACEBACK. */
enum dump_level { DUMP_NONE, DUMP_SINGLE, DUMP_ALL };
extern enum dump_level dump_level;

/* Prints all goroutines; self first, of which bt is the backtrace, if both are given.
 * Stops no thread and takes no lock: for fatal ends, in handlers too. */
void dump_all_unstopped(struct printer *pr, const struct g *self, const struct backtrace *bt);

/* Goroutines noted while the world is stopped, to be printed once it goes on. A goroutine
 * for which there is no memory is left out. */
struct dump_list {
	struct chunks noted;
};
/* Notes all goroutines for which is_one is true. World stopped. */
void dump_note_those(struct dump_list *l, bool (*is_one)(const void *arg, const struct g *gp),
                     const void *arg);
/* Prints what was noted, and frees it. In user code. */
void dump_print(struct dump_list *l, FILE *out);

#endif

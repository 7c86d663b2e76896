/*
 * evacuate.h - stacks of goroutines that wait for long. Defined in evacuate.c.
 */
#ifndef GORO_EVACUATE_H
#define GORO_EVACUATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* sysmon's: the program has run, and there may be something to do. */
void evacuate_notice(void);
/* The spawner's: starts the server, if that is asked for. */
void evacuate_start_if_wanted(void);

int evacuate_threads(void);		/* of the runtime's, for it: 0 or 1 */
bool evacuate_is_server(void);		/* the calling thread is that one */

/* Stacks that are away at the moment, and the memory that they take. */
size_t evacuate_stacks(void);
size_t evacuate_bytes(void);
uint64_t evacuate_count(void);		/* stacks that ever went away; for tests */
bool evacuate_works(void);		/* .. or will, when somebody wants it; for tests */

/* Around a fork. */
void evacuate_fork_begin(void);
void evacuate_fork_end(void);
void evacuate_forked(void);		/* in the child */

#endif

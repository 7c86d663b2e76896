/*
 * evacuate.h - stacks of goroutines that wait for long, kept in few bytes: evacuate.c.
 *
 * The room reclaim gives the memory of stacks back: of unused ones, and of those whose
 * goroutine waits. It uses sched, stack, timer, platform and base. sysmon starts its two
 * threads by evacuate_notice and scavenge_notice. Its files, in reading order:
 *
 *	scavenge.c		the scavenger: unused stacks
 *	evacuate.c		the server: stacks that are waited on; its design
 *	evacuate_impl.h		what its three files share
 *	evacuate_take.c		how a stack is taken away
 *	evacuate_serve.c	how it comes back
 *	shrink.c		a page in few bytes
 *	compact.c		memory for shrunk pages
 */
#ifndef GORO_EVACUATE_H
#define GORO_EVACUATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The program has run: starts the server, or wakes it. sysmon only. */
void evacuate_notice(void);

int evacuate_threads(void);		/* the runtime's threads for this: 0 or 1 */
/* Is this thread the server? It must run while another thread reads stacks. */
bool evacuate_is_server(int tid);

/* Stacks that are away now, and the memory that their copies take. */
size_t evacuate_stacks(void);
size_t evacuate_bytes(void);
bool evacuate_works(void);		/* false: the server cannot run here; for tests */

/* Around a fork, in the parent. */
void evacuate_fork_begin(void);
void evacuate_fork_end(void);
void evacuate_forked(void);		/* in the child */

#endif

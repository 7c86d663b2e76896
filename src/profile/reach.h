/*
 * reach.h - goroutines that wait for what nobody can reach. Defined in reach.c, and reach_threads.c.
 */
#ifndef GORO_REACH_H
#define GORO_REACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct g;
struct reach;

/* World stopped. All goroutines that wait for ever are looked for; NULL: no memory. */
struct reach *reach_find(void);
/* World still stopped: gp is one of them. */
bool reach_is_lost(const struct reach *r, const struct g *gp);
size_t reach_lost(const struct reach *r);	/* how many */
void reach_free(struct reach *r);

/* The signal handler's part, while reach_holding is odd: this thread is to stand still, and
 * to show its registers. True: the signal was for that. */
extern uint32_t reach_holding;
bool reach_on_signal(const void *ucontext);

#endif

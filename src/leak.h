/*
 * leak.h - goroutines that a piece of the program has left behind. Defined in leak.c.
 */
#ifndef GORO_LEAK_H
#define GORO_LEAK_H

struct g;
struct m;

/* A goroutine that is watched ends. In state RUNTIME, with a P, without locks. */
void leak_ended(struct m *mp, struct g *gp);

#endif

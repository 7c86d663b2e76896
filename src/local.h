/*
 * local.h - goroutine-local storage. Defined in local.c.
 */
#ifndef GORO_LOCAL_H
#define GORO_LOCAL_H

struct g;

/* Runs the destructors. In user code, on gp. */
void g_locals_end(struct g *gp);

#endif

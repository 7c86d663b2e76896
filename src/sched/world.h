/*
 * world.h - stopping the world. Defined in world.c.
 */
#ifndef GORO_WORLD_H
#define GORO_WORLD_H

struct m;

/* The caller owns every P then. In state RUNTIME; may park first, so the M may change. */
struct m *world_stop(struct m *mp);
/* The same; traces show why, which is in Go's words. */
struct m *world_stop_for(struct m *mp, const char *why);
/* Lets procs Ps run again. */
struct m *world_start(struct m *mp, int procs);

#endif

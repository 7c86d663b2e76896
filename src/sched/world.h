/*
 * world.h - stopping the world. Defined in world.c.
 */
#ifndef GORO_WORLD_H
#define GORO_WORLD_H

struct m;

/* Stops every P; the caller owns them all. In state RUNTIME; may park first, so
 * the M may change. */
struct m *world_stop(struct m *mp);
/* .. for a reason that traces tell, in the words that Go has for such. */
struct m *world_stop_for(struct m *mp, const char *why);
/* .. and lets them run again, procs of them. */
struct m *world_start(struct m *mp, int procs);

#endif

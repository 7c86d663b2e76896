/*
 * steal.h - looking for work in the queues of other Ps. Defined in steal.c.
 */
#ifndef GORO_STEAL_H
#define GORO_STEAL_H

#include "types.h"

/* One to run (others may come with it into our P's queues); NULL: nothing that is
 * worth taking, or the global queue or who stops the world is to be seen to first.
 * The M has a P and is spinning; woken: since somebody woke it. */
struct g *steal_work(struct m *mp, bool woken);

/* For a while, or until the next timer. The M has a P. */
void steal_doze(struct m *mp, int64_t now);

/* pp has stolen on trial, which is over and was for nothing: it is to fold. */
bool steal_failed(struct p *pp, int64_t now);
/* .. and has nothing left of it. */
void steal_dry(struct p *pp, int64_t now);

/* Of the P whose thread has woken this one, if the kernel has put it in that thread's place:
 * whatever there is. */
struct g *steal_in_place(struct m *mp);

/* One look: what is worth taking from there for pp, whose owner we are. */
struct g *steal_from(struct p *pp, struct p *from, int64_t now);

#endif

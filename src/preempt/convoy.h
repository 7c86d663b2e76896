/*
 * convoy.h - locks whose holder has no P. Defined in convoy.c.
 */
#ifndef GORO_CONVOY_H
#define GORO_CONVOY_H

#include <stdbool.h>
#include <stdint.h>

struct m;
struct p;
struct unwind_regs;

/* ---- sysmon */

/* pp was taken from mp, which sleeps on mp->lock: it is handed to the one that holds the
 * lock, if that can be found. False: pp is still the caller's. */
bool convoy_hand_on(struct p *pp, struct m *mp, int64_t now);
/* mp has pp. If it was handed to it as above, sees to those who wait for the lock; true:
 * pp is to be looked at soon. */
bool convoy_watch(struct p *pp, struct m *mp, int64_t now);
/* mp goes on without a P, and competes for a lock with one that is watched. */
bool convoy_has_heir(const struct m *mp);
/* How long a slice on pp is, where it is usually this; and that one came to its end. */
int64_t convoy_slice(const struct p *pp, int64_t slice);
void convoy_slice_over(struct p *pp, uint64_t tick);

/* ---- the M, in the handler */

/* One without a P may be stopped here: mp->stop_where. */
bool convoy_may_stop(struct m *mp, const struct unwind_regs *regs);
/* One with a P, which has an heir, may. */
bool convoy_may_pass_on(const struct unwind_regs *regs);
/* It is stopped: its P goes to the heir, if there is one. */
void convoy_pass_on(struct m *mp);

#endif

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

/* pp was taken from mp, which sleeps on the lock mp->watch.lock. Hands pp to the M that
 * holds the lock, if that can be found. False: pp is still the caller's. */
bool convoy_hand_on(struct p *pp, struct m *mp, int64_t now);
/* mp has pp. If pp was handed to mp by convoy_hand_on, sees to the Ms that compete for
 * the lock. True: pp is to be looked at soon. */
bool convoy_watch(struct p *pp, struct m *mp, int64_t now);
/* Whether mp goes on without a P, and competes for a lock with an M that is watched. */
bool convoy_has_heir(const struct m *mp);
/* The length of a slice on pp that is usually `slice` long. */
int64_t convoy_slice(const struct p *pp, int64_t slice);
/* The slice `tick` (p_slices) on pp has come to its end. */
void convoy_slice_over(struct p *pp, uint64_t tick);

/* ---- the M, in the handler */

/* Whether an M without a P may be stopped here, by mp->stop_where. */
bool convoy_may_stop(struct m *mp, const struct unwind_regs *regs);
/* Whether an M whose P has an heir may be stopped here. */
bool convoy_may_pass_on(const struct unwind_regs *regs);

#endif

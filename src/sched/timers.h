/*
 * timers.h - the Ps' timers: started, looked at, fired. Defined in timers.c.
 */
#ifndef GORO_TIMERS_H
#define GORO_TIMERS_H

#include "timer/timer.h"

struct m;
struct p;

/* Dense: MANY timers, DENSE of them due within SLACK of the first, which may be so
 * late. */
#define TIMERS_MANY    64
#define TIMERS_DENSE   8
#define TIMER_SLACK_NS 170000

/* Starts t, which waits nowhere, at when; a time that is past fires soon. */
void timer_start(struct m *mp, struct timer *t, int64_t when);
/* Starts t anew at when, if it waits on mp's P. False: nothing has changed. */
bool timer_change(struct m *mp, struct timer *t, int64_t when);

/* How much longer a thread may sleep than until next, the earliest time of all. */
int64_t timers_slack(int64_t next);
/* The earliest time at which any P has a timer. */
int64_t timers_earliest(void);
/* The same, without the Ps whose earliest time is not later than after. */
int64_t timers_earliest_after(int64_t after);
bool timers_are_due(const struct p *pp);
/* Fires what is due on pp; any M with a P may. now 0: reads the clock. True if any
 * fired. */
bool timers_run(struct m *mp, struct p *pp, int64_t now);
/* Wakes the keeper or the monitor, if both sleep beyond the earliest timer. */
void timers_tell(struct m *mp);
/* Whether the M runs itself what its timers made ready: "Many timers" in timers.c. */
bool timers_are_hushed(const struct m *mp);

#endif

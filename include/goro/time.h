/*
 * goro/time.h - sleeping, timers, tickers and deadlines.
 *
 * Part of goro.h, which says what holds for all of it. Include that one.
 */
#ifndef GORO_H_TIME
#define GORO_H_TIME

#include "base.h"
#include "chan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A deadline that is never, and one that has passed. */
#define GORO_FOREVER INT64_MAX
#define GORO_NOW     INT64_C(0)

#define GORO_MICROSECOND INT64_C(1000)
#define GORO_MILLISECOND INT64_C(1000000)
#define GORO_SECOND      INT64_C(1000000000)

GORO_API int64_t goro_now(void);                 /* a time                     */
/* The deadline ns from now, a time; GORO_FOREVER if that is beyond all times. */
GORO_API int64_t goro_deadline_in(int64_t ns);
GORO_API void goro_sleep(int64_t ns);            /* a duration                 */

/* A timer sends the time, a goro_now(), on its channel once, ns from now, a duration (at
 * once if ns <= 0). Nobody need be there to receive it: one value is kept, though the
 * channel shows a length and a capacity of 0. NULL: no memory.
 *
 * The channel belongs to the timer; take a reference to keep it for longer. The
 * timer may be freed at any time, stopped or not. Nobody is woken by that: who
 * waits on the channel waits on, as after a stop. */
typedef struct goro_timer goro_timer;
GORO_API goro_timer *goro_timer_make(int64_t ns);
GORO_API goro_chan *goro_timer_chan(goro_timer *t);
/* Stops the timer. True: that was in time, the value of this run was not received
 * and will not be. After it, and after a reset, nothing is received that the timer
 * sent before. Any number of goroutines may stop and reset a timer at once. */
GORO_API bool goro_timer_stop(goro_timer *t);
/* Stops it and starts it again, as if made anew, ns from now: a duration. True as for a
 * stop. */
GORO_API bool goro_timer_reset(goro_timer *t, int64_t ns);
GORO_API void goro_timer_free(goro_timer *t);

/* A timer without a channel (goro_timer_chan is NULL) that starts fn(arg) as a goroutine
 * ns from now, a duration. Stopped in time, fn does not run; freed, too. Stopping does
 * not wait for an fn that has been started. */
GORO_API goro_timer *goro_after_func(int64_t ns, void (*fn)(void *), void *arg);

/* A ticker sends the time again and again, a period apart, which is a duration. If nobody
 * has received the last tick, the next is dropped: they do not queue. Panics if period <=
 * 0. */
typedef struct goro_ticker goro_ticker;
GORO_API goro_ticker *goro_ticker_make(int64_t period);   /* NULL: no memory */
GORO_API goro_chan *goro_ticker_chan(goro_ticker *t);     /* belongs to the ticker */
/* The next tick comes a period from now, a duration; none of before is received. */
GORO_API void goro_ticker_reset(goro_ticker *t, int64_t period);
GORO_API void goro_ticker_free(goro_ticker *t);           /* at any time; stops it */

#ifdef __cplusplus
}
#endif

#endif

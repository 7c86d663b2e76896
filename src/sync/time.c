/*
 * time.c - the clock, timers and tickers.
 *
 * A timer sends the time on a channel, or starts a function in a goroutine. timers.c does
 * the waiting. This file makes sure of what Stop and Reset promise (Go 1.23): after them
 * no earlier value is received.
 *
 * The channel has room for one value. So a fire that no goroutine waits for is kept, and
 * one that finds the last value still there is dropped: ticks never queue. Users see
 * neither: length and capacity are 0.
 *
 * One lock guards a timer: its channel's. A fire sends under it and a stop takes the
 * value back under it, so a stop comes either before the fire or after it. A function's
 * timer has a lock of its own.
 *
 *	armed    a fire is to come; also while it is on its way and does not have the lock
 *	         yet, so that a stop then has stopped it
 *
 * A fire that finds its timer not armed came too late and does nothing. So to arm a timer
 * again waits until such a fire is over (disarm_and_settle). Stopping a timer does not
 * wait, freeing it does.
 *
 * Rejected: Go's way of keeping a timer off the heap until a goroutine receives. It lets
 * a collector find unused timers, and makes every receive and every select look after the
 * timers of its channels.
 */
#include <goro.h>
#include <stdlib.h>

#include "sync/chan.h"
#include "sync/deadline.h"
#include "sync/freed.h"
#include "platform/os.h"
#include "sched/runq.h"
#include "sched/timers.h"

struct goro_timer {
	struct timer timer;
	struct lock *lock;	/* guards armed, period and starts of timer */
	bool armed;
	int64_t period;		/* of a ticker; 0: a timer */

	/* Constant. Either chan or fn. */
	goro_chan *chan;
	void (*fn)(void *);
	void *arg;
	void *caller;		/* of goro_after_func */
	struct lock fn_lock;
};

int64_t goro_now(void)
{
	return os_now();
}

int64_t goro_deadline_in(int64_t ns)
{
	int64_t now = os_now();

	return ns < GORO_FOREVER - now ? now + ns : GORO_FOREVER;
}

/* ------------------------------------------------------------------ firing */

static struct goro_timer *timer_of(struct timer *t)
{
	return (struct goro_timer *)((char *)t - offsetof(struct goro_timer, timer));
}

/* The first tick after now, in whole periods from the first one of all. */
static int64_t next_tick(const struct goro_timer *t, int64_t now)
{
	int64_t late = now - t->timer.when;

	check(t->period > 0 && late >= 0);
	return deadline_after(t->timer.when + late - late % t->period, t->period);
}

/* Lock held. The end of a fire, which releases it: the timer starts again, or timer_fired
 * comes after the unlock and is the last use of the timer. */
static void unlock_fired(struct goro_timer *t)
{
	check(!t->armed && timer_is_firing(&t->timer));
	lock_release(t->lock);
	timer_fired(&t->timer);
}

static void start_again_unlock(struct m *mp, struct goro_timer *t, int64_t when)
{
	struct lock *lock = t->lock;

	check(lock_is_held(lock) && timer_is_firing(&t->timer));
	t->armed = true;
	timer_fired(&t->timer);
	timer_start(mp, &t->timer, when);
	lock_release(lock);
}

static void fire_send(struct m *mp, struct timer *timer, int64_t now)
{
	struct goro_timer *t = timer_of(timer);
	struct g *peer = NULL;
	bool again = false;

	lock_acquire(t->lock);
	if (t->armed) {
		t->armed = false;
		if (!t->chan->closed)
			chan_send_now(t->chan, &now, &peer);
		again = t->period > 0;
	}
	if (again)
		start_again_unlock(mp, t, next_tick(t, now));
	else
		unlock_fired(t);
	if (peer) {
		g_fetch_stack(peer);
		g_ready_in_order(mp, peer);
	}
}

/* Prefetches the channel, which stays as long as the timer waits, and then the goroutine
 * that waits for it, if that is outside of a select. */
static void fetch_send(const struct timer *timer, int step)
{
	const goro_chan *c = timer_of((struct timer *)timer)->chan;
	const struct waiter *w;

	if (step == 0) {
		__builtin_prefetch(c, 1);
	} else if ((w = load_relaxed(&c->recvq.first))) {
		__builtin_prefetch(w, 1);
		__builtin_prefetch((const char *)w - offsetof(struct g, waiter), 1);
	}
}

static void fire_call(struct m *mp, struct timer *timer, int64_t now)
{
	struct goro_timer *t = timer_of(timer);

	lock_acquire(t->lock);
	if (t->armed && !g_launch_call(mp, t->fn, t->arg, t->caller)) {
		start_again_unlock(mp, t, now + RETRY_NS);
		return;
	}
	t->armed = false;
	unlock_fired(t);
}

/* ---------------------------------------------------------- stop and start */

/* Lock held. Cancels the fire to come and drops the value left. True: there was one. */
static bool disarm(struct goro_timer *t)
{
	bool pending = t->armed;

	check(lock_is_held(t->lock) && (!t->chan || t->chan->count <= 1));
	t->armed = false;
	timer_try_stop(&t->timer);
	if (t->chan && t->chan->count > 0) {
		ring_get(t->chan, NULL);
		/* Stop and Reset do not report a ticker's value. */
		pending = pending || t->period == 0;
	}
	return pending;
}

/* Lock held. Afterwards no fire is on its way, so that t can be started. */
static bool disarm_and_settle(struct goro_timer *t)
{
	bool pending = disarm(t);

	while (timer_is_firing(&t->timer)) {
		lock_release(t->lock);
		timer_wait_fired(&t->timer);
		lock_acquire(t->lock);
		pending |= disarm(t);	/* another goroutine may have started it */
	}
	return pending;
}

static bool timer_reset(struct goro_timer *t, int64_t ns, int64_t period)
{
	struct m *mp = rt_enter_lock(t->lock);
	int64_t when = deadline_after(os_now(), ns);
	bool pending = true;

	if (!t->armed || (t->chan && t->chan->count > 0) || !timer_change(mp, &t->timer, when)) {
		pending = disarm_and_settle(t);
		check(!t->timer.heap && !t->armed);
		timer_start(mp, &t->timer, when);
	}
	t->armed = true;
	t->period = period;
	rt_unlock_exit(mp, t->lock);
	return pending;
}

bool goro_timer_stop(goro_timer *t)
{
	struct m *mp = rt_enter_lock(t->lock);
	bool pending;

	pending = disarm(t);
	rt_unlock_exit(mp, t->lock);
	return pending;
}

/* --------------------------------------------------------- making, freeing */

static struct goro_timer *make_chan_timer(void)
{
	struct goro_timer *t = calloc(1, sizeof *t);

	if (!t)
		return NULL;
	t->chan = goro_chan_of(int64_t, 1);
	if (!t->chan) {
		free(t);
		return NULL;
	}
	t->chan->of_timer = true;
	t->timer.fire = fire_send;
	t->timer.fetch = fetch_send;
	t->lock = &t->chan->lock;
	return t;
}

void goro_timer_free(goro_timer *t)
{
	struct m *mp;

	if (!t)
		return;
	goro_timer_stop(t);
	mp = rt_enter();
	timer_stop(&t->timer);	/* waits for a fire that came too late */
	rt_exit(mp);
	goro_chan_unref(t->chan);
	t->chan = NULL;			/* for reach.c */
	t->lock = &t->fn_lock;
	t->fn_lock.rank = RANK_TIMER;	/* lock_of_freed names it */
	freed_release(t, t->lock);
}

/* ------------------------------------------------------------------ timers */

goro_timer *goro_timer_make(int64_t ns)
{
	struct goro_timer *t = make_chan_timer();

	if (t)
		timer_reset(t, ns, 0);
	return t;
}

goro_timer *goro_after_func(int64_t ns, void (*fn)(void *), void *arg)
{
	struct goro_timer *t;

	if (!fn)
		g_of_nil();
	t = calloc(1, sizeof *t);
	if (!t)
		return NULL;
	t->timer.fire = fire_call;
	t->fn = fn;
	t->arg = arg;
	t->caller = __builtin_return_address(0);
	t->fn_lock = (struct lock)LOCK_INIT(RANK_CHAN);
	t->lock = &t->fn_lock;
	timer_reset(t, ns, 0);
	return t;
}

goro_chan *goro_timer_chan(goro_timer *t)
{
	return t->chan;
}

bool goro_timer_reset(goro_timer *t, int64_t ns)
{
	return timer_reset(t, ns, 0);
}

/* -------------------------------- tickers: a goro_ticker is a goro_timer */

goro_ticker *goro_ticker_make(int64_t period)
{
	struct goro_timer *t;

	if (period <= 0)
		goro_panic("non-positive interval for NewTicker");
	t = make_chan_timer();
	if (t)
		timer_reset(t, period, period);
	return (goro_ticker *)t;
}

goro_chan *goro_ticker_chan(goro_ticker *t)
{
	return ((goro_timer *)t)->chan;
}

void goro_ticker_reset(goro_ticker *t, int64_t period)
{
	if (period <= 0)
		goro_panic("non-positive interval for Ticker.Reset");
	timer_reset((goro_timer *)t, period, period);
}

void goro_ticker_free(goro_ticker *t)
{
	goro_timer_free((goro_timer *)t);
}

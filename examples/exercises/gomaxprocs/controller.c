/*
 * controller.c - see controller.h.
 */
#include "controller.h"

#include <goro.h>

/* ---------------------------------------------------------------- decisions */

void controller_init(struct controller *c, int least, int most, int procs)
{
	*c = (struct controller){.least = least,
				 .most = most,
				 .procs = procs,
				 .direction = 1,
				 .backoff = 1};
}

/* 0: there is one number only. */
static int next_try(const struct controller *c)
{
	if (c->direction > 0)
		return c->procs < c->most ? 1 : -(c->procs > c->least);
	return c->procs > c->least ? -1 : c->procs < c->most;
}

static bool is_better(const struct controller *c, double rate)
{
	if (c->trying > 0)
		return rate > c->rate * (1 + GAIN_SHARE / c->procs);
	return rate > c->rate * (1 - LOSS_SHARE);
}

/* After a round in vain: both directions, or the only one there is. */
static void wait_longer(struct controller *c)
{
	if (c->trying < 0 || c->direction < 0)
		c->backoff = c->backoff * 2 < WAIT_MAX ? c->backoff * 2 : WAIT_MAX;
}

static void judge(struct controller *c, double rate)
{
	if (is_better(c, rate)) {
		c->procs += c->trying;
		c->rate = rate;
		c->backoff = 1;
		c->wait = 0;
		c->direction = c->trying;
	} else {
		c->wait = c->backoff;
		wait_longer(c);
		c->direction = -c->trying;
	}
	c->trying = 0;
}

static void look(struct controller *c, double rate)
{
	double change = rate - c->rate;

	if (change > CHANGE_SHARE * c->rate || change < -CHANGE_SHARE * c->rate) {
		c->backoff = 1;
		c->wait = 0;
		c->rate = rate;
	} else {
		c->rate += change / 4;
	}
	if (c->wait > 0) {
		c->wait--;
		return;
	}
	c->trying = next_try(c);
	c->tries += c->trying != 0;
}

int controller_next(struct controller *c, double rate)
{
	if (c->trying)
		judge(c, rate);
	else
		look(c, rate);
	return c->procs + c->trying;
}

/* --------------------------------------------------------------- at work */

struct reading {
	int64_t at;
	unsigned long long done;
};

static struct reading read_now(const struct control *ctl)
{
	return (struct reading){ goro_now(), atomic_load(ctl->done) };
}

static double rate_between(const struct reading *a, const struct reading *b)
{
	return (double)(b->done - a->done) * 1e9 / (double)(b->at - a->at);
}

static void step(struct control *ctl, struct reading *last)
{
	struct reading now = read_now(ctl);
	double rate = rate_between(last, &now);
	int was = goro_gomaxprocs(0), procs = controller_next(&ctl->c, rate);

	if (procs != was)
		goro_gomaxprocs(procs);
	ctl->changes += procs != was;
	ctl->steps++;
	ctl->spent += goro_now() - now.at;
	if (ctl->seen)
		ctl->seen(ctl->arg, rate, was);
	*last = read_now(ctl);
}

void control_run(struct control *ctl)
{
	struct reading last;

	goro_gomaxprocs(ctl->c.procs);
	last = read_now(ctl);
	while (!atomic_load(&ctl->stop)) {
		goro_sleep(ctl->interval);
		step(ctl, &last);
	}
}

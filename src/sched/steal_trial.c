/*
 * steal_trial.c - stealing on trial: from a P that always has a goroutine waiting.
 *
 * On trial
 *
 * A P that always has a goroutine waiting, and gets through them quickly, may run two
 * pairs that talk to each other. Then two Ps do twice as much: a goroutine that moves
 * draws its partner after it. Or it may run five goroutines that all talk to a sixth, and
 * a second P only takes that one away again and again. A thief cannot tell, so it tries:
 * where a goroutine waited at most looks of a watch, it takes what there is, and
 * measures. The trial has failed if both Ps together do not switch a quarter more often
 * than the one did alone, or if the thief looks for work again at once. A failed trial
 * doubles the watch before the next one on these Ps; any other halves it.
 *
 * Without trials the sieve on two Ps takes 1.6 times as long (GORO_DEBUG=notrial=1).
 * Rejected: giving back what was taken when a trial has failed (no gain beside the longer
 * watch); fixed times (two goroutines that yield gain nothing, and a semaphore loses).
 */
#include "sched/steal.h"

#include "base/debug.h"
#include "sched/types.h"

/* The first watch of a P; results of trials change it within MIN and MAX. */
#define WATCH_NS     1000000
#define WATCH_MIN_NS 125000
#define WATCH_MAX_NS 64000000
/* Looks that a watch needs, or one for each LOOK_EACH_NS of a short one. A thief that
 * dozes looks twice as often as that. */
#define LOOKS_NEEDED 8
#define LOOK_EACH_NS 100000
/* A trial is over when the thief looks for work again; a shorter one has failed. */
#define TRIAL_MIN_NS 50000

static uint64_t per_ms(uint64_t n, int64_t ns)
{
	return ns > 0 ? n * 1000000 / (uint64_t)ns : 0;
}

static int64_t watch_ns(const struct p *from)
{
	int64_t ns = load_relaxed(&from->trial.watch_ns);

	return ns ? ns : WATCH_NS;
}

static void watch_anew(struct p *from, int64_t now)
{
	store_relaxed(&from->trial.looks, 0);
	store_relaxed(&from->trial.watched_at, now);
	store_relaxed(&from->trial.watched_switches, load_relaxed(&from->count.switches));
}

static uint64_t looks_needed(int64_t ns)
{
	return ns < WATCH_NS ? (uint64_t)(ns / LOOK_EACH_NS) : LOOKS_NEEDED;
}

bool trial_is_wanted(struct p *from, bool waits, int64_t now)
{
	struct p_trial *t = &from->trial;
	uint64_t looks = load_relaxed(&t->looks) + (UINT64_C(1) << 32) + waits;
	int64_t watched = now - load_relaxed(&t->watched_at);

	if (debug.notrial)
		return false;
	if (watched < watch_ns(from)) {
		store_relaxed(&t->looks, looks);
		return false;
	}
	store_relaxed(&t->before, per_ms(load_relaxed(&from->count.switches) -
	                                 load_relaxed(&t->watched_switches), watched));
	watch_anew(from, now);
	return waits && 2 * (uint32_t)looks > looks >> 32 &&
	       looks >> 32 >= looks_needed(watch_ns(from));
}

static uint64_t switches_of(const struct p *pp, const struct p *from)
{
	return load_relaxed(&pp->count.switches) + load_relaxed(&from->count.switches);
}

void trial_begin(struct p *pp, struct p *from, int64_t now)
{
	struct p_trial *t = &pp->trial;

	check(!t->from && from != pp);
	t->from = from;
	t->began_at = now;
	t->switches = switches_of(pp, from);
	t->rate = load_relaxed(&from->trial.before);
}

static void end(struct p *pp, int64_t took)
{
	struct p_trial *t = &pp->trial;
	bool failed = took < TRIAL_MIN_NS ||
	              4 * per_ms(switches_of(pp, t->from) - t->switches, took) < 5 * t->rate;
	int64_t ns = failed ? 2 * watch_ns(t->from) : watch_ns(t->from) / 2;

	if (ns > WATCH_MAX_NS)
		ns = WATCH_MAX_NS;
	if (ns < WATCH_MIN_NS)
		ns = WATCH_MIN_NS;
	store_relaxed(&t->from->trial.watch_ns, ns);
	store_relaxed(&t->watch_ns, ns);	/* the next trial may be the other way
						 * about */
	watch_anew(t->from, t->began_at + took);
	t->from = NULL;
}

void trial_look(struct p *pp, int64_t now)
{
	if (pp->trial.from)
		end(pp, now - pp->trial.began_at);
}

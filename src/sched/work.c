/*
 * work.c - work sources: the registered ones, and calls of them in turn.
 */
#include "sched/work.h"

#include "base/throw.h"

/* Constant once the runtime has started. */
static struct work_source *sources, **last = &sources;
static uint32_t bits;

/* For each source that has something on pp. */
#define EACH_SOURCE(s, pp)                                                           \
	for (const struct work_source *s = sources; s && work_deferred(pp); s = s->next) \
		if (load_relaxed(&(pp)->deferred) & s->bit)

void work_register(struct work_source *s)
{
	if (bits == UINT32_MAX)
		throw("work_register: too many work sources");
	s->bit = bits + 1;
	bits |= s->bit;
	*last = s;
	last = &s->next;
}

uint32_t work_bits(void)
{
	return bits;
}

bool work_due(const struct p *pp)
{
	EACH_SOURCE (s, pp)
		if (s->due && s->due(pp))
			return true;
	return false;
}

bool work_late(const struct p *pp)
{
	EACH_SOURCE (s, pp)
		if (s->late && s->late(pp))
			return true;
	return false;
}

void work_see_to_due(struct m *mp)
{
	EACH_SOURCE (s, mp->p)
		if (s->due && s->due(mp->p))
			s->see_to_due(mp);
}

struct g *work_take(struct m *mp)
{
	struct g *gp;

	EACH_SOURCE (s, mp->p)
		if (s->take && (gp = s->take(mp)))
			return gp;
	return NULL;
}

struct g *work_flush(struct m *mp)
{
	if (!work_deferred(mp->p))
		return NULL;
	EACH_SOURCE (s, mp->p)
		if (s->flush)
			s->flush(mp);
	return runq_get(mp->p, &(bool){ false });
}

void work_before_call_slow(struct m *mp)
{
	EACH_SOURCE (s, mp->p)
		if (s->before_call)
			s->before_call(mp);
}

void work_drain(struct m *mp, struct p *from, struct p *to)
{
	EACH_SOURCE (s, from)
		s->drain(mp, from, to);
	check(!work_deferred(from));
}

int64_t work_watch(int64_t now)
{
	int64_t next = TIMER_NEVER;

	for (const struct work_source *s = sources; s; s = s->next)
		if (s->watch)
			next = soonest(next, s->watch(now));
	return next;
}

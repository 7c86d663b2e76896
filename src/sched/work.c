/*
 * work.c - work sources: the registered ones, and calls of them in turn.
 */
#include "sched/work.h"

#include "base/throw.h"

#define SOURCES_MAX 8

/* Constant once the runtime has started. */
static struct work_source *sources[SOURCES_MAX];
static int source_n;

void work_register(struct work_source *s)
{
	if (source_n == SOURCES_MAX)
		throw("work_register: too many work sources");
	s->bit = UINT32_C(1) << source_n;
	sources[source_n++] = s;
}

uint32_t work_bits(void)
{
	return (UINT32_C(1) << source_n) - 1;
}

/* The next source from *i on that has something on pp; NULL: none. */
static const struct work_source *next_source(const struct p *pp, int *i)
{
	while (*i < source_n) {
		const struct work_source *s = sources[(*i)++];

		if (load_relaxed(&pp->deferred) & s->bit)
			return s;
	}
	return NULL;
}

bool work_due_slow(const struct p *pp)
{
	const struct work_source *s;

	for (int i = 0; (s = next_source(pp, &i));)
		if (s->due && s->due(pp))
			return true;
	return false;
}

bool work_late_slow(const struct p *pp)
{
	const struct work_source *s;

	for (int i = 0; (s = next_source(pp, &i));)
		if (s->late && s->late(pp))
			return true;
	return false;
}

void work_see_to_due_slow(struct m *mp)
{
	const struct work_source *s;

	for (int i = 0; (s = next_source(mp->p, &i));)
		if (s->due && s->due(mp->p))
			s->see_to_due(mp);
}

struct g *work_take_slow(struct m *mp)
{
	const struct work_source *s;
	struct g *gp;

	for (int i = 0; (s = next_source(mp->p, &i));)
		if (s->take && (gp = s->take(mp)))
			return gp;
	return NULL;
}

struct g *work_flush_slow(struct m *mp)
{
	const struct work_source *s;

	for (int i = 0; (s = next_source(mp->p, &i));)
		if (s->flush)
			s->flush(mp);
	return runq_get(mp->p, &(bool){ false });
}

void work_before_call_slow(struct m *mp)
{
	const struct work_source *s;

	for (int i = 0; (s = next_source(mp->p, &i));)
		if (s->before_call)
			s->before_call(mp);
}

void work_drain(struct m *mp, struct p *from, struct p *to)
{
	const struct work_source *s;

	for (int i = 0; (s = next_source(from, &i));)
		s->drain(mp, from, to);
	check(!work_deferred(from));
}

int64_t work_watch(int64_t now)
{
	int64_t next = TIMER_NEVER;

	for (int i = 0; i < source_n; i++)
		if (sources[i]->watch)
			next = soonest(next, sources[i]->watch(now));
	return next;
}

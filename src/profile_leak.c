/*
 * profile_leak.c - the goroutineleak profile: goroutines that wait for ever, since nothing
 * that can run can reach what they wait for. How they are found is in reach.c.
 */
#include <goro.h>

#include "dump.h"
#include "profile.h"
#include "reach.h"
#include "runtime.h"
#include "world.h"

static void begin(void *arg)
{
	struct reach **r = arg;

	*r = reach_find();
}

static bool keep(const struct g *gp, void *arg)
{
	struct reach **r = arg;

	return *r && reach_is_lost(*r, gp);
}

void profile_goroutineleak_take(struct profile_table *now)
{
	struct reach *r = NULL;
	struct profile_choice choice = { "goroutineleak", begin, keep, &r };

	profile_goroutines_take(&choice, now);
	if (r)
		reach_free(r);
}

int profile_goroutineleak(struct bytes *out)
{
	struct reach *r = NULL;
	struct profile_choice choice = { "goroutineleak", begin, keep, &r };
	int error = profile_goroutines(&choice, out);

	if (r)
		reach_free(r);
	return error;
}

static bool is_lost(const void *r, const struct g *gp)
{
	return reach_is_lost(r, gp);
}

size_t profile_goroutineleak_dump(FILE *out)
{
	struct dump_list lost = { NULL, NULL };
	struct m *mp = world_stop(rt_enter());
	struct reach *r = reach_find();
	size_t n = r ? reach_lost(r) : 0;

	if (r && out)
		dump_note_those(&lost, is_lost, r);
	mp = world_start(mp, sched.gomaxprocs);
	rt_exit(mp);
	if (r)
		reach_free(r);
	if (out)
		dump_print(&lost, out);
	return n;
}

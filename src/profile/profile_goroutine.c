/*
 * profile_goroutine.c - where the goroutines are, which of them wait for ever, and where
 * threads were made.
 *
 * With the world stopped, as in goro_dump, each goroutine's stack is walked and counted
 * at once, so a million goroutines that do the same take one record. To walk one takes
 * some microseconds, for which the world is stopped.
 *
 * The goroutineleak profile has those that wait for ever, since no goroutine that can
 * still run can reach what they wait for. reach.c finds them.
 */
#include "observe/dump.h"
#include "profile/profile.h"
#include "profile/reach.h"
#include "sched/runtime.h"
#include "stack/stack.h"

/* Room for some hundred thousand different stacks. */
#define TABLE_BYTES_MAX (64 << 20)

struct gathering {
	struct profile_table table;
	bool leaks;		/* only goroutines that wait for ever */
	struct reach *reach;	/* which those are; NULL: not known */
	const struct g *self;
};

/* A goroutine that runs on without its P may change meanwhile: see head_of in dump.c. */
static TOOL_RACY void name_of(char *name, const struct g *gp)
{
	for (size_t i = 0; i < G_NAME_BYTES - 1; i++)
		name[i] = peek(&gp->name[i]);
	name[G_NAME_BYTES - 1] = '\0';
}

static void add(struct gathering *t, const struct g *gp, const struct backtrace *bt)
{
	char name[G_NAME_BYTES];
	struct profile_key key = { .pc = bt->pc, .n = bt->n, .name = name, .from = bt->from };

	name_of(name, gp);
	profile_table_add(&t->table, &key, 1, 0);
}

static bool is_lost(const void *reach, const struct g *gp)
{
	return reach && reach_is_lost(reach, gp);
}

static bool is_wanted(const struct gathering *t, const struct g *gp)
{
	return !t->leaks || is_lost(t->reach, gp);
}

static void add_one(struct g *gp, void *arg)
{
	struct gathering *t = arg;
	struct backtrace bt;

	/* acquire: pairs with store_release in g_launch */
	if (gp == t->self || load_acquire(&gp->status) == G_DEAD || !is_wanted(t, gp))
		return;
	backtrace_any(&bt, gp);
	add(t, gp, &bt);
}

static void take(bool leaks, struct profile_table *now)
{
	struct gathering t = { .table.records.bytes_max = TABLE_BYTES_MAX, .leaks = leaks };
	struct m *mp = world_stop_for(rt_enter(), "goroutine profile");
	struct backtrace bt;

	if (leaks)
		t.reach = reach_find();
	if (!mp->is_foreign) {
		t.self = mp->curg;
		backtrace_here(&bt);
		if (is_wanted(&t, t.self))
			add(&t, t.self, &bt);
	}
	stack_each(add_one, &t);
	mp = world_start(mp, sched.gomaxprocs);
	rt_exit(mp);
	reach_free(t.reach);
	*now = t.table;
}

void profile_goroutine_take(struct profile_table *now)
{
	take(false, now);
}

/* ----------------------------------------------------------- goroutineleak */

void profile_goroutineleak_take(struct profile_table *now)
{
	take(true, now);
}

size_t profile_goroutineleak_dump(FILE *out)
{
	struct dump_list lost = { .noted.bytes = 0 };
	struct m *mp = world_stop(rt_enter());
	struct reach *r = reach_find();
	size_t n = r ? reach_lost(r) : 0;

	if (out)
		dump_note_those(&lost, is_lost, r);
	mp = world_start(mp, sched.gomaxprocs);
	rt_exit(mp);
	reach_free(r);
	if (out)
		dump_print(&lost, out);
	return n;
}

/* ------------------------------------------------------------ threadcreate */

/* Two frames at most: as in Go, a thread of the runtime's makes most threads, so deeper
 * stacks say nothing. A plain thread counts where it first called goro. */
static void add_thread(struct profile_table *t, const void *at, const void *caller)
{
	uintptr_t pc[] = { (uintptr_t)at, (uintptr_t)caller };
	struct profile_key key = { .pc = pc, .n = caller ? 2 : 1 };

	profile_table_add(t, &key, 1, 0);
}

/* mp may be given to another thread meanwhile. */
static TOOL_RACY bool is_plain(const struct m *mp)
{
	return peek(&mp->is_foreign);
}

void profile_threadcreate_take(struct profile_table *now)
{
	struct profile_table t = { .records.bytes_max = TABLE_BYTES_MAX };

	add_thread(&t, (void *)m_make_spawner, NULL);	/* the spawner, which is no M */
	/* acquire: pairs with store_release in m_alloc */
	for (struct m *mp = load_acquire(&sched.all_m); mp; mp = mp->all_link) {
		if (!load_relaxed(&mp->tid))
			continue;	/* its thread has ended */
		add_thread(&t, is_plain(mp) ? (void *)foreign_attach : (void *)m_make,
		           load_relaxed(&mp->made_at));
	}
	*now = t;
}

/*
 * profile_goroutine.c - where the goroutines are, and who made the threads.
 *
 * The stacks are taken with the world stopped, as goro_dump does, and counted on the
 * spot: a million goroutines that do the same take one record. One goroutine's frames
 * take some microseconds; that is how long the world is stopped for each.
 */

#include "backtrace.h"
#include "profile.h"
#include "runtime.h"
#include "stack.h"
#include "world.h"

/* Different stacks: some hundred thousand. */
#define TABLE_BYTES_MAX (64 << 20)

struct gathering {
	struct profile_table table;
	const struct profile_choice *choice;
	const struct g *self;
};

/* Nothing holds a goroutine that runs on without its P: see head_of in dump.c. */
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

static bool is_wanted(const struct gathering *t, const struct g *gp)
{
	return !t->choice->keep || t->choice->keep(gp, t->choice->arg);
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

static void gather(struct gathering *t)
{
	struct m *mp = world_stop_for(rt_enter(), "goroutine profile");
	struct backtrace bt;

	if (t->choice->begin)
		t->choice->begin(t->choice->arg);
	if (!mp->is_foreign) {
		t->self = mp->curg;
		backtrace_here(&bt);
		if (is_wanted(t, t->self))
			add(t, t->self, &bt);
	}
	stack_each(add_one, t);
	mp = world_start(mp, sched.gomaxprocs);
	rt_exit(mp);
}

static int encode(const char *type, struct profile_table *t, struct bytes *out)
{
	const struct pprof_type count = { type, "count" };
	const struct pprof_kind kind = {
		.type = { count }, .types = 1, .period_type = count, .period = 1,
	};
	int error = profile_of_table(&kind, t, out);

	profile_table_free(t);
	return error;
}

void profile_goroutines_take(const struct profile_choice *choice, struct profile_table *now)
{
	struct gathering t = { .table.bytes_max = TABLE_BYTES_MAX, .choice = choice };

	gather(&t);
	*now = t.table;
}

int profile_goroutines(const struct profile_choice *choice, struct bytes *out)
{
	struct profile_table now;

	profile_goroutines_take(choice, &now);
	return encode(choice->type, &now, out);
}

int profile_goroutine(struct bytes *out)
{
	return profile_goroutines(&(struct profile_choice){ .type = "goroutine" }, out);
}

/* ------------------------------------------------------------ threadcreate */

/* Two frames at most: most threads are made by a thread of the runtime's. (As in Go, where
 * the profile says as little.) A plain thread counts where we first hear of it. */
static void add_thread(struct profile_table *t, const void *at, const void *caller)
{
	uintptr_t pc[] = { (uintptr_t)at, (uintptr_t)caller };
	struct profile_key key = { .pc = pc, .n = caller ? 2 : 1 };

	profile_table_add(t, &key, 1, 0);
}

/* It may just be given to another thread. */
static TOOL_RACY bool is_plain(const struct m *mp)
{
	return peek(&mp->is_foreign);
}

void profile_threadcreate_take(struct profile_table *now)
{
	struct profile_table t = { .bytes_max = TABLE_BYTES_MAX };

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

int profile_threadcreate(struct bytes *out)
{
	struct profile_table now;

	profile_threadcreate_take(&now);
	return encode("threadcreate", &now, out);
}

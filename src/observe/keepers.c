/*
 * keepers.c - which goroutines keep a thread, for the report when there are too many.
 *
 * A goroutine keeps its thread if it is in a blocking call, which is nearly always the
 * reason, if goro_lock_os_thread ties it to the thread, or if it was preempted in user
 * code. The report counts the goroutines of each kind. It groups goroutines with the same
 * innermost calls, and shows the largest groups with their trace.
 *
 * The spawner runs this. It is no M, and the program may be in any state.
 */
#include "base/hook.h"
#include "observe/dump.h"
#include "sched/runtime.h"

#define GROUPS       32	/* more are counted, but not shown */
#define GROUPS_SHOWN 5
#define SAME_FRAMES  6	/* innermost calls that two goroutines of a group share */

struct group {
	struct backtrace bt;	/* of the first found */
	int n;
};

static bool same_place(const struct backtrace *a, const struct backtrace *b)
{
	for (size_t i = 0; i < SAME_FRAMES && (i < a->n || i < b->n); i++)
		if (i >= a->n || i >= b->n || a->pc[i] != b->pc[i])
			return false;
	return true;
}

/* Why a goroutine keeps its thread, and the report's words after their number. */
enum kind { BLOCKED, LOCKED, PREEMPTED, KINDS };

static const char *const kind_text[KINDS] = {
	[BLOCKED] = " goroutines are in blocking calls\n",
	[LOCKED] = " goroutines are locked to their threads\n",
	[PREEMPTED] = " goroutines were preempted and wait to go on on their threads\n",
};

/* In a blocking call, announced or not. */
static bool is_blocked(struct m *mp, const struct g *gp)
{
	/* acquire: what backtrace_regs reads of gp; pairs with store_release in
	 * leave_p_behind, goro_blocking and, by way of p_take, rt_try_exit */
	return load_relaxed(&mp->tid) != 0 && gp && !gp->is_foreign &&
	       (load_acquire(&gp->status) == G_SYSCALL || load_acquire(&mp->attn) & ATTN_TAKEN);
}

/* The goroutine that keeps mp's thread at this moment, or NULL. */
static TOOL_RACY const struct g *keeper_of(struct m *mp, enum kind *kind)
{
	/* acquire: pairs with store_release in attach of foreign.c */
	const struct g *gp = load_acquire(&mp->curg);

	*kind = BLOCKED;
	if (is_blocked(mp, gp))
		return gp;
	gp = peek(&mp->locked_g);
	if (gp)
		*kind = peek(&gp->lock_depth) > 0 ? LOCKED : PREEMPTED;
	return gp;
}

/* Groups the goroutines of this kind, *all in number. Returns the number of groups. */
static int collect(struct group *group, enum kind which, int *all)
{
	static struct backtrace bt;
	int n = 0, i;

	*all = 0;
	for (struct m *mp = load_acquire(&sched.all_m); mp; mp = mp->all_link) {
		enum kind kind;
		const struct g *gp = keeper_of(mp, &kind);

		if (!gp || kind != which)
			continue;
		++*all;
		if (kind == BLOCKED)
			backtrace_thread(&bt, mp, gp);
		else
			backtrace_any(&bt, gp);
		for (i = 0; i < n && !same_place(&group[i].bt, &bt); i++)
			;
		if (i == GROUPS)
			continue;
		if (i == n) {
			group[n].bt = bt;
			group[n++].n = 0;
		}
		group[i].n++;
	}
	return n;
}

static void print_kind(struct printer *pr, enum kind kind)
{
	static struct group group[GROUPS];
	int all, n = collect(group, kind, &all);

	if (all == 0 && kind != BLOCKED)
		return;
	print_format(pr, "runtime: %d%s", all, kind_text[kind]);
	for (int shown = 0; shown < GROUPS_SHOWN; shown++) {
		struct group *most = &group[0];

		for (int i = 1; i < n; i++)
			if (group[i].n > most->n)
				most = &group[i];
		if (n == 0 || most->n == 0)
			break;
		print_format(pr, "\n%d of them here:\n", most->n);
		dump_frames(pr, &most->bt);
		most->n = 0;
	}
	print_str(pr, "\n");
	print_flush(pr);
}

static void print_keepers(struct printer *pr)
{
	for (enum kind kind = 0; kind < KINDS; kind++)
		print_kind(pr, kind);
}

FILL(limit_keepers, print_keepers);

/*
 * limit.c - how many threads there may be, and the report when that is not enough.
 *
 * Three kinds of goroutines keep their thread: those in a blocking call, which are
 * nearly always the reason; those that goro_lock_os_thread ties to it; and those
 * that were preempted in the middle of user code. The report says how many there are
 * of each kind, and where: goroutines with the same innermost calls are counted
 * together, and the largest groups shown with their trace.
 *
 * By the spawner, which is no M: the program may be in any state.
 */
#include "limit.h"

#include <errno.h>
#include <goro.h>
#include <limits.h>
#include <unistd.h>

#include "dump.h"
#include "runtime.h"

#define GROUPS      32	/* that are told apart .. */
#define GROUPS_SHOWN 5
#define SAME_FRAMES  6	/* .. by this many innermost calls */

static int limit = THREADS_MAX;

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

/* Why a goroutine keeps its thread, and how the report says it of a number of them. */
enum kind { BLOCKED, LOCKED, PREEMPTED, KINDS };

static const char *const kind_text[KINDS] = {
	[BLOCKED] = " goroutines are in blocking calls\n",
	[LOCKED] = " goroutines are locked to their threads\n",
	[PREEMPTED] = " goroutines were preempted and wait to go on on their threads\n",
};

/* In a blocking call, announced or not. */
static bool is_blocked(struct m *mp, const struct g *gp)
{
	return load_relaxed(&mp->tid) != 0 && gp && !gp->is_foreign &&
	       (load_relaxed(&gp->status) == G_SYSCALL || load_acquire(&mp->attn) & ATTN_TAKEN);
}

/* The goroutine that keeps mp's thread, or NULL. It goes on meanwhile: what is said
 * of it is right for one moment. */
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

/* Fills group with the places where goroutines of this kind are; how many places. */
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
	print_str(pr, "runtime: ");
	print_int(pr, all);
	print_str(pr, kind_text[kind]);
	for (int shown = 0; shown < GROUPS_SHOWN; shown++) {
		struct group *most = &group[0];

		for (int i = 1; i < n; i++)
			if (group[i].n > most->n)
				most = &group[i];
		if (n == 0 || most->n == 0)
			break;
		print_str(pr, "\n");
		print_int(pr, most->n);
		print_str(pr, " of them here:\n");
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

void limit_check(int threads)
{
	struct printer pr = print_to_fd(STDERR_FILENO);
	int most = load_relaxed(&limit);

	if (threads <= most)
		return;
	print_str(&pr, "runtime: program exceeds ");
	print_int(&pr, most);
	print_str(&pr, "-thread limit\n");
	print_keepers(&pr);
	throw("thread exhaustion");
}

void limit_reached(int threads, int error)
{
	struct printer pr = print_to_fd(STDERR_FILENO);

	print_str(&pr, "runtime: failed to create new OS thread (have ");
	print_int(&pr, threads);
	print_str(&pr, " already; errno=");
	print_int(&pr, error);
	print_str(&pr, ")\n");
	if (error == EAGAIN)
		print_str(&pr, "runtime: may need to increase max user processes (ulimit -u)\n");
	print_keepers(&pr);
	throw("newosproc");
}

int goro_set_max_threads(int n)
{
	return exchange_acqrel(&limit, n > 0 ? n : INT_MAX);
}

/*
 * limit.c - how many threads there may be, and the report when that is not enough.
 *
 * A goroutine in a blocking call keeps its thread, so what runs out of threads is
 * nearly always a program with thousands of goroutines in such calls. The report
 * says how many there are, and where: threads with the same innermost calls are
 * counted together, and the largest groups shown with their trace.
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

/* In a blocking call, announced or not. */
static bool is_blocked(struct m *mp, const struct g *gp)
{
	return load_relaxed(&mp->tid) != 0 && gp && !gp->is_foreign &&
	       (load_relaxed(&gp->status) == G_SYSCALL || load_acquire(&mp->attn) & ATTN_TAKEN);
}

/* Fills group; how many there are. *others: blocked in yet other places. */
static int collect(struct group *group, int *all, int *others)
{
	static struct backtrace bt;
	int n = 0, i;

	*all = *others = 0;
	for (struct m *mp = load_acquire(&sched.all_m); mp; mp = mp->all_link) {
		/* acquire: pairs with store_release in attach of foreign.c */
		const struct g *gp = load_acquire(&mp->curg);

		if (!is_blocked(mp, gp))
			continue;
		++*all;
		backtrace_thread(&bt, mp, gp);
		for (i = 0; i < n && !same_place(&group[i].bt, &bt); i++)
			;
		if (i == GROUPS) {
			++*others;
			continue;
		}
		if (i == n) {
			group[n].bt = bt;
			group[n++].n = 0;
		}
		group[i].n++;
	}
	return n;
}

static void print_blocked(struct printer *pr)
{
	static struct group group[GROUPS];
	int all, others, n = collect(group, &all, &others);

	print_str(pr, "runtime: ");
	print_int(pr, all);
	print_str(pr, " goroutines are in blocking calls\n");
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

void limit_check(int threads)
{
	struct printer pr = print_to_fd(STDERR_FILENO);
	int most = load_relaxed(&limit);

	if (threads <= most)
		return;
	print_str(&pr, "runtime: program exceeds ");
	print_int(&pr, most);
	print_str(&pr, "-thread limit\n");
	print_blocked(&pr);
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
	print_blocked(&pr);
	throw("newosproc");
}

int goro_set_max_threads(int n)
{
	return exchange_acqrel(&limit, n > 0 ? n : INT_MAX);
}

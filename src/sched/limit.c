/*
 * limit.c - how many threads there may be.
 *
 * Called by the spawner, which is no M: the program may be in any state.
 */
#include <errno.h>
#include <goro.h>
#include <limits.h>
#include <unistd.h>

#include "sched/runtime.h"

static int limit = THREADS_MAX;

void (*limit_keepers)(struct printer *pr);

static void print_keepers(struct printer *pr)
{
	if (limit_keepers)
		limit_keepers(pr);
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

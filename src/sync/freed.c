/* freed.c - keeps freed objects for a while. See freed.h. */
#include "sync/freed.h"

#include <stdlib.h>

#include "base/debug.h"
#include "sched/rt.h"
#include "platform/tool.h"

/* ASan keeps freed memory itself, and reports more. */
#if GORO_CHECKS && !TOOL_ASAN && !TOOL_TSAN
#define KEPT_BY_DEFAULT true
#else
#define KEPT_BY_DEFAULT false
#endif

static bool keeps(void)
{
	return debug.chan > 0 || (KEPT_BY_DEFAULT && debug.chan == 0);
}

static void keep(void *block)
{
	static void *kept[FREED_KEPT];
	static uint32_t next;

	/* acqrel: it is freed after all writes to it; pairs with itself */
	free(exchange_acqrel(&kept[fetch_add_relaxed(&next, 1) % FREED_KEPT], block));
}

bool freed_release(void *block, struct lock *l)
{
	if (likely(!keeps())) {
		free(block);
		return false;
	}
	if (l) {
		check(load_relaxed(&l->word) == 0 && !l->freed);
		l->freed = true;
		l->word = 1;
	}
	keep(block);
	return true;
}

/*
 * freed.c - what was freed is kept for a while. See freed.h.
 */
#include "freed.h"

#include <stdlib.h>

#include "debug.h"
#include "rt.h"
#include "tool.h"

/* ASan keeps what is freed itself, and says more. */
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

	/* acqrel: whoever frees it comes after what was written to it; pairs with itself */
	free(exchange_acqrel(&kept[fetch_add_relaxed(&next, 1) % FREED_KEPT], block));
}

bool freed_release(void *block, struct lock *l)
{
	if (likely(!keeps())) {
		free(block);
		return false;
	}
	if (l) {
		l->freed = true;
		l->word = 1;
	}
	keep(block);
	return true;
}

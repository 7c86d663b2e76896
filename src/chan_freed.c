/*
 * chan_freed.c - channels that are used after their last goro_chan_unref.
 *
 * With GORO_DEBUG=chan=1, and in debug builds unless chan=-1, a channel's memory is not
 * given back with its last reference. It is kept, marked, until CHANS_KEPT others have
 * been freed, and a call that is given it panics.
 *
 * That costs nothing where it is off, nor on the short ways of send and receive. A kept
 * channel is closed, and its lock is held for good. So every operation that looks at it
 * wants its lock, does not get it at once, and comes to chan_lock_late, which looks at the
 * mark before it waits.
 *
 * A reference that is taken or dropped when none is left is seen in the count, without
 * the setting too, as long as nobody else has been given the memory.
 */
#include <stdlib.h>

#include "chan.h"
#include "debug.h"
#include "panic.h"

/* Freed channels are found out for as long as it takes to free this many others. */
#define CHANS_KEPT 4096

/* ASan keeps what is freed itself, and says more. */
#if GORO_CHECKS && !TOOL_ASAN && !TOOL_TSAN
#define KEPT_BY_DEFAULT true
#else
#define KEPT_BY_DEFAULT false
#endif

static bool keeps_freed(void)
{
	return debug.chan > 0 || (KEPT_BY_DEFAULT && debug.chan == 0);
}

static void keep(goro_chan *c)
{
	static goro_chan *kept[CHANS_KEPT];
	static uint32_t next;
	goro_chan *oldest;

	c->freed = true;
	c->closed = true;
	c->of_timer = true;	/* for goro_chan_len and goro_chan_cap */
	c->lock.word = 1;
	/* acqrel: whoever frees it has seen the mark, which is written here */
	oldest = exchange_acqrel(&kept[fetch_add_relaxed(&next, 1) % CHANS_KEPT], c);
	if (oldest)
		free(oldest->block);
}

void chan_free(goro_chan *c)
{
	if (unlikely(keeps_freed()))
		keep(c);
	else
		free(c->block);
}

/* In user code. */
_Noreturn void chan_panic_freed(const char *what)
{
	goro_panic("%s freed channel", what);
}

void chan_lock_late(goro_chan *c, const char *what)
{
	if (c->freed) {
		rt_exit(m_self());
		chan_panic_freed(what);
	}
	lock_acquire(&c->lock);
}

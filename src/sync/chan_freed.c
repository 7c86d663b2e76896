/*
 * chan_freed.c - channels that are used after their last goro_chan_unref: they panic,
 * where they are kept (freed.h).
 *
 * A kept channel is closed as well. So sends and receives that do not wait, which look at
 * a channel without its lock, go on to the lock, too, and come to chan_lock_late.
 *
 * A reference that is taken or dropped when none is left is seen in the count, without
 * the setting too, as long as nobody else has been given the memory.
 */
#include "chan.h"
#include "freed.h"
#include "panic.h"

void chan_free(goro_chan *c)
{
	/* Before it is kept, and perhaps freed by another thread. It is gone either way. */
	c->closed = true;
	c->of_timer = true;	/* so that goro_chan_len and goro_chan_cap look closer */
	freed_release(c->block, &c->lock);
}

/* In user code. */
_Noreturn void chan_panic_freed(const char *what)
{
	goro_panic("%s freed channel", what);
}

void chan_lock_late(goro_chan *c, const char *what)
{
	if (c->lock.freed) {
		rt_exit(m_self());
		chan_panic_freed(what);
	}
	lock_acquire(&c->lock);
}

/*
 * chan_freed.c - a channel that is used after its last goro_chan_unref panics while its
 * memory is kept (freed.h).
 *
 * A kept channel is closed as well: then a try operation, which first looks without the
 * lock, goes on to the lock, too, and ends in chan_lock_late.
 *
 * goro_chan_ref and goro_chan_unref find out from the count alone, without the setting,
 * as long as malloc has not reused the memory.
 */
#include "sync/chan.h"
#include "sync/freed.h"
#include "goroutine/panic.h"

void chan_free(goro_chan *c)
{
	check(c->selects == 0 && waitq_empty(&c->sendq) && waitq_empty(&c->recvq));
	/* Before freed_release, after which another thread may free it. */
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

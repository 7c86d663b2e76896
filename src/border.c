/*
 * border.c - the slow ways in and out of the runtime. See "Owning a P" in rt.h.
 */
#include "runtime.h"

struct m *rt_enter_slow(struct m *mp)
{
	uint32_t attn;

	if (!mp)
		return foreign_attach();
	attn = load_acquire(&mp->attn);
	for (;;) {
		if (attn & ATTN_FORKED)
			fatal("goro call in a child made by fork without exec");
		if (attn & ATTN_CLAIMED) {
			/* Ours again, if the taker has not finished. */
			if (cas_acqrel(&mp->attn, &attn, attn & ~(uint32_t)ATTN_CLAIMED))
				attn &= ~(uint32_t)ATTN_CLAIMED;
		} else if (attn & ATTN_TAKEN) {
			if (cas_acqrel(&mp->attn, &attn, attn & ~(uint32_t)ATTN_TAKEN)) {
				store_relaxed(&mp->p, NULL);
				return sched_regain(mp);
			}
		} else {
			return mp;
		}
	}
}

/* Claims and takings are seen to at the next entry; a request to yield now. */
void rt_exit_slow(struct m *mp)
{
	if (!(load_relaxed(&mp->attn) & ATTN_YIELD))
		return;
	mp = rt_enter();
	fetch_and_acqrel(&mp->attn, ~(uint32_t)ATTN_YIELD);
	if (!mp->is_foreign) {
		count_up(&mp->p->count.preemptions, 1);
		mp = sched_yield_global(mp);
	}
	rt_exit(mp);
}

/*
 * profile_sample.c - CPU samples: taken in a handler, and counted there.
 *
 * A sampled thread has a timer on its CPU time, whose signal comes to that very thread
 * while it runs. The handler walks the interrupted stack, and counts it in a table that
 * all threads share. As in Go it waits for the table's lock by spinning: all signals are
 * blocked in the handler, so the holder leaves soon, unless the kernel has taken its CPU.
 * A sample is lost if that lasts. Rejected: a ring for each thread, which a collector
 * empties. Threads rarely meet at the table: to walk a stack takes much longer.
 *
 * Sampling is switched off under the lock, too: no handler adds to the table afterwards.
 *
 * The handler walks the stack by unwind tables (unwind.c). That takes no lock, and reads
 * only the stack that sp is on, from sp upwards: the goroutine's, or the thread's. For a
 * thread that has never called goro it is the mapping that sp lies in, read from
 * /proc/self/maps once. On any other stack (the program may switch stacks itself) only
 * sp's page is sure to exist. All registers are known, so nothing is guessed. Rejected:
 * frame pointers. libc and most programs have none.
 */
#include "profile/profile_sample.h"

#include <string.h>

#include "platform/maps.h"
#include "platform/os.h"
#include "sched/rt.h"
#include "stack/stack.h"

/* Room for some hundred thousand different stacks. */
#define TABLE_BYTES_MAX (64 << 20)

/* How often a handler tries to take the table's lock. */
#define TRIES_MAX 1000

/* A thread that switches stacks all the time is not looked up each time. */
#define STACK_LOOKS_MAX 16

struct samples samples = { .table.records.bytes_max = TABLE_BYTES_MAX };

static uint32_t locked;		/* 1: a thread is at samples.table */
static int64_t period;		/* 0: off; written under the lock */
static uint32_t turn;		/* the number of the profile */

/* The stack of a thread without an M, found in this turn. */
static __thread struct {
	uint32_t turn;
	int looks;		/* how often it was looked for */
	uintptr_t lo, hi;
} plain;

/* False: another thread has held the lock for long. acquire: the table; pairs with the
 * store_release in unlock */
static bool lock(void)
{
	uint32_t nobody = 0;

	for (int i = 0; !cas_acquire(&locked, &nobody, 1); i++) {
		if (i == TRIES_MAX)
			return false;
		nobody = 0;
		os_yield();
	}
	return true;
}

static void unlock(void)
{
	store_release(&locked, 0);
}

static void set_period(int64_t to)
{
	while (!lock())
		;
	store_relaxed(&period, to);
	unlock();
}

void sampling_begin(int64_t of)
{
	check(load_relaxed(&period) == 0);
	profile_table_free(&samples.table);
	samples.lost = 0;
	store_relaxed(&turn, turn + 1);
	set_period(of);
}

void sampling_end(void)
{
	set_period(0);
}

/* -------------------------------------------------------------- the handler */

/* The goroutine whose stack sp is on: the running one, unless the thread is on the
 * scheduler's stack (NULL), or in the middle of a switch. */
static const struct g *g_on(const struct m *mp, uintptr_t sp)
{
	const struct g *gp = mp->curg;
	struct g *other;

	if (mp->is_foreign || (gp && sp >= (uintptr_t)gp->stack.lo && sp < (uintptr_t)gp->stack.hi))
		return gp;
	return stack_find((void *)sp, &other) == STACK_INSIDE ? other : NULL;
}

static bool find_stack(const struct maps_line *line, void *arg)
{
	uintptr_t sp = *(const uintptr_t *)arg;

	if (sp >= line->end)
		return true;
	if (sp >= line->start) {
		plain.lo = line->start;
		plain.hi = line->end;
	}
	return false;
}

static bool is_on_plain(uintptr_t sp)
{
	return sp >= plain.lo && sp < plain.hi;
}

/* For a thread that never called goro. */
static void walk_plain(const struct unwind_regs *regs, struct backtrace *bt)
{
	uintptr_t sp = regs->reg[UNWIND_SP], hi = (sp | (os_page_bytes - 1)) + 1;

	if (plain.turn != load_relaxed(&turn)) {
		plain.turn = load_relaxed(&turn);
		plain.looks = 0;
		plain.lo = plain.hi = 0;
	}
	if (!is_on_plain(sp) && plain.looks < STACK_LOOKS_MAX) {
		plain.looks++;
		maps_each(find_stack, &sp);
	}
	if (is_on_plain(sp))
		hi = plain.hi;
	bt->n = unwind_walk(regs, sp & ~(uintptr_t)15, hi, bt->pc, BACKTRACE_MAX);
}

/* Walks the stack into bt. Returns the goroutine, or NULL: none was running. */
static const struct g *walk(const struct unwind_regs *regs, struct backtrace *bt)
{
	const struct m *mp = m_self();
	const struct g *gp;

	if (!mp) {
		walk_plain(regs, bt);
		return NULL;
	}
	gp = g_on(mp, regs->reg[UNWIND_SP]);
	backtrace_regs(bt, regs, gp, mp);
	return gp && !gp->is_foreign ? gp : NULL;
}

static void take(int times, const void *uc)
{
	struct unwind_regs regs;
	struct backtrace bt;
	struct profile_key key = { .pc = bt.pc };
	char name[G_NAME_BYTES] = "";
	const struct g *gp;

	unwind_regs_from_ucontext(&regs, uc);
	gp = walk(&regs, &bt);
	key.n = bt.n;
	if (gp) {
		key.name = memcpy(name, gp->name, sizeof name - 1);
		key.id = gp->id;
	}
	if (!lock()) {
		fetch_add_relaxed(&samples.lost, (uint64_t)times);
		return;
	}
	/* Short-lived goroutines, with a record each, must not fill the table. */
	if (samples.table.records.chunks.bytes > TABLE_BYTES_MAX / 2)
		key.id = 0;
	if (load_relaxed(&period))
		profile_table_add(&samples.table, &key, times, times * load_relaxed(&period));
	unlock();
}

bool sample_on_signal(const siginfo_t *info, const void *uc)
{
	int times;

	if (os_signal_timer(info, &times) != &samples)
		return false;
	if (load_relaxed(&period))
		take(times, uc);
	return true;
}

TOOL_RACY bool sample_lose(const siginfo_t *info)
{
	int times;

	if (os_signal_timer(info, &times) != &samples)
		return false;
	if (load_relaxed(&period))
		fetch_add_relaxed(&samples.lost, (uint64_t)times);
	return true;
}

/*
 * tool.c - what tools need beyond tool.h: leaks, and where TSan itself is.
 *
 * Leaks
 *
 * LeakSanitizer looks once, when the process ends: it stops all threads, and what cannot
 * be reached from global variables, registers, the threads' stacks and the regions that
 * were named to it has leaked. What it misses are the stacks of goroutines at rest, and
 * the G at the top of each, with its defers, locals and timers. So the look is taken
 * here, before its own, with the world stopped: no goroutine leaves its rest then. Of one
 * that is not at rest the whole stack is named.
 *
 * The look takes locks of the sanitizer's, which a goroutine that was stopped in malloc
 * may hold. So a thread of its own takes it, and if that does not end the world goes on
 * meanwhile: better to see a leak where there is none than to hang.
 *
 * A sanitized program
 *
 * ASan and LSan come with a program that was built with them, whatever the library was
 * built with: weak symbols tell. ASan believes that a thread is on the stack it was made
 * with until it is told otherwise. On another one its vfork clears its notes on the whole
 * memory between the two, for minutes; a panic leaves marks on frames that are gone. So
 * each switch tells it, where sched.heed has PROGRAM_ASAN.
 */
#define _GNU_SOURCE
#include "platform/tool.h"

#include <link.h>
#include <string.h>

#include "sched/runtime.h"
#include "stack/stack.h"

/* How long the world stays stopped for a look that does not end. */
#define HELD_UP_NS INT64_C(1000000000)

/* Below sp the compiler may keep variables, too. */
#define RED_ZONE_BYTES 128

static void show(struct g *gp, void *arg)
{
	const char *lo = gp->stack.lo, *end = (const char *)(gp + 1);

	(void)arg;
	if (load_acquire(&gp->status) == G_DEAD)
		return;
	/* acquire: its context, if it is at rest; pairs with after_run */
	if (!load_acquire(&gp->mp))
		lo = (const char *)gp->context.sp - RED_ZONE_BYTES;
	__lsan_register_root_region(lo, (size_t)(end - lo));
}

/* Each M's last lock after a switch may be that of a channel that nothing else refers
 * to. */
static void forget_traces(void)
{
	for (struct m *mp = load_acquire(&sched.all_m); mp; mp = mp->all_link)
		mp->after.arg = NULL;
}

static struct note may_look, has_looked;

static void *look(void *arg)
{
	(void)arg;
	note_sleep(&may_look);
	__lsan_do_leak_check();
	note_wake(&has_looked);
	return NULL;
}

static void look_while_stopped(void)
{
	bool apart = m_thread_make_quiet(look, NULL) == 0;
	struct m *mp = world_stop(rt_enter());
	bool done;

	forget_traces();
	stack_each(show, NULL);
	if (apart)
		note_wake(&may_look);
	else
		__lsan_do_leak_check();
	done = !apart || note_sleep_for(&has_looked, HELD_UP_NS);
	rt_exit(world_start(mp, sched.gomaxprocs));
	if (!done)
		note_sleep(&has_looked);
}

void tool_exit(bool forked)
{
	const struct m *mp = m_self();

	if (!forked && (!mp || load_relaxed(&mp->state) == M_USER)) {
		look_while_stopped();
	} else {
		forget_traces();
		stack_each(show, NULL);
		__lsan_do_leak_check();
	}
}

#if TOOL_TSAN

static uintptr_t inside_start, inside_end;	/* its code */

static int find_inside(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size; (void)arg;
	if (!strstr(info->dlpi_name, "/libtsan.so"))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD && (ph->p_flags & PF_X)) {
			inside_start = info->dlpi_addr + ph->p_vaddr;
			inside_end = inside_start + ph->p_memsz;
		}
	}
	return 1;
}

bool tool_init(void)
{
	dl_iterate_phdr(find_inside, NULL);
	return inside_end != 0;
}

TOOL_RACY bool tool_is_inside(uintptr_t pc)
{
	return pc >= inside_start && pc < inside_end;
}

#endif

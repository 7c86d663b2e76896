/*
 * tool.c - what tools need beyond tool.h: leaks, and where TSan itself is.
 *
 * Leaks
 *
 * LeakSanitizer looks once, when the process ends: stops all threads, and whatever was
 * allocated and cannot be reached from global variables, registers, the stacks of
 * threads and the regions that were named to it has leaked. A thread's stack is the
 * one that it is on, a goroutine's if it runs one. What is missing are the stacks
 * of goroutines at rest, and the G at the top of each, which holds its defers,
 * locals and timers.
 *
 * So the look is taken here, before its own, with the world stopped: no goroutine
 * leaves its rest then. One that runs on without its P may still go to rest, so of
 * those that are not at rest the whole stack is named.
 */
#define _GNU_SOURCE
#include "tool.h"

#include <link.h>
#include <string.h>

#include "runtime.h"
#include "stack.h"
#include "world.h"

#if TOOL_ASAN

/* Below sp the compiler may keep variables, too. */
#define RED_ZONE_BYTES 128

static void show(struct g *gp, void *arg)
{
	const char *lo = gp->stack_lo, *end = (const char *)(gp + 1);

	(void)arg;
	if (load_acquire(&gp->status) == G_DEAD)
		return;
	/* acquire: its context, if it is at rest; pairs with after_run */
	if (!load_acquire(&gp->mp))
		lo = (const char *)gp->context.sp - RED_ZONE_BYTES;
	__lsan_register_root_region(lo, (size_t)(end - lo));
}

/* The lock that was last released after a switch is perhaps that of a channel that
 * nobody knows any more. */
static void forget_traces(void)
{
	for (struct m *mp = load_acquire(&sched.all_m); mp; mp = mp->all_link)
		mp->after_arg = NULL;
}

void tool_exit(bool forked)
{
	struct m *mp = m_self();
	bool stop = !forked && (!mp || load_relaxed(&mp->state) == M_USER);

	if (stop)
		mp = world_stop(rt_enter());
	forget_traces();
	stack_each(show, NULL);
	__lsan_do_leak_check();
	if (stop)
		rt_exit(world_start(mp, sched.gomaxprocs));
}

#endif

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

/*
 * frame.c - which frames of a goroutine's trace are the program's.
 *
 * A goroutine's stack ends in the address of its function plus one (backtrace.h), which
 * no return address is: a call instruction is longer than that.
 *
 * In user code a goro_ function may have functions of the program's inside it, as
 * goro_try has. So only a goro_ function that never calls the program hides the frames
 * inside it. The outermost of those is the one that the program called: goro_read unlocks
 * a mutex by goro_mutex_unlock.
 */
#include "observe/frame.h"

#include <string.h>

#include "platform/context.h"
#include "sched/g.h"
#include "goroutine/run.h"

/* The runtime's own calls are not deeper than this. */
#define FRAMES_OF_RUNTIME 16

static uint64_t number_of(const char *name)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (const char *s = name; *s; s++)
		h = (h ^ (uint8_t)*s) * UINT64_C(0x100000001b3);
	return *name ? h : 0;
}

static bool calls_program(const char *function)
{
	static const char *const names[] = {
		"goro_try", "goro_blocking", "goro_once_do", "goro_run", "goro_goexit", "goro_panic",
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(function, names[i]) == 0)
			return true;
	return false;
}

struct frame frame_of_symbol(uintptr_t address, const struct symbol *sym)
{
	uintptr_t start = address - sym->offset;
	bool is_api = strncmp(sym->function, "goro_", 5) == 0;

	return (struct frame){
		.function = number_of(sym->function),
		.is_api = is_api,
		.calls_back = is_api && calls_program(sym->function),
		.is_beginning = start == (uintptr_t)g_start || start == (uintptr_t)run_main ||
		                start == (uintptr_t)context_entry,
		.is_first = sym->function[0] && sym->offset == 0,
	};
}

struct frame frame_of_address(void *unused, uintptr_t address)
{
	struct symbol sym = { .function = "" };

	(void)unused;
	symbol_find(address, &sym);
	return frame_of_symbol(address, &sym);
}

/* The index of the function that the program called; 0 if it called none. */
static size_t called_by_program(const uintptr_t *pc, size_t n, enum frames from,
                                struct frame (*look)(void *arg, uintptr_t address), void *arg)
{
	size_t called = 0;
	bool found = false;

	for (size_t i = 0; i < n && i < FRAMES_OF_RUNTIME; i++) {
		struct frame f = look(arg, pc[i] - (i > 0));
		bool hides = f.is_api && !f.calls_back;

		if (hides || (from == FRAMES_RUNTIME && !found && (f.is_api || f.is_beginning))) {
			called = i;
			found = true;
		}
	}
	return called;
}

size_t frame_program(const uintptr_t *pc, size_t n, enum frames from,
                     struct frame (*look)(void *arg, uintptr_t address), void *arg, uintptr_t *out)
{
	struct frame start = { .is_first = false };
	size_t first = 0, end = n, count = 0;

	if (n > 1)
		start = look(arg, pc[n - 1] - 1);
	if (start.is_first)
		end--;
	if (from != FRAMES_ALL)
		first = called_by_program(pc, end, from, look, arg);
	while (end > first + !start.is_first && look(arg, pc[end - 1] - (end > 1)).is_beginning)
		end--;
	for (size_t i = first; i < end; i++)
		out[count++] = pc[i] - (i > 0);
	if (!start.is_first || start.is_api || start.is_beginning ||
	    (count > 0 && look(arg, out[count - 1]).function == start.function))
		return count;
	out[count++] = pc[n - 1] - 1;
	return count;
}

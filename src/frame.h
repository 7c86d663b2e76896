/*
 * frame.h - which frames of a goroutine's trace are the program's.
 *
 * Frames of the runtime itself are left out of what people read: those a goroutine
 * waits in, above the call of the program's (the innermost frame shown is the goro_
 * function that was called), and those it started in.
 */
#ifndef GORO_FRAME_H
#define GORO_FRAME_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "context.h"
#include "g.h"
#include "run.h"
#include "symbol.h"

/* How far in the function that the program called can be: the runtime is not deeper. */
#define FRAMES_OF_RUNTIME 16

/* A function of ours that the program calls. */
static inline bool frame_is_api(const struct symbol *sym)
{
	return strncmp(sym->function, "goro_", 5) == 0;
}

/* One that every goroutine begins with. pc: what sym describes. */
static inline bool frame_is_beginning(uintptr_t pc, const struct symbol *sym)
{
	uintptr_t start = pc - sym->offset;

	return start == (uintptr_t)g_start || start == (uintptr_t)run_main ||
	       start == (uintptr_t)context_entry;
}

/* Without what compilers append to the names of clones (".isra.0"). */
static inline size_t frame_name_length(const struct symbol *sym)
{
	return strcspn(sym->function, ".");
}

#endif

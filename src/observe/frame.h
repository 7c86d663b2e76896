/*
 * frame.h - which frames of a goroutine's trace are the program's. Defined in frame.c.
 *
 * Frames of the runtime itself are left out of what people read:
 *
 *	the innermost	those in which the runtime works for the program: the innermost frame shown
 *			is the goro_ function that the program called
 *	the outermost	those that every goroutine begins in: the outermost frame shown is the
 *			function that the goroutine was started with, also if that has left by a
 *			tail call
 */
#ifndef GORO_FRAME_H
#define GORO_FRAME_H

#include "backtrace.h"
#include "symbol.h"

/* What is known of a frame. */
struct frame {
	uint64_t function;	/* the same number: the same name; 0: unknown */
	bool is_api;		/* a function of ours that the program calls */
	bool calls_back;	/* .. and that calls a function of the program's */
	bool is_beginning;	/* a function of ours that goroutines begin in */
	bool is_first;		/* the address is a function's first */
};

/* Describes the function at an address, for sym is what symbol_find says of it. */
struct frame frame_of_symbol(uintptr_t address, const struct symbol *sym);
/* The same for any address: the usual look. */
struct frame frame_of_address(void *unused, uintptr_t address);

/* The addresses of a stack that a reader is to see, to out: of instructions, calls among them,
 * and not of where they return to. How many, and no more than n. look describes an address. */
size_t frame_program(const uintptr_t *pc, size_t n, enum frames from,
                     struct frame (*look)(void *arg, uintptr_t address), void *arg, uintptr_t *out);

#endif

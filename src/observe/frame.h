/*
 * frame.h - which frames of a goroutine's trace are the program's. Defined in frame.c.
 *
 * What people read leaves out the frames of the runtime itself:
 *
 *	innermost	the runtime's work for the program. The innermost frame shown is
 *			the goro_ function that the program called.
 *	outermost	where every goroutine begins. The outermost frame shown is the
 *			function that the goroutine was started with, even if that has
 *			left by a tail call.
 */
#ifndef GORO_FRAME_H
#define GORO_FRAME_H

#include "observe/backtrace.h"
#include "unwind/symbol.h"

/* What is known of a frame. */
struct frame {
	uint64_t function;	/* a hash of its name; 0: unknown */
	bool is_api;		/* a goro_ function */
	bool calls_back;	/* a goro_ function that calls one of the program's */
	bool is_beginning;	/* a function of the runtime's that goroutines begin in */
	bool is_first;		/* the address is a function's first */
};

/* Describes the function at an address, of which symbol_find found sym. */
struct frame frame_of_symbol(uintptr_t address, const struct symbol *sym);
/* The same for any address: the usual look. */
struct frame frame_of_address(void *unused, uintptr_t address);

/* Puts the addresses that a reader is to see into out, at most n, and returns their
 * number. They are of instructions: of calls, not of where calls return to. look
 * describes an address. */
size_t frame_program(const uintptr_t *pc, size_t n, enum frames from,
                     struct frame (*look)(void *arg, uintptr_t address), void *arg, uintptr_t *out);

#endif

/*
 * valgrind.h (x86-64) - a request to valgrind, see tool.h.
 *
 * The sequence is part of valgrind's interface (valgrind/valgrind.h): outside valgrind
 * the rotations add up to 128 bits, two full turns, and nothing happens.
 */
#ifndef GORO_ARCH_VALGRIND_H
#define GORO_ARCH_VALGRIND_H

#include <stdint.h>

/* valgrind's answer; 0 outside valgrind. */
static inline uintptr_t valgrind_request(uintptr_t request, uintptr_t a, uintptr_t b)
{
	const uintptr_t words[6] = { request, a, b };
	uintptr_t answer = 0;

	__asm__ volatile("rolq $3, %%rdi\n\t"
	                 "rolq $13, %%rdi\n\t"
	                 "rolq $61, %%rdi\n\t"
	                 "rolq $51, %%rdi\n\t"
	                 "xchgq %%rbx, %%rbx"
	                 : "+d"(answer)
	                 : "a"(words)
	                 : "cc", "memory");
	return answer;
}

#endif

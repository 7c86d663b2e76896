/*
 * valgrind.h (aarch64) - a request to valgrind, see tool.h.
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
	register uintptr_t answer __asm__("x3") = 0;
	register const uintptr_t *at __asm__("x4") = words;

	__asm__ volatile("ror x12, x12, #3\n\t"
	                 "ror x12, x12, #13\n\t"
	                 "ror x12, x12, #51\n\t"
	                 "ror x12, x12, #61\n\t"
	                 "orr x10, x10, x10"
	                 : "+r"(answer)
	                 : "r"(at)
	                 : "cc", "memory");
	return answer;
}

#endif

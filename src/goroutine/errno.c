/*
 * errno.c - errno for code that may change its thread within a function.
 *
 * libc declares the function behind errno const, so a compiler may look its
 * address up once and use it after a call that comes back on another thread.
 * goro.h makes errno a call of this one instead, about which it may assume
 * nothing.
 */
#include <errno.h>

#include <goro.h>

#undef errno
#define errno (*__errno_location())

__attribute__((noinline)) int *goro_errno(void)
{
	int *p = &errno;

	__asm__ volatile("" : "+r"(p) : : "memory");
	return p;
}

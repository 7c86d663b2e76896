/*
 * errno.c - errno for goroutines, which may change their thread within a function.
 *
 * libc declares the function behind errno const, so a compiler may compute its address
 * once and use it after a call that returns on another thread. goro.h makes errno a call
 * of goro_errno instead, about which the compiler may assume nothing.
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

/*
 * syscall_raw.h (x86-64) - a system call. Returns the result or a negative errno value,
 * and leaves errno alone: errno belongs to the goroutine.
 */
#ifndef GORO_ARCH_SYSCALL_RAW_H
#define GORO_ARCH_SYSCALL_RAW_H

static inline long syscall_raw(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
	                 : "=a"(ret)
	                 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
	                 : "rcx", "r11", "memory");
	return ret;
}

#endif

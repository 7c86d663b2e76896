/*
 * sys.h - system calls by the number of their arguments, each of any type. They return
 * the result or a negative errno value, and leave errno alone.
 */
#ifndef GORO_SYS_H
#define GORO_SYS_H

#if defined(__x86_64__)
#include "platform/x86_64/syscall_raw.h"
#else
#include "platform/aarch64/syscall_raw.h"
#endif


#define sys0(nr) syscall_raw(nr, 0, 0, 0, 0, 0, 0)
#define sys1(nr, a) syscall_raw(nr, (long)(a), 0, 0, 0, 0, 0)
#define sys2(nr, a, b) syscall_raw(nr, (long)(a), (long)(b), 0, 0, 0, 0)
#define sys3(nr, a, b, c) syscall_raw(nr, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define sys4(nr, a, b, c, d) syscall_raw(nr, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define sys5(nr, a, b, c, d, e) \
	syscall_raw(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)
#define sys6(nr, a, b, c, d, e, f) \
	syscall_raw(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

#endif

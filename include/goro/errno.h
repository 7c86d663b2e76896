/*
 * goro/errno.h - errno in programs whose goroutines move between threads.
 *
 * Part of goro.h, which says what holds for all of it. Include that one.
 */
#ifndef GORO_H_ERRNO
#define GORO_H_ERRNO

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A thread's errno may be another's after a call that parks, and the C library
 * lets compilers remember its address. This one they look up every time. */
GORO_API int *goro_errno(void);
#ifndef GORO_NO_ERRNO
#undef errno
#define errno (*goro_errno())
#endif

#ifdef __cplusplus
}
#endif

#endif

/*
 * valgrind.h - requests to valgrind, for this processor.
 */
#ifndef GORO_BASE_VALGRIND_H
#define GORO_BASE_VALGRIND_H

#if defined(__x86_64__)
#include "base/x86_64/valgrind.h"
#else
#include "base/aarch64/valgrind.h"
#endif

#endif

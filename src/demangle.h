/*
 * demangle.h - C++ names as people write them, shortened. Defined in demangle.c.
 *
 * Async-signal-safe: no allocation, no locks.
 */
#ifndef GORO_DEMANGLE_H
#define GORO_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

/* The function that a mangled name of n bytes means, in out: "ns::table<...>::find", without
 * its parameters. False: it is none, or of a kind that is not known here; out is undefined. */
bool demangle(const char *name, size_t n, char *out, size_t max);

#endif

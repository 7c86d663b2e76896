/*
 * environment.h - GORO_... variables: the runtime reads them only here.
 */
#ifndef GORO_ENVIRONMENT_H
#define GORO_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

/* The value of a variable; NULL: it is empty or not set, or the program is privileged. */
const char *environment_get(const char *name);

/* The value with each %p replaced by the process id. False: it is longer than max. */
bool environment_expand(const char *value, char *out, size_t max);

/* Opens and empties the file that the variable names. -1: the variable is not set, or the
 * error is on stderr. User code only. */
int environment_open(const char *name);

/* Says on stderr what is wrong with the variable's value. User code only. */
void environment_complain(const char *name, const char *why);

#endif

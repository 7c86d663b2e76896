/*
 * environment.h - GORO_... variables: the only way by which the runtime reads them.
 */
#ifndef GORO_ENVIRONMENT_H
#define GORO_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

/* The value of a variable; NULL if it is empty, not set, or the program is privileged. */
const char *environment_get(const char *name);

/* The value with each %p replaced by the number of this process. False: it is longer than max. */
bool environment_expand(const char *value, char *out, size_t max);

/* Opens the file that the variable names, to be written from its beginning. -1: the variable
 * is not set, or stderr has been told what is wrong with it. User code only. */
int environment_open(const char *name);

/* Tells stderr that the variable's value does not do. User code only. */
void environment_complain(const char *name, const char *why);

#endif

/*
 * schedtrace.h - GORO_DEBUG=schedtrace=ms. Defined in schedtrace.c.
 */
#ifndef GORO_SCHEDTRACE_H
#define GORO_SCHEDTRACE_H

#include <stdbool.h>
#include <stdint.h>

bool schedtrace_on(void);
/* Prints if it is time. sysmon. */
void schedtrace_tick(int64_t now);

#endif

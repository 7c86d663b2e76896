/*
 * sysmon.h - the thread that watches. Defined in sysmon.c.
 */
#ifndef GORO_SYSMON_H
#define GORO_SYSMON_H

#include "base/hook.h"

/* Run by sysmon, at each of its ticks. Takes no libc lock and never waits. */
extern struct hook *at_tick;

#endif

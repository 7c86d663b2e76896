/*
 * restart.h - interrupted system calls, for this processor.
 */
#ifndef GORO_PREEMPT_RESTART_H
#define GORO_PREEMPT_RESTART_H

#if defined(__x86_64__)
#include "preempt/x86_64/restart.h"
#else
#include "preempt/aarch64/restart.h"
#endif

#endif

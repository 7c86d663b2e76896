/*
 * syscall_raw.h - system calls, for this processor.
 */
#ifndef GORO_BASE_SYSCALL_RAW_H
#define GORO_BASE_SYSCALL_RAW_H

#if defined(__x86_64__)
#include "base/x86_64/syscall_raw.h"
#else
#include "base/aarch64/syscall_raw.h"
#endif

#endif

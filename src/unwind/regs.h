/* regs.h - what the unwinder knows of this processor */
#ifndef GORO_UNWIND_REGS_H
#define GORO_UNWIND_REGS_H

#if defined(__x86_64__)
#include "unwind/x86_64/regs.h"
#else
#include "unwind/aarch64/regs.h"
#endif

#endif

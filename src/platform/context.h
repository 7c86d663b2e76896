/*
 * context.h - the switch, for this processor.
 */
#ifndef GORO_BASE_CONTEXT_H
#define GORO_BASE_CONTEXT_H

/* Where a new context begins: calls g_start(pass), and jumps to sched_exit with the
 * result. Its return address is undefined in the unwind tables, so that every unwinder
 * stops here. */
void context_entry(void);

/*
 * The current M, which m_self reads anew at every call. A compiler may keep the address
 * of a thread-local variable across a call that comes back on another thread. It may
 * neither keep nor merge a volatile asm.
 */
struct m;
extern __thread struct m *goro_tls_m
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

#if defined(__x86_64__)
#include "platform/x86_64/context.h"
#else
#include "platform/aarch64/context.h"
#endif

#endif

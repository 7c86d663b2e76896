/*
 * g.h - a goroutine's end, and the pools of dead ones. Defined in g.c.
 */
#ifndef GORO_G_H
#define GORO_G_H

#include <stddef.h>

void g_init(void);
/* Where a goroutine begins; called by context_entry. */
struct m;
struct g;
struct m *g_start(struct m *mp);
/* Ends the current goroutine, gp; its defers have run. In user code. */
_Noreturn void g_end(struct g *gp);
size_t g_pool_cached_bytes(void);

#endif

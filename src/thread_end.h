/*
 * thread_end.h - a thread that ends while it runs a goroutine. Defined in thread_end.c.
 */
#ifndef GORO_THREAD_END_H
#define GORO_THREAD_END_H

#include <stdint.h>

/* context_entry's personality routine. The unwinder calls it, with enums and pointers of its
 * own. */
int thread_end_personality(int version, int actions, uint64_t kind, void *exception, void *context);
/* The handler of pthread_cleanup_push in an M's first frame. */
void thread_end_cleanup(void *unused);

#endif

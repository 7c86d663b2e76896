/*
 * threads.h - how many threads the runtime has.
 */
#ifndef GORO_TEST_THREADS_H
#define GORO_TEST_THREADS_H

#include "runtime.h"

static inline int threads(void)
{
	int n;

	lock_acquire(&sched.lock);
	n = sched.m_n;
	lock_release(&sched.lock);
	return n;
}

#endif

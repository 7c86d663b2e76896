/*
 * thread_count.h - how many threads the runtime has.
 */
#ifndef GORO_TEST_THREAD_COUNT_H
#define GORO_TEST_THREAD_COUNT_H

#include "sched/runtime.h"

static inline int threads(void)
{
	int n;

	lock_acquire(&sched.lock);
	n = sched.m_n;
	lock_release(&sched.lock);
	return n;
}

#endif

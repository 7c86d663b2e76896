/*
 * m_end.h - threads of ours that end, and the end of the process. Defined in m_end.c.
 */
#ifndef GORO_M_END_H
#define GORO_M_END_H

#include <stdbool.h>

/* Whether threads may end just now. */
bool m_may_end(void);
/* The calling thread is about to end. Returns when it may. */
void m_end_begin(void);

/* goro_run begins: threads may end. */
void m_ends_allow(void);
/* goro_run is about to return: no thread is ending now, and none will. */
void m_ends_stop(void);

/* In a child made by fork: there is nobody who could be ending. */
void m_ends_forked(void);

#endif

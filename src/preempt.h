/*
 * preempt.h - signals that stop a goroutine. Defined in preempt.c.
 */
#ifndef GORO_PREEMPT_H
#define GORO_PREEMPT_H

struct m;

void preempt_init(void);
void preempt_thread_init(struct m *mp);	/* on that thread */
void preempt_thread_end(struct m *mp);

#endif

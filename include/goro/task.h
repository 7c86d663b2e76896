/*
 * goro/task.h - a goroutine whose result is wanted.
 *
 * Part of goro.h, which says what holds for all of it. Include that one.
 */
#ifndef GORO_H_TASK
#define GORO_H_TASK

#include "base.h"
#include "chan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a thread has in pthread_create and pthread_join. Starts fn(arg) as a goroutine.
 * Each task is joined or detached once. NULL: no memory. */
typedef struct goro_task goro_task;
GORO_API goro_task *goro_task_go(void *(*fn)(void *arg), void *arg);
/* Waits until the deadline, a goro_now() time or GORO_FOREVER, for the goroutine to end.
 * 0, and *result is what fn returned, or NULL after goro_goexit; the task is freed.
 * -ETIMEDOUT: it goes on, and the task is still to be joined. result may be NULL. */
GORO_API int goro_task_join(goro_task *t, int64_t deadline, void **result);
/* Nobody will join: the task is freed when the goroutine ends. */
GORO_API void goro_task_detach(goro_task *t);
/* A channel that is closed when the goroutine has ended, for select. Belongs to t. */
GORO_API goro_chan *goro_task_done(goro_task *t);

#ifdef __cplusplus
}
#endif

#endif

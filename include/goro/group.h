/*
 * goro/group.h - groups and worker pools.
 *
 * Part of goro.h, which says what holds for all of it. Include that one.
 */
#ifndef GORO_H_GROUP
#define GORO_H_GROUP

#include "base.h"
#include "ctx.h"

#ifdef __cplusplus
extern "C" {
#endif

/* golang.org/x/sync/errgroup: goroutines that work on one thing together. The
 * first of them to return other than 0 cancels the group's context, with that as
 * the cause; and that is what goro_group_wait returns.
 *
 * The context is a child of parent (NULL: of the background). limit is how many
 * may run at once; 0: any number. NULL: no memory. */
typedef struct goro_group goro_group;
GORO_API goro_group *goro_group_make(goro_ctx *parent, int limit);
GORO_API goro_ctx *goro_group_ctx(goro_group *g);   /* belongs to the group */
/* Starts fn(ctx, arg) in the group, when the limit allows. 0 or -ENOMEM. */
GORO_API int goro_group_go(goro_group *g, int (*fn)(goro_ctx *ctx, void *arg), void *arg);
/* The same without waiting. False: not started. */
GORO_API bool goro_group_try_go(goro_group *g, int (*fn)(goro_ctx *ctx, void *arg), void *arg);
/* Waits for all to end, cancels the context and frees the group. 0, or the first
 * error. Only once. */
GORO_API int goro_group_wait(goro_group *g);

/* Workers, goroutines that are there already, behind a queue of so many tasks. A
 * queue of 0 hands each task to a worker that is free. A task is like a goroutine's
 * function: a panic in it that nobody stops ends the process. Its defers run at its
 * end; what it keeps with goro_local_set is its worker's. NULL: no memory, or no
 * workers asked for. */
typedef struct goro_pool goro_pool;
GORO_API goro_pool *goro_pool_make(int workers, size_t queue);
/* Queues fn(arg), waiting for room until the deadline: a goro_now() time, GORO_NOW
 * or GORO_FOREVER. 0; -ETIMEDOUT: there was no room; -ESHUTDOWN: the pool is being
 * closed. Tasks are taken in the order in which they were submitted. */
GORO_API int goro_pool_submit(goro_pool *p, void (*fn)(void *), void *arg, int64_t deadline);
/* More workers, or fewer: those in excess finish the task they have. 0, -ENOMEM
 * with as many as could be had, -EINVAL if workers < 1, -ESHUTDOWN. */
GORO_API int goro_pool_resize(goro_pool *p, int workers);
/* Lets the workers do all that is queued, waits for them to end, and frees the
 * pool. Who waits to submit is refused. Not from a task of the pool. */
GORO_API void goro_pool_close(goro_pool *p);

/* Of one moment: submitted = completed + busy + queued. */
struct goro_pool_stats {
	uint64_t submitted;    /* tasks accepted                                  */
	uint64_t completed;    /* tasks done                                      */
	uint64_t rejected;     /* submits that failed                             */
	size_t queued;         /* tasks that wait for a worker                    */
	int workers;           /* how many there are to be                        */
	int busy;              /* workers with a task                             */
	int waiting;           /* submits that wait for room                      */
};
GORO_API void goro_pool_stats(goro_pool *p, struct goro_pool_stats *out);

#ifdef __cplusplus
}
#endif

#endif

/*
 * goro/sync.h - mutexes, wait groups, conditions, once, semaphores.
 *
 * Part of goro.h, which says what holds for all of it. Include that one.
 */
#ifndef GORO_H_SYNC
#define GORO_H_SYNC

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All of these are ready to use when zeroed, except goro_sema. They may be locked
 * in one goroutine or thread and unlocked in another, are not recursive, and must
 * not be copied or moved once in use. */

typedef struct { uint32_t opaque[2]; } goro_mutex;      /* sync.Mutex          */
/* Who has waited for a millisecond is served before all newcomers. Unlocking what
 * is not locked ends the process. */
GORO_API void goro_mutex_lock(goro_mutex *m);
GORO_API bool goro_mutex_try_lock(goro_mutex *m);
GORO_API void goro_mutex_unlock(goro_mutex *m);

typedef struct { uint64_t opaque[4]; } goro_rwmutex;    /* sync.RWMutex        */
/* Any number of readers, or one writer. A writer that waits keeps new readers out,
 * so a goroutine must not rlock twice; readers that waited go before the next
 * writer. */
GORO_API void goro_rwmutex_rlock(goro_rwmutex *m);
GORO_API bool goro_rwmutex_try_rlock(goro_rwmutex *m);
GORO_API void goro_rwmutex_runlock(goro_rwmutex *m);
GORO_API void goro_rwmutex_lock(goro_rwmutex *m);
GORO_API bool goro_rwmutex_try_lock(goro_rwmutex *m);
GORO_API void goro_rwmutex_unlock(goro_rwmutex *m);

typedef struct { uint64_t opaque[2]; } goro_waitgroup;  /* sync.WaitGroup      */
/* wait returns when the counter is zero. Add before what is to be waited for
 * starts. A counter below zero panics. */
GORO_API void goro_waitgroup_add(goro_waitgroup *wg, int delta);
GORO_API void goro_waitgroup_done(goro_waitgroup *wg);  /* add(wg, -1)         */
GORO_API void goro_waitgroup_wait(goro_waitgroup *wg);
/* Starts fn(arg) as a goroutine and counts it until it ends: sync.WaitGroup.Go. 0, or
 * -ENOMEM with nothing started and nothing counted. */
GORO_API int goro_waitgroup_go(goro_waitgroup *wg, void (*fn)(void *arg), void *arg);

typedef struct { uint64_t opaque[2]; } goro_once;       /* sync.Once           */
/* Runs fn(arg) if this is the first call with o; all calls return when that is
 * over. A panic in fn passes through the first call, and counts as an end. */
GORO_API void goro_once_do(goro_once *o, void (*fn)(void *), void *arg);

typedef struct { uint64_t opaque[4]; } goro_cond;       /* sync.Cond           */
/* wait unlocks m, which the caller has locked, sleeps until it is notified, and
 * locks m again. There are no notifications for nothing, but what was waited for
 * may be over by then: wait in a loop. signal wakes the one who waits longest, if
 * any; broadcast all. They may be called with or without m locked. */
GORO_API void goro_cond_wait(goro_cond *c, goro_mutex *m);
GORO_API void goro_cond_signal(goro_cond *c);
GORO_API void goro_cond_broadcast(goro_cond *c);

/* golang.org/x/sync/semaphore: so many units, acquired and released any number at
 * a time, served strictly in order. Zeroed has no units: init it. */
typedef struct { uint64_t opaque[4]; } goro_sema;
GORO_API void goro_sema_init(goro_sema *s, int64_t units);
/* 0, or -ETIMEDOUT with nothing acquired: always that once the deadline (a
 * goro_now() time; GORO_FOREVER: none) has passed, even if there are units. More
 * than there are in all is waited for in vain. */
GORO_API int goro_sema_acquire(goro_sema *s, int64_t units, int64_t deadline);
GORO_API bool goro_sema_try_acquire(goro_sema *s, int64_t units);
/* Panics if so many are not acquired. */
GORO_API void goro_sema_release(goro_sema *s, int64_t units);

#ifdef __cplusplus
}
#endif

#endif

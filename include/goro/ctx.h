/*
 * goro/ctx.h - contexts.
 *
 * Part of goro.h, which says what holds for all of it. Include that one.
 */
#ifndef GORO_H_CTX
#define GORO_H_CTX

#include "base.h"
#include "chan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Go's context.Context: what is to be done is over, when and why; and values that
 * go with it. Contexts form a tree: a child is done when its parent is, for the
 * same reason. Any number of goroutines and threads may use one at once.
 *
 * Reference counted. Each that is made comes with one reference, and keeps its
 * parent; the last goro_ctx_unref of it cancels it. NULL: no memory. A NULL parent
 * panics. */
typedef struct goro_ctx goro_ctx;
GORO_API goro_ctx *goro_ctx_ref(goro_ctx *c);
GORO_API void goro_ctx_unref(goro_ctx *c);

/* The root: never done, no values, no deadline. Not counted. */
GORO_API goro_ctx *goro_ctx_background(void);
/* Done when cancelled, or with its parent. */
GORO_API goro_ctx *goro_ctx_with_cancel(goro_ctx *parent);
/* Also done at the deadline, a goro_now() time, or at its parent's, if that is
 * earlier; one in the past is done already. */
GORO_API goro_ctx *goro_ctx_with_deadline(goro_ctx *parent, int64_t deadline);
/* The same, ns from now: a duration. */
GORO_API goro_ctx *goro_ctx_with_timeout(goro_ctx *parent, int64_t ns);
/* Has a value, too. A key is an address: that of a static variable of yours keeps
 * it apart from everybody else's. NULL panics. */
GORO_API goro_ctx *goro_ctx_with_value(goro_ctx *parent, const void *key, void *value);
/* Has its parent's values, and is never done. */
GORO_API goro_ctx *goro_ctx_without_cancel(goro_ctx *parent);

/* Cancels c and all below it, which is so when the call returns. No effect on one
 * that is done already, or never done. A cause, a negative errno value of your
 * choice, is what goro_ctx_cause tells of c and those below it. */
GORO_API void goro_ctx_cancel(goro_ctx *c);
GORO_API void goro_ctx_cancel_cause(goro_ctx *c, int cause);

/* A channel that is closed when c is done; NULL, on which one waits forever, if it
 * never is. Belongs to c. Receive with NULL for the element. */
GORO_API goro_chan *goro_ctx_done(goro_ctx *c);
GORO_API int goro_ctx_err(goro_ctx *c);     /* 0: not done; -ECANCELED, -ETIMEDOUT */
GORO_API int goro_ctx_cause(goro_ctx *c);   /* 0: not done; err if none was given  */
GORO_API int64_t goro_ctx_deadline(goro_ctx *c);   /* a time; GORO_FOREVER if none */
/* The value for key of c, or of the nearest above it that has one; or NULL. */
GORO_API void *goro_ctx_value(goro_ctx *c, const void *key);

/* Starts fn(arg) as a goroutine once c is done. It does not count as a reference.
 * NULL: no memory. Every one that is not NULL is to be stopped once, also after fn
 * has run, which frees it. True: fn will not run. Stopping does not wait for an fn
 * that has been started. */
typedef struct goro_ctx_func goro_ctx_func;
GORO_API goro_ctx_func *goro_ctx_after_func(goro_ctx *c, void (*fn)(void *), void *arg);
GORO_API bool goro_ctx_func_stop(goro_ctx_func *f);

#ifdef __cplusplus
}
#endif

#endif

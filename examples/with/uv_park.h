/*
 * uv_park.h - a loop of libuv's as a goroutine: it parks where uv_run blocks.
 *
 * To be copied, with uv_park.c. As ever with libuv, the loop and its handles are for its
 * own goroutine alone, that is for callbacks, but for uv_async_send: call that in other
 * goroutines. A callback may start goroutines, and may even park; the loop waits
 * meanwhile.
 */
#ifndef UV_PARK_H
#define UV_PARK_H

#include <uv.h>

/* As uv_run(loop, UV_RUN_DEFAULT), until no handle is active any more; uv_stop does not
 * end it. 0, or -errno as of libuv. */
int uv_park_run(uv_loop_t *loop);

#endif

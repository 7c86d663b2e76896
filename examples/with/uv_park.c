/*
 * uv_park.c - see uv_park.h.
 *
 * What the loop waits for is in one descriptor, the backend's. It is ready when uv_run
 * has something to do.
 */
#include "uv_park.h"

#include <goro.h>
#include <poll.h>

int uv_park_run(uv_loop_t *loop)
{
	while (uv_run(loop, UV_RUN_NOWAIT)) {
		int ms = uv_backend_timeout(loop);	/* < 0: none */
		int r = goro_poll(uv_backend_fd(loop), POLLIN, ms < 0 ? GORO_FOREVER :
		                  goro_deadline_in(ms * GORO_MILLISECOND));

		if (r < 0)
			return r;
	}
	return 0;
}

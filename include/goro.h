/*
 * goro.h - goroutines for C.
 *
 *	#include <goro.h>
 *
 *	static void worker(goro_chan *results, int i)
 *	{
 *		int square = i * i;
 *
 *		goro_chan_send(results, &square);
 *		goro_chan_unref(results);
 *	}
 *
 *	static int start(int argc, char **argv)
 *	{
 *		goro_chan *results = goro_chan_of(int, 0);
 *
 *		for (int i = 0; i < 10; i++)
 *			go(worker, goro_chan_ref(results), i);
 *		...
 *	}
 *	GORO_MAIN(start)
 *
 * The headers that it includes, one for each topic, are in the folder goro beside it.
 *
 * Conventions
 *   - Every name starts with goro_ or GORO_. The one short name is go(), which
 *     -DGORO_NO_SHORT_NAMES turns off.
 *   - What can fail for reasons outside the program returns 0 (or a count) on
 *     success and a negative errno value on failure. errno itself is never the
 *     way to report; it is kept across every call.
 *   - Misuse that Go turns into a panic panics here, with Go's message.
 *   - Every blocking call works in a goroutine, which it parks, and in a plain
 *     thread that the program made itself, which it blocks.
 *   - Durations and times are int64_t nanoseconds; times are CLOCK_MONOTONIC.
 *   - A C++ exception stays with the goroutine that throws it, and passes through
 *     goro_blocking, goro_try and goro_once_do. One that leaves a goroutine's function,
 *     a deferred function or a destructor of goro_key_make ends the program with a
 *     report, by std::terminate.
 *   - Types whose size is public (goro_mutex, ...) are valid when zeroed.
 *   - An object may be freed or go out of scope as soon as a call shows that
 *     nobody needs it any more, even while the call on the other side has not
 *     returned yet: a waitgroup once goro_waitgroup_wait returns, a channel once
 *     its last value or its close has been received, a mutex once its last holder
 *     has unlocked it.
 */
#ifndef GORO_H
#define GORO_H

#include "goro/base.h"

#include "goro/run.h"
#include "goro/go.h"
#include "goro/panic.h"
#include "goro/chan.h"
#include "goro/select.h"
#include "goro/time.h"
#include "goro/sync.h"
#include "goro/io.h"
#include "goro/signal.h"
#include "goro/ctx.h"
#include "goro/group.h"
#include "goro/task.h"
#include "goro/observe.h"

#include "goro/errno.h"

#endif

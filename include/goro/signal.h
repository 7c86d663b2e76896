/*
 * goro/signal.h - signals as values on channels.
 *
 * Part of goro.h, which says what holds for all of it. Include that one.
 */
#ifndef GORO_H_SIGNAL
#define GORO_H_SIGNAL

#include "base.h"
#include "chan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* os/signal.Notify: a channel on which the numbers (int) of these signals arrive
 * when they do; n 0: of all that can be had. Several channels may be for the same
 * signal, and all get it. As long as there is one, the signal's usual effect is
 * off. Nobody waits for the receiver: 128 signals find room on a channel, and what
 * comes when it is full is lost to it. Different signals may arrive in another
 * order than they were sent in.
 *
 * SIGKILL and SIGSTOP cannot be had. SIGSEGV and other signals that are faults come
 * here only if somebody sent them.
 *
 * The channel is the caller's, to be unref'd when it is stopped. NULL: no memory. */
GORO_API goro_chan *goro_signal_notify(const int *signals, size_t n);
/* Nothing is sent on c any more when this returns: what came before has been, and
 * what comes from now on has the effect it had before c, unless it is wanted on
 * another channel. No effect on a channel that is stopped or not of notify. */
GORO_API void goro_signal_stop(goro_chan *c);

#ifdef __cplusplus
}
#endif

#endif

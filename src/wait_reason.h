/*
 * wait_reason.h - why a goroutine waits, in Go's words (runtime2.go's
 * waitReasonStrings), as dumps and traces show them.
 */
#ifndef GORO_WAIT_REASON_H
#define GORO_WAIT_REASON_H

#define WAIT_REASON_LIST(X)                              \
	X(WAIT_NONE, "")                                 \
	X(WAIT_CHAN_RECV, "chan receive")                \
	X(WAIT_CHAN_SEND, "chan send")                   \
	X(WAIT_CHAN_RECV_NIL, "chan receive (nil chan)") \
	X(WAIT_CHAN_SEND_NIL, "chan send (nil chan)")    \
	X(WAIT_SELECT, "select")                         \
	X(WAIT_SELECT_NO_CASES, "select (no cases)")     \
	X(WAIT_SEMACQUIRE, "semacquire")                 \
	X(WAIT_MUTEX_LOCK, "sync.Mutex.Lock")            \
	X(WAIT_RWMUTEX_RLOCK, "sync.RWMutex.RLock")      \
	X(WAIT_RWMUTEX_LOCK, "sync.RWMutex.Lock")        \
	X(WAIT_WAITGROUP_WAIT, "sync.WaitGroup.Wait")    \
	X(WAIT_COND_WAIT, "sync.Cond.Wait")              \
	X(WAIT_SLEEP, "sleep")                           \
	X(WAIT_IO, "IO wait")                            \
	X(WAIT_RUN, "goro_run")

enum wait_reason {
#define X(id, text) id,
	WAIT_REASON_LIST(X)
#undef X
	WAIT_REASON_COUNT
};

const char *wait_reason_text(enum wait_reason reason);

#endif

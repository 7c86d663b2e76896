/*
 * types.h - the runtime's structures: G, M, P, sched.
 *
 *	G	a goroutine: a stack, and its registers while it does not execute
 *	M	an OS thread
 *	P	a processor: the right to run goroutines, and the queues for them;
 *		there are GOMAXPROCS of them
 *
 * An M needs a P to run goroutines. The room sched chooses who runs, and when: queues,
 * stealing, parking, threads, the poller, the timers, stopping the world. It uses base,
 * platform, stack and timer, and calls rooms above it only through hooks. It offers
 * runtime.h to them. Read: types.h, runtime.h; rt.h and border.c (owning a P); sched.c
 * (picking); runq.c, steal.c, steal_trial.c (queues, stealing); park.c (waking); g.c
 * (goroutines); m.c, idle.c (threads); p.c, world.c, procs.c (Ps); timers.c; netpoll.c.
 *
 * Fields are grouped by the lock or the owner that guards them. "Owner writes, X reads"
 * means relaxed atomics, unless the field says more.
 */
#ifndef GORO_TYPES_H
#define GORO_TYPES_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "platform/atomic.h"
#include "base/config.h"
#include "platform/context.h"
#include "base/lock.h"
#include "platform/tool.h"
#include "sched/steal.h"
#include "stack/stack.h"
#include "timer/timer.h"

struct backtrace;
struct cxx_state;
struct fd;
struct g;
struct m;
struct p;
struct p_io;
struct trace_buf;
struct trace_region;

/* ------------------------------------------------------------------ states */

/* A goroutine's state says who owns it and its stack. */
#define G_STATUS_LIST(X)                                                      \
	/* Being made or in a pool; owned by its maker, or by the pool. */    \
	X(G_DEAD, "dead")                                                     \
	/* On exactly one run queue, not executing; owned by the queue. */    \
	X(G_RUNNABLE, "runnable")                                             \
	/* Executing user or runtime code on gp->mp, which owns it. */        \
	X(G_RUNNING, "running")                                               \
	/* In an announced blocking call on gp->mp, which owns it. */         \
	X(G_SYSCALL, "syscall")                                               \
	/* Parked; on no run queue; owned by what it waits for (a channel's   \
	 * queue, ...). The waker that takes it from there calls g_ready. */  \
	X(G_WAITING, "waiting")
enum g_status {
#define X(id, name) id,
	G_STATUS_LIST(X)
#undef X
	G_STATUS_COUNT
};

/* Why a goroutine waits, in Go's words (runtime2.go's waitReasonStrings), as dumps and
 * traces show them. */
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

enum p_status {
	P_IDLE,			/* on sched.idle_p; sched.lock owns it */
	P_RUNNING,		/* owned by an M: pp->mp */
	P_SYSCALL,		/* left behind in an announced call; owned by the
				 * thread whose CAS changes this: syscall.c */
	P_STOPPED,		/* the world is stopped; owned by the stopper */
	P_DEAD,			/* beyond GOMAXPROCS now; its queues are empty */
};

/* Where an M is, as seen by a taker of its P. See "Owning a P" in rt.h. */
enum m_state {
	M_RUNTIME,		/* in the runtime: nobody else touches its P */
	M_USER,			/* in user code: its P may be taken */
	M_SYSCALL,		/* in an announced call, its P left in P_SYSCALL */
};

/* A P's status while its M is in an announced call names the M. */
#define P_STATUS_OF(word) ((enum p_status)((word) & 0xff))
#define P_SYSCALL_OF(mp)  (P_SYSCALL | (uint32_t)(mp)->id << 8)

/* Where the signal handler stops a thread without a P. See convoy.c. */
enum stop_where {
	STOP_ANYWHERE,
	STOP_FREE,		/* where it does not hold the lock that it slept on */
	STOP_WAITING,		/* only while it still sleeps on that lock */
};

/* What an M sees to when it enters or leaves the runtime. */
enum {
	ATTN_CLAIMED = 1,	/* a taker is about to take the P */
	ATTN_TAKEN = 2,		/* the P is gone */
	ATTN_YIELD = 4,		/* the goroutine gives way when it leaves */
	ATTN_SLICE = 128,	/* the same, if the P's slice is still m.over_tick */
	ATTN_FORKED = 8,	/* this is a child made by fork: no runtime here */
	ATTN_GIVEN = 64,	/* the M got a P in user code: m.given */
	ATTN_TIMERS = 32,	/* timers of the P are due: the M runs them */
	ATTN_FENCE = 16,	/* no membarrier here: the M fences at every crossing */
	ATTN_BLOCKER = 1024,	/* a goroutine that is known to block has begun: its P is
				 * to be handed over when it leaves; blockers.c */
	ATTN_PLAIN = 256,	/* a plain thread before its first entry: alone.h */
	ATTN_SIM = 512,		/* simulated: every crossing is a point */
	ATTN_GIVE_WAY = ATTN_YIELD | ATTN_SLICE,
};

/* --------------------------------------------------------------- goroutine */

struct defer {
	struct defer *next;
	void (*fn)(void *);
	void *arg;
	bool in_frame;		/* of a function of the runtime's: it is not freed */
};

struct try_frame;
struct panic;
struct local_slot;

/* A goroutine in a queue of waiters. Only elem points to the goroutine's stack. */
struct waiter {
	struct g *gp;
	struct waiter *next, *prev;
	union {
		void *key;		/* the channel that it waits for */
		uint32_t ticket;	/* cond.c: its turn */
		int64_t units;		/* semaphore.c: how many it wants */
	};
	void *elem;		/* the value to send, or where to receive it */
	int index;		/* in select: the number of its case */
	bool is_send;
	bool is_select;		/* of a select; a waker claims it by select_claim */
	bool queued;		/* in select: still on the channel's queue */
	bool ok;		/* a value came, not a close */
};

struct waitq {
	struct waiter *first, *last;
};

/* A goroutine asleep on an address: see sema.c. */
struct sleeper {
	struct g *gp;
	const uint32_t *addr;
	struct sleeper *next;		/* the next one on the same address */
	struct sleeper *last;		/* the last one on it; valid in the first one */
	struct sleeper *child[2];	/* other addresses; valid in the first one */
	int64_t since;			/* for the mutex profile; 0: no profile */
};

/* A goroutine that waits for a descriptor, or for its call to be made: see fd_wait.c. The
 * descriptor's lock guards it while it is queued; who takes it off writes the result. */
struct io_wait {
	struct io_link {		/* in the descriptor's queue of that way */
		struct io_link *next, *prev;	/* NULL: in no queue */
	} in[2];			/* enum fd_way */
	void *buf;		/* of a call that others may make; NULL: none */
	int why;		/* enum io_woken, or -errno: why it goes on */
	int flags;		/* MSG_ flags of that call */
	size_t bytes;		/* the size of buf */
	ssize_t result;		/* what the call returned */
	struct fd *fd;
};

/* What the execution trace knows; owned with the G, the M or the P. See trace_event.c. */
struct g_trace {
	uint32_t gen;		/* the generation that knows the goroutine */
	uint32_t seq;		/* its last sequence number in that generation */
	uint32_t named_in;	/* the generation that knows its name */
	struct trace_region *regions;	/* open regions; its own, in user code */
};

struct m_trace {
	struct trace_buf *buf;	/* NULL: none yet */
	bool in_call;		/* traced: its goroutine is in a blocking call */
	bool preempted;		/* its goroutine is about to give way on request */
	/* Of a plain thread: the goroutine that the trace shows for it. */
	uint64_t g;
	struct g_trace of_g;
};

struct p_trace {
	uint32_t gen, seq;	/* as in g_trace */
	int m;			/* the M that left the P behind in a blocking call */
};

/* The cases of a select that needs no memory beyond the G. */
#define G_WAITERS 4
#define G_ARGS 6
#define G_NAME_BYTES 32

/*
 * Lies at the top of its own stack. What starting, switching and ending touch comes
 * first, in three cache lines.
 */
struct g {
	/* The owner by status writes; dumps, traces and sysmon read status, mp,
	 * locked_m. */
	struct context context;	/* valid while it does not execute */
	int saved_errno;
	uint16_t status;	/* enum g_status */
	bool timed;		/* runnable, and wait_since is a stamp of latency.c */
	struct g *link;		/* the next one in the list that owns it */
	struct m *mp;		/* the M whose thread is on its stack; NULL once it is at
				 * rest */
	struct m *locked_m;	/* the only M that may run it: locked, or stopped where it
				 * stood (preempt.c) */

	/* Written by its maker, constant while it lives. */
	uint64_t id;
	void (*fn)(void);
	uintptr_t arg[G_ARGS];
	uint64_t parent_id;
	void *created_at;	/* return address of the call that started it */
	struct stack stack;	/* the stack that it lies on top of */
	uint8_t stack_class;	/* set when the stack is taken */

	/* The goroutine writes, dumps and sysmon (preempt_off) read. */
	bool is_main;		/* runs a main of goro_run */
	bool goexiting;
	bool untidy;		/* has a name, locals, ...: more to do at its end */
	uint32_t lock_depth;	/* nesting of goro_lock_os_thread */
	uint32_t preempt_off;	/* nesting of goro_preempt_disable */
	struct defer *defers;

	/* Under sched.lock. */
	uint64_t queue_seq;	/* its turn in the global queue */

	/* What a goroutine that parks writes and its waker reads lies in one cache line.
	 * The goroutine writes, then its waker; in between the lock of what it waits for
	 * guards it. */
	uint8_t wait_reason;	/* enum wait_reason */
	bool is_foreign;	/* constant: stands for a plain thread, see foreign.c */
	bool is_internal;	/* constant: the runtime's own, not the program's */
	uint32_t select_seq;	/* odd: a select waits to be claimed; atomic */
	int64_t wait_since;	/* coarse time of the park; if timed, a stamp */
	union {
		struct waiter waiter;
		struct waiter waiters[G_WAITERS];	/* of a select that is not wide */
		struct sleeper sleeper;
		struct io_wait io;
	};
	struct waiter *select_won;	/* of the case that was taken; NULL: none */
	struct timer timer;	/* of a deadline; under its heap's lock */

	/* The goroutine's own; dumps read name while the world is stopped. */
	struct try_frame *tries;
	struct panic *panics;
	struct local_slot *locals;
	char *last_try_message;
	char name[G_NAME_BYTES];
	struct g_trace trace;

	struct tool_fiber tool;
};
_Static_assert(sizeof(struct g) <= STACK_TOP_MAX, "g: it is in the first page, see evacuate.c");
_Static_assert(offsetof(struct g, wait_reason) % CACHE_LINE == 0, "g: waiting is one line");

/* ------------------------------------------------------------------- thread */

/* What sysmon and the handler know of an M (retake.c, convoy.c). sysmon's, but for
 * two. */
struct m_watch {
	uint32_t signalled;	/* a preemption signal is on its way; atomic */
	uint32_t put_off;	/* signals put off in this slice; atomic */
	int64_t signalled_at;	/* when sysmon sent the signal */
	uint32_t steady;	/* slices used up since the thread was last seen asleep */
	int64_t cpu_seen;	/* its CPU clock at sysmon's last look; -1: none in this
				 * slice */
	uintptr_t lock;		/* the lock that it slept on at the last look; 0: none */
};

/* What an M tells another that it wakes to look for work. */
struct m_woken {
	int cpu;		/* the CPU of the waker */
	struct p *by;		/* the waker's P, or NULL */
};

/* A request for the stack of its goroutine: backtrace.c. of is written before wanted. */
struct m_backtrace {
	struct backtrace *wanted;	/* a request; NULL: none to answer; atomic */
	const struct g *of;
	uint32_t done;			/* the answer is complete; atomic */
};

/* What the new context does first: see "After the switch" in sched.c. */
struct after_switch {
	void (*fn)(struct m *mp, struct g *old);	/* NULL: nothing */
	struct g *gp;		/* the goroutine that left; NULL: none did */
	void *arg;
};

struct m {
	/* Atomic, see "Owning a P" in rt.h: the owner writes state and reads attn. */
	_Alignas(CACHE_LINE) uint32_t state;	/* enum m_state */
	uint32_t attn;		/* ATTN_ bits */

	/* Owner M writes; others read curg, p, is_foreign and locked_g. A waker sets
	 * spinning before it hands over a P. */
	struct g *curg;
	struct p *p;		/* the P it owns, or NULL */
	struct context sched_context;	/* its scheduler loop, at rest */
	struct after_switch after;
	struct g *pick;		/* for the scheduler context to run; NULL: none */
	int *errno_at;
	struct cxx_state *cxx;	/* the thread's C++ exceptions; NULL: no C++ here */
	uint32_t fired;		/* timers fired since it began to look for work */
	bool spinning;		/* looks for work; counted in sched.spinning */
	bool is_foreign;	/* stands for a plain thread, see foreign.c */
	bool ending;		/* its thread is to end */
	bool owes_poke;		/* is to call timers_tell for an earliest timer */
	bool starting;		/* counted in sched.m_starting */
	struct g *locked_g;
	uint64_t rng;
	uint64_t sleeps_before;	/* 1 + how often the thread had slept when it handed its P
				 * over in blockers_leave; 0: it did not */
	struct tool_fiber tool;

	/* Atomic: what a sleeping M is woken by. */
	_Alignas(CACHE_LINE) struct note park;
	struct p *next_p;	/* the P handed over; the M exchanges it for NULL */

	/* A holder of sched.lock writes, before it turns ATTN_TAKEN to ATTN_GIVEN. */
	struct p *given;	/* see p_give */

	/* The waker writes, before it hands over a P; then the M's. */
	struct m_woken woken;

	/* Owner M writes (release), others read: the registers while it is stopped in the
	 * handler. */
	const void *stopped_at;	/* ucontext_t */

	/* sysmon writes, the owner M reads. */
	uint64_t over_tick;	/* with ATTN_SLICE: the slice (p_slices) that is over */
	uint32_t slept;		/* the P was taken while the M slept, not while it ran */
	uint32_t stop_where;	/* enum stop_where, of the next signal; the M resets it */
	struct m_watch watch;

	/* Owner M only while it has a P; under sched.lock while it has none. */
	struct m_trace trace;

	struct m_backtrace backtrace;

	/* Under sched.lock. */
	struct {
		struct m *link;		/* the next idle M; in m.c, the next free one */
		struct m **at;		/* what points to it there; NULL: not there */
	} idle;

	/* Constant once it is in sched.all_m, which is read without a lock. */
	struct m *all_link;
	int id;

	/* Written by the thread when it starts and ends; sysmon and dumps read tid. */
	int tid;		/* 0: no thread */
	pthread_t thread;
	struct {
		char *lo, *hi;
	} thread_stack;
	struct g *foreign_g;	/* of a plain thread */
	void *made_at;		/* the call that made the thread, or made it an M */
	struct {
		void *at;
		size_t bytes;
	} signal_stack;
};

/* ---------------------------------------------------------------- processor */

/* The owner pushes and pops at the new end, thieves take from the old: runq.c. */
struct deque {
	_Alignas(CACHE_LINE) uint64_t word;	/* tag:32 claim:16 head:16 */
	uint32_t tail;				/* 16 bits of it; the owner's */
	struct g *slot[GORO_RUNQ_CAP];
};

/* A ring in order: the owner pushes, everybody takes from the old end. */
struct ring {
	_Alignas(CACHE_LINE) uint32_t head;
	uint32_t tail;
	struct g *slot[GORO_RUNQ_CAP];
};

/* Totals, all uint64_t. The P's owner writes; metrics.c adds them up. */
struct p_counts {
	uint64_t created, ended;
	uint64_t switches;	/* goroutines begun or continued on this P */
	uint64_t inherited;	/* switches within the slice of the one before */
	uint64_t parks, steals, stolen, preemptions;
	uint64_t handoffs;	/* of the P, by goroutines in blocking calls */
	uint64_t netpoll_wakeups;	/* goroutines made ready by the poller */
	uint64_t thread_wakeups;	/* of Ms, to run this P */
	uint64_t io_parks;	/* goroutines that began to wait for a descriptor */
	uint64_t io_returns;	/* goroutines that went on after such a wait */
};

/* Times from ready to running: latency.c. The P's owner writes, others read count. */
#define LATENCY_BUCKETS 162
struct latency {
	uint32_t weight_log2;	/* a sample counts for 2^this of Go's samples */
	uint64_t random;
	int64_t last_at;	/* when a goroutine was last timed */
	uint64_t count[LATENCY_BUCKETS];
};

/* Which pick of a P is the next fair one: see "Order of spawns" in runq.c. */
struct p_fair {
	uint32_t in;		/* picks until the fair one; never 0 between two */
	bool global_served;	/* one of the global queue ran since its last turn */
	uint8_t stops;		/* preemptions: after every second one woken goes first */
	uint8_t rest;		/* the next in, while woken goes first; 0: it does not */
	uint32_t turn;		/* turns so far: % 3 says which queue is next */
	int64_t oldest_at;	/* when the oldest of started was last picked */
	int64_t global_at;	/* the same, of the global queue */
	uint32_t ring_end;	/* where woken.head lets an ordered batch in */
};

/* Ids of goroutines that the P has taken from sched.id_next. */
struct p_ids {
	uint32_t batch;		/* how many the P took the last time */
	uint64_t next, end;	/* ids not used yet: [next, end) */
};

/* A slice that began on a thread that was woken for it. */
struct p_slice {
	int64_t at;		/* when it began */
	struct m *mp;		/* the M of that thread */
	uint64_t tick;		/* its number, by p_slices; stored last (release) */
};

/* A P on its way to an M that is woken for it and has its own goroutine: m_recall_p. */
struct p_sent {
	struct m *to;
	int64_t at;
};

struct p {
	int id;			/* constant */

	/* Atomic. */
	uint32_t status;	/* enum p_status; with P_SYSCALL, also the id of its M */
	struct m *mp;		/* the owner; NULL: none, or the P is on its way to one */

	/* Owner M only. */
	struct p_ids ids;
	struct p_fair fair;
	uint32_t latency_in;	/* goroutines made ready until one is timed; never 0 */
	uint32_t gfree_n;	/* goroutines in gfree */
	uint32_t gfresh_n;	/* fresh stacks taken the last time */

	/* Owner M writes, others read. */
	uint32_t deferred;	/* a bit for each work source that has work here */
	struct p_counts count;
	struct p_io *io;	/* put-off calls; NULL: none yet; store_release */

	/* Shared with thieves, by the protocols of runq.c; timers has its own lock. */
	struct g *runnext;	/* made ready by the running G; runs next */
	struct deque started;	/* newly started: newest first, thieves oldest first */
	struct ring woken;	/* made ready: in order */
	struct timers timers;

	/* Any thief writes: see the structs. */
	_Alignas(CACHE_LINE) struct p_steal steal;
	struct p_trial trial;

	/* Under sched.lock. */
	struct p *link;		/* the next one of sched.idle_p or sched.need_m */
	bool spawn_spinning;	/* on sched.need_m: its M is counted in sched.spinning */

	/* Owner M writes, sysmon reads. */
	struct p_slice slice;
	struct p_sent sent;
	struct g *stopped;	/* the goroutine that was last stopped here: convoy.c */

	/* sysmon writes, the owner M reads and clears. */
	struct m *heir;		/* gets the P when its goroutine is stopped; NULL: none */

	/* Owner M only; each seldom. */
	int64_t stopped_at;	/* coarse time of the last preemption here */
	struct latency latency;
	struct p_trace trace;
	struct g *gfree[P_GFREE_MAX];	/* dead, of the default size, oldest first */
};

/* ---------------------------------------------------------------- scheduler */

struct gbatch;			/* see runq.c */

struct gqueue {
	struct g *head, *tail;	/* goroutines that came one by one, by link */
	struct gbatch *batch, *last_batch;	/* goroutines that came together */
	size_t n;		/* goroutines in both; read without the lock */
};

/* The global queue: see runq.c. Under sched.lock. */
struct globq {
	struct gqueue usual;	/* goroutines that run anywhere, and had their slice */
	struct gqueue bound;	/* goroutines that bring their own M */
	struct gqueue started;	/* goroutines that were started and have not run */
	struct gqueue fresh;	/* goroutines that run anywhere, and just came */
	struct gqueue fresh_bound;	/* goroutines with their own M, just come */
	struct gbatch *free_batches;
	uint32_t fresh_row;	/* how many fresh ones were picked in a row */
	uint64_t queue_seq;	/* turns given out */
	_Alignas(CACHE_LINE) uint32_t queued;	/* in all five lists; read unlocked */
};
extern struct globq globq __attribute__((visibility("hidden")));

/* Plain threads (foreign.c), atomic. */
struct plain_threads {
	int parked;		/* threads asleep in a call of goro */
	uint32_t moves;		/* how often a thread went to sleep or was woken */
	uint64_t created;
	uint64_t io_parks, io_returns;	/* as in p_counts */
};

/* An idle thread beyond those in use. NEEDED: all Ps are with threads that sleep in the
 * kernel; if none can be made the program ends. */
enum spare { SPARE_NONE, SPARE_WANTED, SPARE_NEEDED };

struct sched {
	struct lock lock;

	/* Under lock; idle_m_n, idle_p_n, unneeded_p, m_n and all_m are read without. */
	struct m *idle_m;
	int idle_m_n;
	int idle_m_locked;	/* Ms that sleep until their locked G is ready */
	int runtime_threads;	/* made so far that never have a P */
	struct m *keeper;	/* the idle M that sleeps until the next timer */
	bool keeper_polls;	/* the keeper waits in the poller */
	struct p *idle_p;
	int idle_p_n;
	int unneeded_p;		/* idle Ps that there are no CPUs for: see p_to_spare */
	struct p *need_m;	/* Ps waiting for the spawner to make a thread */
	int need_m_n;
	int m_starting;		/* threads made that have not looked at need_m yet */
	struct m *all_m;	/* all Ms ever made */
	int m_n;		/* threads that exist or are being made */
	int m_next_id;
	uint64_t m_created;

	/* Atomic. */
	_Alignas(CACHE_LINE) int spinning;	/* Ms looking for work */
	uint32_t need_spinning;	/* the next M about to sleep is to look around first */
	uint32_t want_spare;	/* enum spare: keep an idle thread at hand from now on */
	union {
		uint32_t heed;	/* not 0: each switch goes the slow way */
		struct {
			uint8_t stopping;	/* Ms give their Ps up; under lock */
			uint8_t tracing;	/* events are recorded; written in a
						 * stopped world */
			uint8_t poll_due;	/* the next M to pick looks at the poller
						 * first */
			uint8_t program;	/* PROGRAM_ bits, never cleared */
		};
	};
	int taken;		/* Ms without a P that do not know yet */
	int main_exited;	/* mains that ended by goexit */
	int64_t coarse_now;	/* a recent os_now */
	int64_t keeper_until;	/* when the keeper will look; or TIMER_NEVER */
	int64_t sysmon_until;	/* when sysmon will look at the timers */
	int64_t timer_slack;	/* how late timers may be: timers_slack */
	uint32_t internal;	/* goroutines alive that are the runtime's own */
	uint64_t netpoll_wakeups;	/* of goroutines, by Ms without a P */
	struct plain_threads plain;
	_Alignas(CACHE_LINE) uint64_t id_next;	/* the last id given out */

	/* Written while the world is stopped. Each switch reads this line. */
	_Alignas(CACHE_LINE) int gomaxprocs;
	bool alone;		/* one P, and no plain threads: alone.h */
	struct p **all_p;	/* all Ps ever made; the first gomaxprocs are in use */
	int all_p_n;
};

#define PROGRAM_CXX  1		/* goroutines may have C++ exceptions: see cxx.c */
#define PROGRAM_ASAN 2		/* the program has ASan, the library not: tool.c */
#define PROGRAM_BLOCKS 4	/* some goroutines are known to block: blockers.c */

/* heed with PROGRAM_CXX alone: the last byte, in little-endian order. */
#define HEED_CXX ((uint32_t)PROGRAM_CXX << 24)
_Static_assert(offsetof(struct sched, program) == offsetof(struct sched, heed) + 3,
               "sched: HEED_CXX is one byte");

extern struct sched sched		/* hidden: an instruction less to find it */
	__attribute__((visibility("hidden")));

/* The P of an index below gomaxprocs or all_p_n, as loaded with acquire. */
static inline struct p *p_at(int i)
{
	/* acquire: the array may be newer than the number; pairs with make_ps */
	return load_acquire(&sched.all_p)[i];
}

/* Time slices begun on a P. sysmon compares two looks, to find a long slice. */
static inline uint64_t p_slices(const struct p *pp)
{
	return load_relaxed(&pp->count.switches) - load_relaxed(&pp->count.inherited);
}

#endif

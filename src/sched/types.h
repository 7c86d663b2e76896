/*
 * types.h - the runtime's structures: G, M, P, sched.
 *
 *	G	a goroutine: a stack and what is needed to go on on it
 *	M	an OS thread
 *	P	a processor: the right to run goroutines, and the queues for it;
 *		there are GOMAXPROCS of them
 *
 * An M needs a P to run goroutines. Fields are grouped by who may touch them.
 */
#ifndef GORO_TYPES_H
#define GORO_TYPES_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "atomic.h"
#include "config.h"
#include "context.h"
#include "lock.h"
#include "timer.h"
#include "tool.h"
#include "wait_reason.h"

struct backtrace;
struct cxx_state;
struct fd;
struct g;
struct m;
struct p;
struct trace_buf;
struct trace_region;

/* ------------------------------------------------------------------ states */

/* A goroutine's state says who owns it and its stack. */
#define G_STATUS_LIST(X)                                                      \
	/* Being made or in a pool; owned by whoever took it from the pool. */\
	X(G_DEAD, "dead")                                                     \
	/* On exactly one run queue, not executing; owned by the queue. */    \
	X(G_RUNNABLE, "runnable")                                             \
	/* The same, and wait_since is the stamp of latency.c, or 0: while    \
	 * tracing, so that whoever runs it looks (see trace.h). */           \
	X(G_RUNNABLE_TIMED, "runnable")                                       \
	/* Executing user or runtime code on gp->mp, which owns it. */        \
	X(G_RUNNING, "running")                                               \
	/* In an announced blocking call on gp->mp, which owns it. */         \
	X(G_SYSCALL, "syscall")                                               \
	/* Parked; on no run queue; owned by whoever it waits for (the        \
	 * channel's queue, ...), who makes it runnable with g_ready. */      \
	X(G_WAITING, "waiting")
enum g_status {
#define X(id, name) id,
	G_STATUS_LIST(X)
#undef X
	G_STATUS_COUNT
};

enum p_status {
	P_IDLE,			/* on sched.idle_p; sched.lock owns it */
	P_RUNNING,		/* owned by an M: pp->mp */
	P_SYSCALL,		/* left behind by an M in an announced call: owned by
				 * whoever changes it by CAS; see syscall.c */
	P_STOPPED,		/* the world is stopped; owned by who stopped it */
	P_DEAD,			/* beyond GOMAXPROCS now; its queues are empty */
};

/* Where an M is, as seen by whoever wants its P. See "Owning a P" in rt.h. */
enum m_state {
	M_RUNTIME,		/* in the runtime: its P is not to be touched */
	M_USER,			/* in user code: its P may be taken */
	M_SYSCALL,		/* in an announced call, its P left in P_SYSCALL */
};

/* A P's status while its M is in an announced call names the M. */
#define P_STATUS_OF(word) ((enum p_status)((word) & 0xff))
#define P_SYSCALL_OF(mp)  (P_SYSCALL | (uint32_t)(mp)->id << 8)

/* Where a thread without a P is to be stopped. See convoy.c. */
enum stop_where {
	STOP_ANYWHERE,
	STOP_FREE,		/* where it does not hold the lock that it slept on .. */
	STOP_WAITING,		/* .. and still sleeps on it */
};

/* What an M has to see to when it enters or leaves the runtime. */
enum {
	ATTN_CLAIMED = 1,	/* somebody is about to take the P */
	ATTN_TAKEN = 2,		/* the P is gone */
	ATTN_YIELD = 4,		/* give way at the end of this runtime call */
	ATTN_SLICE = 128,	/* .. if it is still in the slice that is over: over_tick */
	ATTN_FORKED = 8,	/* this is a child made by fork: no runtime here */
	ATTN_GIVEN = 64,	/* a P was given to it in user code: it is in given */
	ATTN_TIMERS = 32,	/* timers of the P are due: run them */
	ATTN_FENCE = 16,	/* no membarrier here: a fence at every crossing */
	ATTN_GIVE_WAY = ATTN_YIELD | ATTN_SLICE,
};

/* --------------------------------------------------------------- goroutine */

struct defer {
	struct defer *next;
	void (*fn)(void *);
	void *arg;
};

struct try_frame;
struct panic;
struct local_slot;

/* A goroutine in a queue of waiters. Part of the G, so that waiting allocates
 * nothing and nothing of it lies on the stack; elem is the one pointer to there. */
struct waiter {
	struct g *gp;
	struct waiter *next, *prev;
	union {
		void *key;		/* what it waits for: a channel */
		uint32_t ticket;	/* cond.c: its turn */
		int64_t units;		/* semaphore.c: how many it wants */
	};
	void *elem;		/* the value to send, or where to receive it */
	int index;		/* in select: of its case */
	bool is_send;
	bool is_select;		/* one of several: claimed by waiter_claim */
	bool queued;		/* in select: nobody took it off the queue */
	bool ok;		/* a value came, not a close */
};

struct waitq {
	struct waiter *first, *last;
};

/* A goroutine asleep on an address: see sema.c. */
struct sleeper {
	struct g *gp;
	const uint32_t *addr;
	struct sleeper *next;		/* on the same address, in order */
	struct sleeper *last;		/* of these; valid in the first one */
	struct sleeper *child[2];	/* other addresses; valid in the first one */
	int64_t since;			/* for the mutex profile; 0: nobody asked */
};

/* What the execution trace knows of a goroutine, of a thread and of a P: see
 * trace_event.c. Each belongs to who owns what it is of. */
struct g_trace {
	uint32_t gen;		/* the generation that knows it .. */
	uint32_t seq;		/* .. and its last number there */
	uint32_t named_in;	/* when its name was told */
	struct trace_region *regions;	/* that it is in; its own, in user code */
};

struct m_trace {
	struct trace_buf *buf;	/* NULL: none yet */
	bool in_call;		/* its goroutine is told to be in a blocking call */
	bool preempted;		/* .. is about to give way because it was asked to */
	/* Of a plain thread: the goroutine that it is told to be. */
	uint64_t g;
	struct g_trace of_g;
};

struct p_trace {
	uint32_t gen, seq;	/* as in g_trace */
	int m;			/* that left it behind in a blocking call */
};

/* Cases of a select that needs no memory beyond the G. */
#define G_WAITERS 4
#define G_ARGS 6
#define G_NAME_BYTES 32

/*
 * Lies at the top of its own stack, in the page that is touched anyway. What
 * starting, switching and ending touch comes first, in three cache lines.
 */
struct g {
	/* The switch. */
	struct context context;	/* valid while not executing */
	int saved_errno;
	uint32_t status;	/* enum g_status; written by the owner */
	struct g *link;		/* in whatever list owns it */
	struct m *mp;		/* whose thread is on its stack: executing it, or
				 * stopped there; NULL once it is at rest */
	struct m *locked_m;	/* runs on that M alone: goro_lock_os_thread, or it
				 * was stopped where it stood, see preempt.c */

	/* Set while made, constant afterwards. */
	uint64_t id;
	void (*fn)(void);
	uintptr_t arg[G_ARGS];
	uint64_t parent_id;
	void *created_at;	/* return address of the call that started it */
	char *stack_lo;		/* lowest usable byte */
	char *stack_hi;		/* end of what contexts may use; backtrace_asleep reads
				 * both of one that may have ended: set relaxed */
	uint8_t stack_class;

	/* Its own: nobody else looks, except dumps with the world stopped. */
	bool is_main;		/* runs a main of goro_run */
	bool goexiting;
	bool untidy;		/* has a name, locals, ...: more to do at its end; leak.c
				 * sets it, too, with the world stopped */
	uint32_t lock_depth;	/* nesting of goro_lock_os_thread */
	uint32_t preempt_off;	/* nesting of goro_preempt_disable */
	uint32_t watched;	/* for its end, since that look of leak.c; 0: not */
	struct defer *defers;
	uint64_t queue_seq;	/* its turn in the global queue */

	/* Waiting: what a goroutine that parks writes and its waker looks at lies
	 * in one cache line. The waiters belong to what it waits for. */
	uint8_t wait_reason;	/* enum wait_reason */
	bool is_foreign;	/* constant: stands for a plain thread, see foreign.c */
	bool is_internal;	/* set while made: the runtime's own, not the program's */
	uint32_t select_seq;	/* odd: a select waits to be claimed; see select.c */
	int64_t wait_since;	/* coarse time of the park, or when it was made ready */
	union {
		struct waiter waiter;
		struct waiter waiters[G_WAITERS];	/* of a select that is not wide */
		struct sleeper sleeper;
	};
	struct waiter *select_won;	/* of the case that came true; NULL: none */
	struct timer timer;	/* of a sleep or a deadline */
	struct try_frame *tries;
	struct panic *panics;
	struct local_slot *locals;
	char *last_try_message;
	char name[G_NAME_BYTES];
	struct g_trace trace;

	struct tool_fiber tool;
};
_Static_assert(offsetof(struct g, wait_reason) % CACHE_LINE == 0, "g: waiting is one line");

/* ------------------------------------------------------------------- thread */

struct m {
	/* Read by the taker of its P, written at every entry and exit. */
	_Alignas(CACHE_LINE) uint32_t state;	/* enum m_state */
	uint32_t attn;		/* ATTN_ bits, set by others too */

	/* The M's own. */
	struct g *curg;
	struct p *p;		/* the P it owns, or NULL */
	struct context sched_context;	/* its scheduler loop, at rest */
	void (*after_fn)(struct m *mp, struct g *old);	/* see "After the switch" in sched.c */
	struct g *after_g;
	void *after_arg;
	struct g *pick;		/* chosen to run next by who went to the scheduler */
	int *errno_at;
	struct cxx_state *cxx;	/* the thread's C++ exceptions; NULL: no C++ here. See cxx.c */
	uint32_t fired;		/* timers, since it began to look for work */
	bool spinning;		/* looks for work; counted in sched.spinning */
	bool is_foreign;	/* stands for a plain thread, see foreign.c */
	bool ending;		/* its thread is to end */
	bool owes_poke;		/* started a timer of which nobody knows: timers_tell */
	bool starting;		/* counted in sched.m_starting */
	struct g *locked_g;
	uint64_t rng;
	struct tool_fiber tool;

	/* Sleeping and waking: next_p and spinning are set by the waker. */
	_Alignas(CACHE_LINE) struct note park;
	struct p *next_p;
	struct p *given;	/* with ATTN_GIVEN, see p_give */
	int cpu;		/* on which it last looked for work, or went to sleep: see
				 * "Near" in idle.c, "Whose CPU" in sysmon.c */
	int woken_on;		/* the CPU on which it was told to look for work .. */
	struct p *woken_by;	/* .. by who had this P, or NULL */

	/* Stopped in the signal handler: the registers there. See preempt.c. */
	const void *stopped_at;	/* ucontext_t */

	/* sysmon's and the handler's. See retake.c. */
	uint32_t signalled;	/* a preemption signal is on its way .. */
	int64_t signalled_at;	/* .. since then */
	uint64_t over_tick;	/* with ATTN_SLICE: the P's slice (p_slices) that is over */
	uint32_t put_off;	/* times the handler asked for another try */
	uint32_t steady;	/* slices used up since it was last seen asleep; sysmon only */
	uint32_t slept;		/* the P was taken while it slept, not while it ran */
	int64_t cpu_seen;	/* its CPU clock when last looked at */
	uint32_t stop_where;	/* enum stop_where, of the next signal */
	uintptr_t lock;		/* that it slept on when it was last seen asleep; 0: on none */

	/* The M's own while it has a P, and sched.lock's while it has none. */
	struct m_trace trace;

	/* A request for its backtrace, see backtrace.c. */
	struct backtrace *backtrace_for;
	uint32_t backtrace_done;

	/* Under sched.lock. */
	struct m *idle_link;	/* the next idle one; in m.c, the next free one */
	struct m **idle_at;	/* what points to it in the list of idle ones; NULL: not there */
	struct m *all_link;

	/* Constant once it runs. */
	int id;
	int tid;
	pthread_t thread;
	char *thread_stack_lo, *thread_stack_hi;
	struct g *foreign_g;
	void *made_at;		/* return address of the call that made the thread, or made it an M */
	void *signal_stack;
	size_t signal_stack_bytes;
};

/* ---------------------------------------------------------------- processor */

/* A ring whose owner pushes and pops at the new end while thieves take from
 * the old end. Invariants and argument: runq.c. */
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

/* Totals, all uint64_t; the owner's. metrics.c adds them up. */
struct p_counts {
	uint64_t created, ended;
	uint64_t switches;	/* goroutines executed .. */
	uint64_t inherited;	/* .. on with the slice of the one before */
	uint64_t parks, steals, stolen, preemptions;
	uint64_t handoffs;	/* from goroutines in blocking calls */
	uint64_t netpoll_wakeups;	/* goroutines made ready by the poller */
	uint64_t thread_wakeups;	/* of Ms, to run this P */
	uint64_t io_parks;	/* goroutines that began to wait for a descriptor .. */
	uint64_t io_returns;	/* .. and that went on after it */
};

/* Times from ready to running, sampled. See latency.c. */
#define LATENCY_BUCKETS 162
struct latency {
	uint32_t weight_log2;	/* a sample counts for this many of Go's */
	uint32_t skip;		/* while tracing, what p.latency_in is otherwise, less 1 */
	uint64_t random;
	int64_t last_at;	/* when one was last timed */
	uint64_t count[LATENCY_BUCKETS];
};

/* Stealing on trial: see steal.c. */
struct trial {
	struct p *from;		/* NULL: none */
	int64_t at;
	uint64_t switches;	/* of both Ps, at the start */
	uint64_t before;	/* of that P, a millisecond */
};

/* What sysmon knows of a lock that is fought for on a P: see convoy.c. */
struct convoy {
	struct m *holder;	/* believed to hold it; NULL: there is none */
	uintptr_t lock;
	int looks;
	unsigned doublings;	/* of the slice: there were convoys of late */
	bool by_last_stop;	/* the last stop led to one */
	uint64_t over_tick;	/* the last slice that came to its end */
};

/* A thief's note. */
struct seen {
	uint64_t what;
	int64_t at;
};

/* Goroutines whose calls are put off: see fd_post.c. */
struct posts {
	struct ring queue;

	/* The owner M's, read by sysmon. */
	int64_t since;		/* when the first of them came */
	uint32_t asked;		/* how often somebody was about to be the first */

	/* The owner M's. */
	int64_t seen_at;	/* when it last looked at the clock .. */
	uint64_t seen_turns;	/* .. and how many there had been on the P then */
	int64_t again_at;	/* some were late: none before that .. */
	int64_t pause;		/* .. which is for so long */
	int64_t cpu;		/* what the thread had used when the first came, .. */
	int cpu_tid;		/* .. and which; 0: not known */

	/* sysmon's. */
	uint32_t late;		/* it saw to some; the owner clears it */
	uint32_t seen_asked;
};

struct p {
	int id;
	uint32_t status;	/* enum p_status */
	struct m *mp;		/* the owner */

	/* The owner M's, read by sysmon. */
	uint32_t fair_in;	/* picks left until a fair one */
	bool global_served;	/* one was taken from the global queue since its last turn */
	uint8_t stops;		/* of goroutines here: every other one is for the woken .. */
	uint8_t fair_rest;	/* .. whose turn comes first, so many picks before the fair one; 0: not */
	uint32_t fair_turn;
	int64_t oldest_at;	/* when the oldest started was last picked: here .. */
	int64_t global_at;	/* .. and from the global queue */
	uint32_t latency_in;	/* goroutines made ready until one is timed */
	uint32_t id_batch;	/* how many ids were taken last */
	uint64_t id_next, id_end;
	uint32_t gfree_n;	/* .. of gfree */
	uint32_t gfresh_n;	/* how many new ones were made last */
	struct p_counts count;

	/* Descriptors that somebody waits to read without having tried: fd_guess.c. */
	struct fd *untried, *untried_last;
	uint32_t untried_turn;	/* how often they were seen to */
	uint32_t untried_due;	/* sysmon: it is time */
	uint64_t untried_switches;	/* count.switches when it last was */
	uint32_t try_left;	/* tries before the poller is asked .. */
	uint32_t try_pause, try_pause_last;	/* .. and looks before there are any */

	/* Shared with thieves. */
	struct g *runnext;	/* made ready by the running G; runs next */
	struct deque started;	/* newly started: newest first, thieves oldest first */
	struct ring woken;	/* made ready: in order */
	struct timers timers;

	/* Thieves': what they saw here. See steal.c. */
	_Alignas(CACHE_LINE) struct seen seen_started, seen_woken, seen_next, seen_load, seen_claim;
	uint64_t seen_switches, seen_load_switches;
	int64_t seen_each;	/* how long each of the woken took that left; 0: not known */
	int64_t load_wait;	/* before the next trial; 0: STEAL_LOADED_NS */

	/* The owner M's: what it stole on trial, and whether it is to give it back. */
	struct trial trial;
	bool folds;

	/* Under sched.lock. */
	struct p *link;		/* sched.idle_p or sched.need_m */
	bool spawn_spinning;

	/* A slice that began on a thread woken for it: when, whose, and which (p_slices). */
	int64_t begun_at;
	struct m *begun_m;
	uint64_t begun_tick;
	/* On its way to an M that is woken for it and has a goroutine of its own: which,
	 * since when. See m_recall_p. */
	struct m *sent_to;
	int64_t sent_at;

	/* Between the owner M and sysmon, see convoy.c: the one that was last stopped here;
	 * who is to have the P when the next one is. */
	struct g *stopped;
	struct m *heir;

	/* sysmon's. */
	uint64_t seen_tick;
	uint64_t looked_switches;	/* pp's count.switches at the last look */
	uint64_t tick_switches;	/* of pp at the first look at that slice, .. */
	int64_t tick_cpu;	/* .. and its M's CPU time; -1: not known */
	struct m *seen_m;
	int64_t seen_at;
	struct convoy convoy;
	uint32_t seen_untried_turn;
	int64_t seen_untried_at;

	/* The owner M's, rarely. */
	int64_t stopped_at;	/* when a goroutine was last stopped here, by the coarse clock */
	struct latency latency;
	struct p_trace trace;

	struct posts posts;

	/* Who last began to wait for a wait group, beside others: see waitgroup.c. */
	uint32_t waited_n;
	struct waiter *waited[WAITED_AHEAD];

	struct g *gfree[P_GFREE_MAX];	/* dead goroutines of the default size, oldest first */
};

/* ---------------------------------------------------------------- scheduler */

struct gbatch;			/* see runq.c */

struct gqueue {
	struct g *head, *tail;	/* those who came one by one, by link .. */
	struct gbatch *batch, *last_batch;	/* .. and those who came together */
	size_t n;		/* of both; written under the lock, read without */
};

/* A thread beyond those in use. Needed: all Ps are with threads that sleep in the
 * kernel; if none can be made the program stands still, and ends. */
enum spare { SPARE_NONE, SPARE_WANTED, SPARE_NEEDED };

struct sched {
	struct lock lock;

	/* Under lock; the counts may be read without. */
	struct gqueue runq;	/* the global queue: those that run anywhere, .. */
	struct gqueue bound;	/* .. those that bring their own M, .. */
	struct gqueue started;	/* .. those that were started and have not run, .. */
	struct gqueue fresh, fresh_bound;	/* .. and those who just came: see runq.c */
	struct gbatch *free_batches;
	uint32_t fresh_row;	/* how many who just came were picked in a row */
	bool passed_over;	/* the first of bound, the last time */
	uint64_t queue_seq;	/* turns given out */
	struct m *idle_m;
	int idle_m_n;
	int idle_m_locked;	/* Ms that sleep until their locked G is ready */
	int runtime_threads;	/* made so far that are no Ms with a P ever: sysmon, .. */
	struct m *keeper;	/* the idle M that sleeps until the next timer */
	bool keeper_polls;	/* .. and waits in the poller */
	struct p *idle_p;
	int idle_p_n;
	int unneeded_p;		/* of these, that there are no CPUs for: see p_to_spare */
	struct p *need_m;	/* Ps waiting for the spawner to make a thread */
	int need_m_n;
	int m_starting;		/* threads made that have not looked at need_m yet */
	uint32_t want_spare;	/* enum spare: keep an idle thread at hand from now on */
	struct m *all_m;
	int m_n;		/* threads that exist or are being made */
	int m_next_id;
	bool brisk;		/* sysmon's: the Ps get through their work quickly, see p_for_events */
	bool sysmon_asleep;
	bool sysmon_alarmed;	/* it sleeps until an alarm that can be put off, or just did */
	uint64_t m_created;

	/* Atomic. */
	_Alignas(CACHE_LINE) int spinning;	/* Ms looking for work */
	uint32_t need_spinning;
	union {
		uint64_t unusual;	/* one of these: a yield goes the slow way */
		struct {
			union {
				uint32_t heed;	/* one of these: each switch does */
				struct {
					uint8_t stopping;	/* the world is to stop: Ms give their
								 * Ps up */
					uint8_t tracing;	/* events are recorded; changes while
								 * the world is stopped, under lock */
					uint8_t poll_due;	/* somebody is to look at the poller
								 * before it runs anything else */
					uint8_t cxx;	/* goroutines may have C++ exceptions;
							 * constant: see cxx.c. HEED_CXX */
				};
			};
			uint32_t queued;	/* in all global queues; written under lock */
		};
	};
	int taken;		/* Ms that lost their P in user code and do not know yet */
	int foreign_parked;	/* plain threads asleep in a call of ours */
	uint32_t foreign_moves;	/* how often one went to sleep or was woken */
	int main_exited;	/* mains that ended by goexit */
	int64_t coarse_now;	/* a recent os_now */
	int64_t keeper_until;	/* when the keeper will look at the timers .. */
	int64_t sysmon_until;	/* .. and sysmon; TIMER_NEVER: nobody will */
	int64_t timer_slack;	/* how late timers may be: timers_slack */
	uint64_t foreign_created;
	uint32_t internal;	/* goroutines alive that are the runtime's own */
	uint64_t io_parks, io_returns;	/* of plain threads; see p_counts */
	uint64_t netpoll_wakeups;	/* by Ms without a P */
	_Alignas(CACHE_LINE) uint64_t id_next;

	/* Constant while the world runs; each switch looks, so nobody writes to this line. */
	_Alignas(CACHE_LINE) int gomaxprocs;
	struct p **all_p;	/* all ever made; the first gomaxprocs are in use */
	int all_p_n;
};

/* heed, and unusual, where nothing is set but cxx: its last byte, in little-endian order. */
#define HEED_CXX (UINT32_C(1) << 24)
_Static_assert(offsetof(struct sched, cxx) == offsetof(struct sched, heed) + 3 &&
               offsetof(struct sched, heed) == offsetof(struct sched, unusual),
               "sched: HEED_CXX is one byte");

extern struct sched sched		/* hidden: an instruction less to find it */
	__attribute__((visibility("hidden")));

/* The P of an index below gomaxprocs or all_p_n, as once loaded with acquire. */
static inline struct p *p_at(int i)
{
	/* acquire: the array may be a newer one than the number; pairs with
	 * store_release in make_ps */
	return load_acquire(&sched.all_p)[i];
}

/* Time slices begun on a P: what sysmon compares to see a long one. */
static inline uint64_t p_slices(const struct p *pp)
{
	return load_relaxed(&pp->count.switches) - load_relaxed(&pp->count.inherited);
}

#endif

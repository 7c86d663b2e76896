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
#include "lock.h"
#include "tool.h"
#include "wait_reason.h"

struct backtrace;
struct g;
struct m;
struct p;

/* ------------------------------------------------------------------ states */

/* A goroutine's state says who owns it and its stack. */
#define G_STATUS_LIST(X)                                                      \
	/* Being made or in a pool; owned by whoever took it from the pool. */\
	X(G_DEAD, "dead")                                                     \
	/* On exactly one run queue, not executing; owned by the queue. */    \
	X(G_RUNNABLE, "runnable")                                             \
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
	P_STOPPED,		/* the world is stopped; owned by who stopped it */
	P_DEAD,			/* beyond GOMAXPROCS now; its queues are empty */
};

/* Where an M is, as seen by whoever wants its P. See "Owning a P" in rt.h. */
enum m_state {
	M_RUNTIME,		/* in the runtime: its P is not to be touched */
	M_USER,			/* in user code: its P may be taken */
};

/* What an M has to see to when it enters or leaves the runtime. */
enum {
	ATTN_CLAIMED = 1,	/* somebody is about to take the P */
	ATTN_TAKEN = 2,		/* the P is gone */
	ATTN_YIELD = 4,		/* give way at the end of this runtime call */
	ATTN_FORKED = 8,	/* this is a child made by fork: no runtime here */
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
 * nothing and nothing of it lies on the stack. */
struct waiter {
	struct g *gp;
	struct waiter *next, *prev;
	void *key;		/* what it waits for: an address, in sema.c */
	void *elem;		/* the value to send, or where to receive it */
	bool ok;		/* a value came, not a close */
};

struct waitq {
	struct waiter *first, *last;
};

#define G_ARGS 6
#define G_NAME_BYTES 32

/* Lies at the top of its own stack, in the page that is touched anyway. */
struct g {
	/* The switch: valid while not executing. */
	void *sp;
	int saved_errno;
	uint32_t status;	/* enum g_status; written by the owner */

	struct g *link;		/* in whatever list owns it */
	struct m *mp;		/* executing it, or NULL */
	struct m *locked_m;	/* goro_lock_os_thread: runs on that M alone */
	uint64_t id;

	/* Set while made, constant afterwards. */
	void (*fn)(void);
	uintptr_t arg[G_ARGS];
	uint64_t parent_id;
	void *created_at;	/* return address of the call that started it */
	char *stack_lo;		/* lowest usable byte */
	char *stack_hi;		/* end of what contexts may use */
	uint8_t stack_class;
	bool is_foreign;	/* stands for a plain thread, see foreign.c */

	/* Waiting. */
	uint8_t wait_reason;	/* enum wait_reason */
	uint32_t lock_depth;	/* nesting of goro_lock_os_thread */
	int64_t wait_since;	/* coarse time of the park */
	struct waiter waiter;

	/* Its own: nobody else looks, except dumps with the world stopped. */
	struct defer *defers;
	struct try_frame *tries;
	struct panic *panics;
	struct local_slot *locals;
	char *last_try_message;
	bool goexiting;
	bool is_main;		/* runs a main of goro_run */
	char name[G_NAME_BYTES];

	struct tool_fiber tool;
};

/* ------------------------------------------------------------------- thread */

struct m {
	/* Read by the taker of its P, written at every entry and exit. */
	_Alignas(CACHE_LINE) uint32_t state;	/* enum m_state */
	uint32_t attn;		/* ATTN_ bits, set by others too */

	/* The M's own. */
	struct g *curg;
	struct p *p;		/* the P it owns, or NULL */
	void *sched_sp;		/* its scheduler context, at rest */
	void (*after_fn)(struct m *mp, struct g *old);	/* see "After the switch" in sched.c */
	struct g *after_g;
	void *after_arg;
	struct g *pick;		/* chosen to run next by who went to the scheduler */
	int *errno_at;
	bool spinning;		/* looks for work; counted in sched.spinning */
	bool is_foreign;	/* stands for a plain thread, see foreign.c */
	bool ending;		/* its thread is to end */
	bool starting;		/* counted in sched.m_starting */
	struct g *locked_g;
	uint64_t rng;
	struct tool_fiber tool;

	/* Sleeping and waking: next_p and spinning are set by the waker. */
	_Alignas(CACHE_LINE) struct note park;
	struct p *next_p;

	/* A request for its backtrace, see backtrace.c. */
	struct backtrace *backtrace_for;
	uint32_t backtrace_done;

	/* Under sched.lock. */
	struct m *idle_link;
	struct m *all_link;

	/* Constant once it runs. */
	int id;
	int tid;
	pthread_t thread;
	char *thread_stack_lo, *thread_stack_hi;
	struct g *foreign_g;
	void *signal_stack;
	size_t signal_stack_bytes;
};

/* ---------------------------------------------------------------- processor */

/* A ring whose owner pushes and pops at the new end while thieves take from
 * the old end. Invariants and argument: runq.c. */
struct deque {
	_Alignas(CACHE_LINE) uint64_t word;	/* tag:32 head:16 tail:16 */
	struct g *slot[GORO_RUNQ_CAP];
};

/* A ring in order: the owner pushes, everybody takes from the old end. */
struct ring {
	_Alignas(CACHE_LINE) uint32_t head;
	uint32_t tail;
	struct g *slot[GORO_RUNQ_CAP];
};

struct p_counts {
	uint64_t created, ended;
	uint64_t switches, parks, steals, stolen, preemptions, handoffs;
};

struct p {
	int id;
	uint32_t status;	/* enum p_status */
	struct m *mp;		/* the owner */

	/* The owner M's, read by sysmon. */
	uint32_t sched_tick;	/* goroutines executed, not counting inherited slices */
	uint32_t fair_in;	/* picks left until a fair one */
	uint32_t fair_turn;
	uint64_t id_next, id_end;
	struct g *gfree;	/* dead goroutines of the default size */
	uint32_t gfree_n;
	struct p_counts count;

	/* Shared with thieves. */
	struct g *runnext;	/* made ready by the running G; runs next */
	struct deque started;	/* newly started: newest first, thieves oldest first */
	struct ring woken;	/* made ready: in order */

	/* Under sched.lock. */
	struct p *link;		/* sched.idle_p or sched.need_m */
	bool spawn_spinning;

	/* sysmon's. */
	uint32_t seen_tick;
	int64_t seen_at;
};

/* ---------------------------------------------------------------- scheduler */

struct gqueue {
	struct g *head, *tail;
	size_t n;		/* written under the lock, read without */
};

struct sched {
	struct lock lock;

	/* Under lock; the counts may be read without. */
	struct gqueue runq;	/* the global queue */
	struct m *idle_m;
	int idle_m_n;
	int idle_m_locked;	/* Ms that sleep until their locked G is ready */
	struct p *idle_p;
	int idle_p_n;
	struct p *need_m;	/* Ps waiting for the spawner to make a thread */
	int need_m_n;
	int m_starting;		/* threads made that have not looked at need_m yet */
	struct m *all_m;
	int m_n;		/* threads that exist or are being made */
	int m_next_id;
	bool sysmon_asleep;
	uint64_t m_created, m_ended;

	/* Atomic. */
	_Alignas(CACHE_LINE) int spinning;	/* Ms looking for work */
	uint32_t need_spinning;
	uint32_t stopping;	/* the world is to stop: Ms give their Ps up */
	int foreign_parked;	/* plain threads asleep in a call of ours */
	int main_exited;	/* mains that ended by goexit */
	int64_t coarse_now;	/* a recent os_now */
	uint64_t id_next;
	uint64_t foreign_created, foreign_ended;

	/* Constant while the world runs. */
	int gomaxprocs;
	struct p **all_p;	/* all ever made; the first gomaxprocs are in use */
	int all_p_n;
};

extern struct sched sched;

#endif

/*
 * netpoll.h - the poller: which descriptors are ready. Defined in netpoll.c, the
 * backend in netpoll_epoll.c.
 */
#ifndef GORO_NETPOLL_H
#define GORO_NETPOLL_H

#include <stdbool.h>
#include <stdint.h>

#include "platform/atomic.h"
#include "base/config.h"
#include "sched/types.h"

/* What a descriptor is watched for, and what an event says about it. */
enum {
	NETPOLL_READ = 1,
	NETPOLL_WRITE = 2,
};

/* One event: whose (the tag given to netpoll_add), and what. */
struct netpoll_event {
	uint64_t tag;
	uint32_t what;
};

/* A batch of events that were taken and not seen to yet. */
struct netpoll_events {
	int n;			/* -EBADF: the poller is lost */
	struct netpoll_event at[NETPOLL_BATCH];
};

/* Goroutines taken off what they waited for, in order, to be made ready. */
struct ready_list {
	struct g *head, *tail;
};
void ready_list_put(struct ready_list *list, struct g *gp);
/* Makes them ready. */
void ready_list_all(struct m *mp, struct ready_list *list);

/* ---- the backend: the contract is at the top of netpoll.c */

int netpoll_open(void);
int netpoll_add(int fd, uint64_t tag, unsigned what);
int netpoll_modify(int fd, uint64_t tag, unsigned what);
void netpoll_remove(int fd);
int netpoll_take(struct netpoll_event *ev, int max, int64_t ns);
bool netpoll_break(void);
int netpoll_watch(int64_t ns);
void netpoll_watch_break(void);
bool netpoll_is_whole(void);

/* ---- whose events they are: filled by fd_wait.c */

extern struct netpoll_client {
	/* Takes the goroutines that the events concern off what they waited for. */
	void (*events)(const struct netpoll_events *ev, struct ready_list *list);
	/* The poller is new: adds all that was watched. Lists those that wait for what is
	 * closed. */
	void (*watch_again)(struct ready_list *list);
	/* A look that did not wait has been made by the owner of pp. */
	void (*polled)(struct p *pp);
} netpoll_client __attribute__((visibility("hidden")));

/* ---- netpoll.c */

extern struct netpoll {
	_Alignas(CACHE_LINE)
	uint32_t on;		/* a descriptor was watched at some time */
	uint32_t looking;	/* an M looks, without waiting */
	struct note *sleeper;	/* of the M that waits for events; NULL: none does */
	int sleeper_tid;	/* its thread; for a moment that of the one before it */
	uint32_t slept;		/* how many waits have ended */
	uint32_t renewing;	/* a new poller may not watch everything yet */
	int64_t looked_at;	/* when an M last looked, or stopped waiting */
} netpoll;

static inline bool netpoll_on(void)
{
	/* acquire: the poller is made; pairs with store_seqcst in netpoll_start */
	return load_acquire(&netpoll.on);
}

/* Whether an M is to look before the next goroutine runs. */
static inline bool netpoll_due(void)
{
	return load_relaxed(&sched.poll_due);
}

/* Before the first netpoll_add, or again. 0 or -errno. In state RUNTIME. */
int netpoll_start(void);

/* Makes the poller again if the program has closed it, and lists the goroutines that wait
 * for what is closed. 0 or -errno. In state RUNTIME, without a lock. */
int netpoll_renew(struct ready_list *list);

/* Looks without waiting, with a P. Returns the first goroutine that became ready, for the
 * caller to run; the others are queued. NULL: none, or another M looks. */
struct g *netpoll_look(struct m *mp);

/* The same, but an M that spins leaves it to a P that looks often. */
struct g *netpoll_look_if_wanted(struct m *mp);

/* Waits for events, at most ns (-1: no limit), or until netpoll_note_wake: true. */
bool netpoll_sleep(struct note *note, int64_t ns, struct netpoll_events *ev);
void netpoll_note_wake(struct note *note);
/* Makes the goroutines ready that the events concern. With a P, or without. */
void netpoll_dispatch(struct m *mp, const struct netpoll_events *ev);

/* Whether some P is running and looks often, so that no other M need wait for events. */
bool netpoll_attended(void);

/* sysmon's. Sleeps until there are events, the note is woken, or ns are over. */
void netpoll_watch_sleep(struct note *note, int64_t ns);
void netpoll_watch_note_wake(struct note *note);
/* True if it is better to sleep like that than on the note. */
bool netpoll_unattended(int64_t now);
/* In how many ns sysmon is to see to the poller at the latest. */
int64_t netpoll_tick(int64_t now);
/* For how many ns events have waited that no M has looked at; -1: there are none. */
int64_t netpoll_pending(int64_t now);

#endif

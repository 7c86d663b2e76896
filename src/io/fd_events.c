/*
 * fd_events.c - hands what the poller finds to the descriptors and rings concerned.
 */
#include "base/hook.h"
#include "io/batch.h"
#include "io/fd.h"
#include "io/uring.h"
#include "sched/netpoll.h"
#include "sched/rt.h"

/* With hundreds of busy connections each is in no cache when its turn comes. What an
 * event needs is prefetched while earlier ones are handled. */
#define AHEAD 4

static void prefetch(const struct netpoll_events *ev, int i)
{
	if (i + 2 * AHEAD < ev->n)
		fd_prefetch((int)(uint32_t)ev->at[i + 2 * AHEAD].tag);
	if (i + AHEAD < ev->n)
		fd_prefetch_waiter((int)(uint32_t)ev->at[i + AHEAD].tag);
}

static void events(struct p *pp, const struct netpoll_events *ev, struct ready_list *list)
{
	struct batch batch;

	batch.n = 0;
	for (int i = 0; i < ev->n; i++) {
		prefetch(ev, i);
		if (unlikely(ev->at[i].tag == URING_TAG))
			uring_event(list);
		else
			fd_event(ev->at[i].tag, ev->at[i].what, list, &batch);
	}
	batch_read(pp, &batch);
}

static void watch_again(struct ready_list *list)
{
	fd_watch_again(list);
	uring_watch_again(list);
}

static void fill_netpoll_client(void)
{
	netpoll_client.events = events;
	netpoll_client.watch_again = watch_again;
	netpoll_client.polled = batch_polled;
}
AT_LOAD(fill_netpoll_client);

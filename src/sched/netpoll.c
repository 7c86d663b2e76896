/*
 * netpoll.c - the poller: which M looks for events, when, and what becomes of them.
 *
 * What the backend must do
 *
 *	netpoll_open()          makes the poller; 0 or -errno. Called once; again
 *	                        if it failed, or if the poller is not whole.
 *	netpoll_add(fd, tag, w) watches fd for what w says; -EPERM: it cannot be
 *	                        watched; -EEXIST: it is watched already.
 *	netpoll_modify(..)      changes tag and w; -ENOENT: fd, that is the open
 *	                        file that now has this number, is not watched.
 *	netpoll_remove(fd)      watches it no longer.
 *	netpoll_take(ev, max, ns)  takes up to max events; waits for the first for
 *	                        at most ns (-1: without limit, 0: not at all).
 *	                        -EBADF: the poller is lost.
 *	netpoll_break()         ends the netpoll_take that waits, or that waits next;
 *	                        false: it cannot, since the poller is lost.
 *	netpoll_watch(ns)       1: there are events; none is taken. Waits likewise.
 *	                        -EBADF: the poller is lost.
 *	netpoll_watch_break()   ends the netpoll_watch that waits, or the next.
 *	netpoll_is_whole()      all its descriptors are still its own.
 *
 * Events are edges: there is one at some time after fd became ready, or after more of the
 * same came, and after each netpoll_add and netpoll_modify of an fd that is ready. There
 * may be more events than that, and they may come late, after the descriptor was closed:
 * the tag tells (fd.c).
 *
 * Who looks
 *
 *	- An M whose P's own queues are empty looks without waiting, before it takes a
 *	  goroutine that has had its slice, or steals. Or it tries to read for a
 *	  waiting goroutine first, a few times ("Untried reads" in batch_policy.c). An
 *	  M that spins leaves it to a running P that looks often: it would take the
 *	  answer from the P that waits for it.
 *	- The keeper (idle.c), an idle M, waits in the poller instead of on its note.
 *	  It does not while a running P looks often enough, which finds each event a
 *	  microsecond later, nor where it could only get the CPU of a P that gets
 *	  through its work quickly (p_for_events).
 *	- sysmon watches the poller, without taking events, while no M waits there and
 *	  none has looked for NETPOLL_LOAD_NS. If there are events sysmon says so
 *	  (sched.poll_due), and each M looks before it picks its next goroutine. sysmon
 *	  also makes a P pick one, as for a goroutine that waits in its queue
 *	  (retake.c).
 *
 * At most one M looks at a time, and none while another waits in the poller. An M that
 * looks takes a batch and puts it in its own queue, in order. Other Ms steal from there.
 *
 * A sleep in the poller is broken by waking the note of the M that sleeps there:
 *
 *	netpoll_sleep                   netpoll_note_wake
 *	sleeper = note                  note = 1
 *	read note                       read sleeper
 *	 1: do not wait                  it is this one: break
 *	 0: wait for events              else wake the futex
 *
 * Both store before they load, sequentially consistently, so one of the two sees the
 * other's store. A break that comes too late ends the next wait, for nothing. Only one M
 * sleeps in the poller, or a break could end the wrong sleep: the next keeper waits until
 * the one before it has left. A waker that sees the sleeper just before it leaves does
 * not wake the futex, so the sleeper looks at the note after it has cleared sleeper.
 *
 * Descriptors that are closed
 *
 * A program may close all descriptors that it does not know. The call that finds the
 * poller lost has it made again (netpoll_renew), and all descriptors that were watched
 * are added anew. A goroutine that waits for a descriptor that is closed gets -EBADF. An
 * M that sleeps in the old poller cannot be woken through it: the waker sends its thread
 * signals, until it has left.
 *
 * Rejected: a thread of its own that polls (each event costs two thread switches); a
 * poller a P (a connection would have to move with its goroutine, or wake it elsewhere).
 */
#include "sched/netpoll.h"

#include "base/debug.h"
#include "platform/os.h"
#include "sched/runq.h"
#include "sched/runtime.h"

struct netpoll netpoll;
struct netpoll_client netpoll_client;

/* How long an M that was woken in the poller may take to leave it. */
#define LEAVING_NS 20000

/* Signals to an M in a lost poller, and the time in between: it may have blocked them. */
#define KICKS_MAX 500
#define KICK_NS   20000

/* If no descriptors were left for a poller, the keeper tries again after this long. */
#define RENEW_AGAIN_NS 10000000

static struct lock start_lock = LOCK_INIT(RANK_LEAF);
static uint32_t cannot_renew;
static struct note *watcher;	/* sysmon's note while it watches */
static int64_t pending;		/* when sysmon saw events that still wait; 0: none do */

/* The keeper may sleep on its note: it is poked, and waits for events from now on. */
int netpoll_start(void)
{
	int r = 0;

	if (netpoll_on())
		return 0;
	lock_acquire(&start_lock);
	if (!netpoll_on()) {
		r = netpoll_open();
		if (r == 0)
			store_seqcst(&netpoll.on, 1);
	}
	lock_release(&start_lock);
	if (r == 0)
		m_poke_keeper();
	return r;
}

/* Makes the M that sleeps in a lost poller leave it. */
static void kick_sleeper(void)
{
	uint32_t slept = load_seqcst(&netpoll.slept);

	for (int i = 0; i < KICKS_MAX; i++) {
		if (!load_seqcst(&netpoll.sleeper) || load_seqcst(&netpoll.slept) != slept)
			return;
		os_signal(load_relaxed(&netpoll.sleeper_tid), SIG_PREEMPT);
		os_sleep(KICK_NS);
	}
}

int netpoll_renew(struct ready_list *list)
{
	int r = 0;
	bool lost;

	lock_acquire(&start_lock);
	lost = netpoll_on() && !netpoll_is_whole();
	if (lost) {
		fetch_add_seqcst(&netpoll.renewing, 1);
		r = netpoll_open();
		store_relaxed(&cannot_renew, r < 0);
	}
	lock_release(&start_lock);
	if (!lost)
		return 0;
	if (r == 0) {
		kick_sleeper();
		netpoll_client.watch_again(list);
	}
	fetch_add_seqcst(&netpoll.renewing, (uint32_t)-1);
	return r;
}

/* ---------------------------------------------------------------- dispatch */

void ready_list_put(struct ready_list *list, struct g *gp)
{
	check(!list->head || !list->tail->link);
	gp->link = NULL;
	if (list->head)
		list->tail->link = gp;
	else
		list->head = gp;
	list->tail = gp;
}

static struct g *list_take(struct ready_list *list)
{
	struct g *gp = list->head;

	list->head = gp->link;
	gp->link = NULL;
	return gp;
}

void ready_list_all(struct m *mp, struct ready_list *list)
{
	while (list->head)
		g_ready_in_order(mp, list_take(list));
}

static void looked(void)
{
	store_relaxed(&netpoll.looked_at, os_now());
	store_relaxed(&sched.poll_due, 0);
	store_relaxed(&pending, 0);
}

/* The goroutines that the events concern, taken off what they waited for. */
static struct ready_list collect(struct m *mp, const struct netpoll_events *ev)
{
	struct ready_list list = { NULL, NULL };
	uint64_t n = 0;

	if (unlikely(ev->n < 0)) {
		netpoll_renew(&list);
		return list;
	}
	check(ev->n <= NETPOLL_BATCH && mp->state == M_RUNTIME);
	netpoll_client.events(ev, &list);
	for (struct g *gp = list.head; gp; gp = gp->link)
		n++;
	if (mp->p)
		count_up(&mp->p->count.netpoll_wakeups, n);
	else
		fetch_add_relaxed(&sched.netpoll_wakeups, n);
	return list;
}

/* Makes all of them ready. The first that runs on this P is returned, not queued. */
static struct g *ready_rest(struct m *mp, struct ready_list list)
{
	struct g *first = NULL;

	while (list.head) {
		struct g *gp = list_take(&list);

		if (!mp->p || first)
			g_ready_in_order(mp, gp);
		else if (g_make_runnable(mp, gp))
			first = gp;
	}
	return first;
}

void netpoll_dispatch(struct m *mp, const struct netpoll_events *ev)
{
	struct g *first = ready_rest(mp, collect(mp, ev));

	if (first)
		runq_put_next(mp->p, first);
}

/* -------------------------------------------------------------- looking, waiting */

struct g *netpoll_look(struct m *mp)
{
	struct netpoll_events ev;

	check(mp == m_self() && mp->p);
	if (!netpoll_on())
		return NULL;
	if (load_relaxed(&netpoll.sleeper)) {
		store_relaxed(&sched.poll_due, 0);
		return NULL;
	}
	if (load_relaxed(&netpoll.looking) || exchange_acquire(&netpoll.looking, 1))
		return NULL;
	ev.n = netpoll_take(ev.at, NETPOLL_BATCH, 0);
	looked();
	netpoll_client.polled(mp->p);
	/* release: pairs with exchange_acquire above */
	store_release(&netpoll.looking, 0);
	return ready_rest(mp, collect(mp, &ev));
}

struct g *netpoll_look_if_wanted(struct m *mp)
{
	return mp->spinning && netpoll_attended() ? NULL : netpoll_look(mp);
}

bool netpoll_sleep(struct note *note, int64_t ns, struct netpoll_events *ev)
{
	struct note *nobody = NULL;

	check(note == &m_self()->park && !m_self()->p);
	ev->n = 0;
	if (!cas_seqcst(&netpoll.sleeper, &nobody, note))
		return note_sleep_for(note, ns >= 0 && ns < LEAVING_NS ? ns : LEAVING_NS);
	store_relaxed(&netpoll.sleeper_tid, load_relaxed(&m_self()->tid));
	if (load_seqcst(&note->word) == 0)
		ev->n = netpoll_take(ev->at, NETPOLL_BATCH, ns);
	looked();
	check(load_relaxed(&netpoll.sleeper) == note);
	store_seqcst(&netpoll.slept, load_relaxed(&netpoll.slept) + 1);
	store_seqcst(&netpoll.sleeper, NULL);
	if (unlikely(ev->n < 0) && load_relaxed(&cannot_renew))
		return note_sleep_for(note, RENEW_AGAIN_NS);
	/* acquire: what the waker did; pairs with netpoll_note_wake */
	return exchange_acquire(&note->word, 0) != 0;
}

void netpoll_note_wake(struct note *note)
{
	/* seqcst: see the top. */
	store_seqcst(&note->word, 1);
	if (load_seqcst(&netpoll.sleeper) != note)
		os_futex_wake(&note->word, 1);
	else if (unlikely(!netpoll_break()))
		kick_sleeper();
}

bool netpoll_attended(void)
{
	return !debug.noattended &&
	       load_relaxed(&sched.idle_p_n) < load_relaxed(&sched.gomaxprocs) &&
	       os_now() - load_relaxed(&netpoll.looked_at) < NETPOLL_ATTENDED_NS;
}

/* ------------------------------------------------------------------- sysmon */

bool netpoll_unattended(int64_t now)
{
	return netpoll_on() && !load_relaxed(&netpoll.sleeper) && !load_relaxed(&pending) &&
	       now - load_relaxed(&netpoll.looked_at) >= NETPOLL_LOAD_NS;
}

void netpoll_watch_sleep(struct note *note, int64_t ns)
{
	struct ready_list list = { NULL, NULL };
	int r;

	check(!load_relaxed(&watcher) && m_self()->is_foreign);
	store_seqcst(&watcher, note);
	r = load_seqcst(&note->word) == 0 ? netpoll_watch(ns) : 0;
	if (r < 0 && netpoll_renew(&list) < 0)
		os_sleep(ns);
	ready_list_all(m_self(), &list);
	if (r > 0) {
		store_relaxed(&pending, os_now());
		store_seqcst(&sched.poll_due, 1);
		wake();
	}
	store_seqcst(&watcher, NULL);
	/* acquire: what the waker did; pairs with netpoll_watch_note_wake */
	exchange_acquire(&note->word, 0);
}

/* The same protocol as netpoll_note_wake's. */
void netpoll_watch_note_wake(struct note *note)
{
	store_seqcst(&note->word, 1);
	if (load_seqcst(&watcher) == note)
		netpoll_watch_break();
	else
		os_futex_wake(&note->word, 1);
}

int64_t netpoll_tick(int64_t now)
{
	int64_t age = now - load_relaxed(&netpoll.looked_at);

	if (!netpoll_on() || load_relaxed(&netpoll.sleeper))
		return TIMER_NEVER;
	if (age < NETPOLL_LOAD_NS)
		return NETPOLL_LOAD_NS - age;
	age = netpoll_pending(now);
	return age < 0 ? TIMER_NEVER : age < NETPOLL_GRACE_NS ? NETPOLL_GRACE_NS - age : LOOK_NS;
}

int64_t netpoll_pending(int64_t now)
{
	int64_t since = load_relaxed(&pending);

	return since == 0 ? -1 : since < now ? now - since : 0;
}

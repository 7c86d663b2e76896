/*
 * fd_post.c - writes that are put off, to be sent many by one call.
 *
 * With many connections that are busy a P has dozens of goroutines to run who each read a
 * request and write an answer. One who writes a few bytes to a socket while others are about
 * to run does not call the kernel: it parks, and the P keeps it in a queue (posts). When
 * the P has run the others, most of whom have written, too, all of it is sent by one system call
 * (fd_ring.c), and they are made ready with what it came to. A loop without goroutines does 20 %
 * more echos a second so (docs/performance-notes.md).
 *
 * To its goroutine it is a call like any other. It is in the call, and uses the
 * descriptor, until the bytes are sent or it is known why not: whoever closes the descriptor
 * waits for it, and an error is its own to see. What could not be sent at once (EAGAIN), or came
 * to no result, or found the ring in use, it tries for itself when it runs, in the ordinary way.
 *
 * When it is done
 *
 * The P sends what is in the queue
 *	- when it has run out of others to run, before it looks anywhere else for work;
 *	- when the queue is full (POST_MAX);
 *	- at an occasion to look at the clock, if the first came POST_WAIT_NS ago: every few
 *	  who come, and every so many switches (anything_due in sched.c);
 *	- before an announced blocking call.
 * A P with a queue is not idle, and whoever is handed the P has that to do.
 *
 * Not too late
 *
 * All this is worth nothing if one of the others computes, or blocks unannounced: what was
 * written would lie there for as long as that takes. Two things keep that from
 * happening, the one for certain and the other for the most part.
 *	- sysmon takes the queue of a P whose first came POST_LATE_NS ago, and sends it by ordinary
 *	  calls. It looks in time: somebody becomes the first only if sysmon will look within
 *	  POST_LOOK_NS (sched.sysmon_until), and if it would not, that it was asked for makes it
 *	  look that often from its next look on (asked). So nothing waits for longer than these
 *	  two together, 1.2 ms, if sysmon gets a CPU.
 *	- It is expected to be short. There is a first only where nobody is known to compute (stopped
 *	  goroutines wait in the bound queue), and turns were short, on average, since the last
 *	  time that somebody was about to be the first (turns_are_short). When some were late
 *	  all the same there are none for a while, twice as long each time that it happens again
 *	  soon: where it happens at every turn one write a second is late (give_up). Not where the
 *	  thread had no CPU in which to be late: whoever had been about to run instead would have waited as
 *	  long. It takes a system call to know that, so it is not found out at the first time, but
 *	  while that is not long ago.
 *
 * The queue is a ring as that of the woken (runq.h): the owner of the P pushes, anybody takes the
 * oldest. Who takes goroutines from it owns them.
 *
 * Rejected: sending what a goroutine has written without its waiting for it (a copy, and the
 * next call is told the error): a write that returned would not have been one. A thread that
 * is idle and takes half of a queue: nothing gained with two Ps, since what is sent makes others
 * ready anyway, whom it can take.
 */
#include "fd.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "debug.h"
#include "fd_ring.h"
#include "linger.h"
#include "runq.h"
#include "runtime.h"
#include "sys.h"

uint64_t fd_posted, fd_posted_late;

static uint32_t length(const struct ring *r)
{
	return load_relaxed(&r->tail) - load_relaxed(&r->head);
}

/* ------------------------------------------------------------------- sending */

/* What is to be sent lies in the goroutine's waiters, which are in no queue: the descriptor,
 * where, how many bytes, and the flags; later the answer. */
static struct waiter *message(struct g *gp)
{
	return &gp->waiters[FD_WRITE];
}

static int *flags_of(struct g *gp)
{
	return &gp->waiters[FD_READ].index;
}

static int number_of(struct g *gp)
{
	return ((const struct fd *)message(gp)->key)->number;
}

static void answer(struct g *gp, int answer)
{
	message(gp)->index = fd_ring_is_result(answer) ? answer : -EAGAIN;
}

static void fill(struct io_uring_sqe *e, struct g *gp)
{
	*e = (struct io_uring_sqe){
		.opcode = IORING_OP_SEND,
		.fd = number_of(gp),
		.addr = (uintptr_t)message(gp)->elem,
		.len = (uint32_t)message(gp)->index,
		.msg_flags = (uint32_t)*flags_of(gp),
		.user_data = (uintptr_t)gp,
	};
}

static void send_by_ring(struct fd_ring *r, struct g **gs, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		fill(fd_ring_call(r, i), gs[i]);
		message(gs[i])->index = -EAGAIN;	/* if it is not taken */
	}
	fetch_add_relaxed(&fd_posted, fd_ring_run(r, n, answer));
}

static void send_plainly(struct g *gp)
{
	answer(gp, (int)sys6(SYS_sendto, number_of(gp), message(gp)->elem, message(gp)->index,
	                     *flags_of(gp), NULL, NULL));
}

/* Without a P (sysmon), or a ring, one by one. */
static void send_all(struct m *mp, struct g **gs, uint32_t n)
{
	struct fd_ring *r = mp->p && n > 1 ? fd_ring_take(mp->p) : NULL;

	if (r) {
		send_by_ring(r, gs, n);
		fd_ring_put(r);
	} else {
		for (uint32_t i = 0; i < n; i++)
			send_plainly(gs[i]);
	}
	for (uint32_t i = 0; i < n; i++)
		g_ready_in_order(mp, gs[i]);
}

/* Sends all that is in the queue. The goroutines are ours then. */
static void send_queue(struct m *mp, struct ring *queue)
{
	struct g *gs[POST_MAX];
	uint32_t n;

	while ((n = ring_take(queue, gs, POST_MAX))) {
		linger();
		send_all(mp, gs, n);
	}
}

/* ----------------------------------------------------------- not too late */

/* Some were late a short while ago. */
static bool on_trial(const struct posts *ps, int64_t now)
{
	return now - ps->again_at < POST_WELL_NS;
}

static bool had_no_cpu(const struct posts *ps, const struct m *mp)
{
	return ps->cpu_tid == mp->tid && os_thread_cpu(0) - ps->cpu < POST_LATE_NS;
}

/* It counts how long it went well, not how long that is beside the pause: once that is a long
 * one, the next to be late would always come too soon. */
static void give_up(struct posts *ps, const struct m *mp, int64_t now)
{
	if (had_no_cpu(ps, mp))
		ps->pause = 0;
	else if (ps->pause == 0 || !on_trial(ps, now))
		ps->pause = POST_PAUSE_MIN_NS;
	else
		ps->pause = soonest(2 * ps->pause, POST_PAUSE_MAX_NS);
	ps->again_at = now + ps->pause;
}

static bool given_up(struct posts *ps, const struct m *mp, int64_t now)
{
	if (load_relaxed(&ps->late)) {
		store_relaxed(&ps->late, 0);
		give_up(ps, mp, now);
	}
	return now < ps->again_at;
}

static bool turns_are_short(struct p *pp, int64_t now)
{
	struct posts *ps = &pp->posts;
	uint64_t all = pp->count.switches, turns = all - ps->seen_turns;
	int64_t passed = now - ps->seen_at;

	ps->seen_at = now;
	ps->seen_turns = all;
	return passed <= (int64_t)turns * POST_TURN_NS;
}

static bool sysmon_looks_soon(int64_t now)
{
	return load_relaxed(&sched.sysmon_until) - now <= POST_LOOK_NS;
}

bool fd_posts_due(const struct p *pp)
{
	return unlikely(fd_posts(pp)) && os_now() - pp->posts.since >= POST_WAIT_NS;
}

/* From when they are in no queue any more, and all Ps may be idle, until they are ready they count
 * as waiting for a descriptor: it is no deadlock. seqcst: before its P's owner finds
 * the queue empty; pairs with load_acquire in fd_posts. */
static void send_late(struct m *mp, struct posts *ps)
{
	count_up(&fd_posted_late, 1);
	store_relaxed(&ps->late, 1);
	fetch_add_seqcst(&sched.io_parks, 1);
	send_queue(mp, &ps->queue);
	fetch_add_seqcst(&sched.io_returns, 1);
}

static int64_t look_at(struct m *mp, struct p *pp, int64_t now)
{
	struct posts *ps = &pp->posts;
	uint32_t asked = load_relaxed(&ps->asked);
	bool was_asked = asked != ps->seen_asked;

	ps->seen_asked = asked;
	/* acquire: since, as it was when the first came, or later; pairs with store_release
	 * in ring_push */
	if (load_acquire(&ps->queue.tail) == load_relaxed(&ps->queue.head))
		return was_asked ? POST_LOOK_NS : TIMER_NEVER;
	if (now - load_relaxed(&ps->since) >= POST_LATE_NS)
		send_late(mp, ps);
	return POST_LOOK_NS;
}

int64_t fd_post_look(struct m *mp, int64_t now)
{
	int64_t next = TIMER_NEVER;

	for (int i = 0, n = load_acquire(&sched.gomaxprocs); i < n; i++)
		next = soonest(next, look_at(mp, p_at(i), now));
	return next;
}

/* ------------------------------------------------------------------ the owner */

void fd_post_flush(struct m *mp)
{
	struct posts *ps = &mp->p->posts;
	int64_t now = os_now();

	if (now - ps->since >= POST_LATE_NS)
		give_up(ps, mp, now);
	send_queue(mp, &ps->queue);
}

static void is_first(struct posts *ps, const struct m *mp, int64_t now)
{
	store_relaxed(&ps->since, now);
	ps->cpu_tid = 0;
	if (unlikely(on_trial(ps, now))) {
		ps->cpu = os_thread_cpu(0);
		ps->cpu_tid = mp->tid;
	}
}

static bool may_be_first(struct m *mp)
{
	struct p *pp = mp->p;
	int64_t now;
	bool is_short;

	if (load_relaxed(&sched.bound.n) != 0 || debug.post < 0)
		return false;
	now = os_now();
	store_relaxed(&pp->posts.asked, pp->posts.asked + 1);
	is_short = turns_are_short(pp, now) && !given_up(&pp->posts, mp, now);
	if ((!is_short && debug.post == 0) || !sysmon_looks_soon(now))
		return false;
	is_first(&pp->posts, mp, now);
	return true;
}

/* In state RUNTIME. */
static bool may_post(struct m *mp)
{
	struct p *pp = mp->p;
	uint32_t n;

	if (unlikely(!pp || mp->curg->locked_m || mp->curg->preempt_off))
		return false;
	n = length(&pp->posts.queue);
	if (n >= POST_MAX || (n % 4 == 3 && fd_posts_due(pp))) {
		fd_post_flush(mp);
		n = 0;
	}
	return n > 0 || (length(&pp->woken) >= POST_LEAST && fd_ring_wanted() && may_be_first(mp));
}

/* Nobody else pushes, and there was room when it was decided. */
static void commit(struct m *mp, struct g *gp)
{
	if (!ring_push(&mp->p->posts.queue, gp))
		throw("fd_post: no room");
}

ssize_t fd_post(struct fd *f, void *buf, size_t n, int flags)
{
	struct m *mp = rt_enter_free();
	struct g *gp = mp->curg;
	ssize_t r;

	if (likely(!may_post(mp))) {
		rt_exit_free(mp);
		return -EAGAIN;
	}
	*flags_of(gp) = flags | MSG_DONTWAIT | MSG_NOSIGNAL;
	message(gp)->key = f;
	message(gp)->elem = buf;
	message(gp)->index = (int)n;
	runq_prefetch(mp->p);
	mp = park(mp, commit, NULL, WAIT_IO);
	r = message(gp)->index;
	rt_exit_free(mp);
	return r;
}

void fd_post_drain(struct m *mp, struct p *pp)
{
	struct g *gs[POST_MAX];
	uint32_t n;

	while ((n = ring_take(&pp->posts.queue, gs, POST_MAX)))
		for (uint32_t i = 0; i < n; i++) {
			message(gs[i])->index = -EAGAIN;
			g_ready_quietly(mp, gs[i]);
		}
}

/*
 * fd_guess.c - reads that are not even tried.
 *
 * Who has answered a request and reads the next one finds nothing: the other side has
 * not had the time. Such a try costs a system call, one in four of those that a
 * request needs. So where the last tries found nothing, the goroutine waits at once,
 * as if it had tried (fd_guess), and the event that makes it ready says that it is
 * worth while. Every so many times it does try, to find out when that changes.
 *
 * There need not be an event. Data may be there that an earlier one has announced: the
 * second of two datagrams, the second record of a socket with a protocol on top in the
 * kernel. So a wait without a try is only put off: the P keeps a list of the
 * descriptors (untried), and when it has nothing else to run, and the poller has
 * nothing either, it makes those ready that still wait, and they try (fd_guess_flush).
 * If the P never runs out of work, sysmon sees to it after a while (untried_due).
 *
 * A descriptor is on one list at most, and stays there when an event comes, to be found
 * out when the list is looked through. A list belongs to its P's owner; a P with a
 * list is not idle.
 *
 * Rejected: taking a read that returned less than was asked for as a sign that there is
 * no more: true of plain TCP, but not of what may be put on top of it, nor of others;
 * and where it is not, the goroutine would hang.
 */
#include "fd.h"
#include "runq.h"
#include "runtime.h"
#include "waitq.h"

/* Tries in a row that found nothing, before the next is guessed to; and every so many
 * guesses one is tried after all. */
#define GUESS_AFTER 2
#define GUESS_CHECK 16

/* Goroutines that were stopped wait in the bound queue: among those who compute, what
 * is put off may wait long. */
bool fd_guess(struct fd *f)
{
	const struct m *mp;

	if (likely(load_relaxed(&f->misses) < GUESS_AFTER) || !load_relaxed(&f->own) ||
	    load_relaxed(&f->kind) != FD_SOCKET)
		return false;
	count_up(&f->guesses, 1);
	if (load_relaxed(&f->guesses) % GUESS_CHECK == 0 || load_relaxed(&sched.bound.n) != 0)
		return false;
	mp = m_self();
	return mp && !mp->is_foreign;
}

void fd_tried(struct fd *f, bool found)
{
	uint8_t misses = load_relaxed(&f->misses);

	if (found && misses != 0)
		store_relaxed(&f->misses, 0);
	else if (!found && misses < GUESS_AFTER)
		store_relaxed(&f->misses, misses + 1);
}

bool fd_guess_wait(struct m *mp, struct fd *f)
{
	struct p *pp = mp->p;

	/* Whoever waits is taken off in order: it has to be the first. */
	if (f->side[FD_READ].waiters.first)
		return false;
	f->untried = true;
	if (!f->listed) {
		f->listed = true;
		f->untried_link = pp->untried;
		store_relaxed(&pp->untried, f);
	}
	return true;
}

static void collect(struct fd *f, struct ready_list *list)
{
	lock_acquire(&f->lock);
	f->listed = false;
	if (f->untried) {
		f->untried = false;
		fd_take_off_first(f, FD_READ, list);
	}
	lock_release(&f->lock);
}

void fd_guess_flush(struct m *mp)
{
	struct ready_list list = { NULL, NULL };
	struct fd *f = mp->p->untried, *next;

	store_relaxed(&mp->p->untried, NULL);
	store_relaxed(&mp->p->untried_due, 0);
	count_up(&mp->p->untried_turn, 1);
	for (; f; f = next) {
		next = f->untried_link;		/* before it can be listed again */
		collect(f, &list);
	}
	for (struct g *gp = list.head, *after; gp; gp = after) {
		after = gp->link;
		gp->link = NULL;
		if (g_make_runnable(mp, gp))
			runq_put_woken(mp->p, gp);
	}
}

/* A P goes out of use. World stopped. */
void fd_guess_move(struct p *from, struct p *to)
{
	struct fd *f = from->untried, *next;

	for (; f; f = next) {
		next = f->untried_link;
		f->untried_link = to->untried;
		store_relaxed(&to->untried, f);
	}
	store_relaxed(&from->untried, NULL);
}

void fd_guess_watch(struct p *pp, int64_t now)
{
	uint32_t turn = load_relaxed(&pp->untried_turn);

	if (!load_relaxed(&pp->untried) || turn != pp->seen_untried_turn) {
		pp->seen_untried_turn = turn;
		pp->seen_untried_at = now;
	} else if (now - pp->seen_untried_at >= NETPOLL_LOAD_NS) {
		store_relaxed(&pp->untried_due, 1);
	}
}

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

/* Tries in a row that found nothing, before the next is guessed to (f->quiet); and after
 * so many guesses, counted on from there, one is tried after all. */
#define GUESS_AFTER FD_GUESS_AFTER
#define GUESS_CHECK 16

/* Goroutines that were stopped wait in the bound queue: among those who compute, what
 * is put off may wait long. */
bool fd_guess(struct fd *f)
{
	const struct m *mp;

	uint8_t quiet = load_relaxed(&f->quiet);

	if (likely(quiet < GUESS_AFTER) || !load_relaxed(&f->own) ||
	    load_relaxed(&f->kind) != FD_SOCKET)
		return false;
	if (quiet >= GUESS_AFTER + GUESS_CHECK - 1 || load_relaxed(&sched.bound.n) != 0)
		return false;
	store_relaxed(&f->quiet, quiet + 1);
	mp = m_self();
	return mp && !mp->is_foreign;
}

void fd_tried(struct fd *f, bool found)
{
	uint8_t quiet = load_relaxed(&f->quiet);

	if (found && quiet != 0)
		store_relaxed(&f->quiet, 0);
	else if (!found)
		store_relaxed(&f->quiet, quiet < GUESS_AFTER ? quiet + 1 : GUESS_AFTER);
}

static void list_put(struct p *pp, struct fd *f)
{
	f->untried_link = 0;
	if (pp->untried)
		pp->untried_last->untried_link = (uint32_t)f->number + 1;
	else
		store_relaxed(&pp->untried, f);
	pp->untried_last = f;
}

static struct fd *list_next(const struct fd *f)
{
	return f->untried_link ? fd_at((int)(f->untried_link - 1)) : NULL;
}

bool fd_guess_wait(struct m *mp, struct fd *f)
{
	/* Whoever waits is taken off in order: it has to be the first. */
	if (f->waiters[FD_READ].first)
		return false;
	f->untried = 1;
	if (!f->listed) {
		f->listed = 1;
		list_put(mp->p, f);
	}
	return true;
}

static void collect(struct fd *f, struct ready_list *list)
{
	lock_acquire(&f->lock);
	f->listed = 0;
	if (f->untried)
		fd_take_off_first(f, FD_READ, list);
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
		next = list_next(f);		/* before it can be listed again */
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
		next = list_next(f);
		list_put(to, f);
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

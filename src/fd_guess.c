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
 * Trying first
 *
 * Where requests and answers go to and fro on this machine, the one who has waited
 * longest often has something to read by the time the P runs out of work, and asking the
 * poller, one system call more, would only say so. So the P makes the first on its list
 * try before it asks (fd_guess_try), up to TRY_ROW times in a row, after which the poller
 * is looked at in any case: others wait there, and other threads leave it to us while
 * we look often (netpoll_attended). The first try in vain ends it, for a number of looks
 * that doubles each time.
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

/* Tries in a row before the poller is asked; and how often it is asked, after a try in
 * vain, before the next: at first, and at most. */
#define TRY_ROW       8
#define TRY_PAUSE_MIN 16
#define TRY_PAUSE_MAX 4096

/* Goroutines that were stopped wait in the bound queue: among those who compute, what
 * is put off may wait long. */
static bool may_put_off(const struct fd *f)
{
	const struct m *mp;

	if (!load_relaxed(&f->own) || load_relaxed(&f->kind) != FD_SOCKET ||
	    load_relaxed(&sched.bound.n) != 0)
		return false;
	mp = m_self();
	return mp && !mp->is_foreign;
}

bool fd_guess(struct fd *f)
{
	uint8_t quiet = load_relaxed(&f->quiet);

	if (likely(quiet < GUESS_AFTER) || quiet >= GUESS_AFTER + GUESS_CHECK - 1 ||
	    !may_put_off(f))
		return false;
	store_relaxed(&f->quiet, quiet + 1);
	return true;
}

bool fd_tried(struct fd *f, bool found)
{
	uint8_t quiet = load_relaxed(&f->quiet);

	if (found) {
		if (quiet != 0)
			store_relaxed(&f->quiet, 0);
		return false;
	}
	store_relaxed(&f->quiet, quiet < GUESS_AFTER ? quiet + 1 : GUESS_AFTER);
	return quiet >= GUESS_AFTER && may_put_off(f);
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
	if (!f->listed)
		f->listed = 1;
	else if (mp->p->untried == f)	/* those who waited before it come first now */
		store_relaxed(&mp->p->untried, list_next(f));
	else
		return true;
	list_put(mp->p, f);
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

/* The first that still waits, off the list; NULL: none. */
static struct g *take_first(struct p *pp)
{
	struct ready_list list = { NULL, NULL };
	struct fd *f;

	while (!list.head && (f = pp->untried)) {
		store_relaxed(&pp->untried, list_next(f));
		collect(f, &list);
	}
	return list.head;
}

struct g *fd_guess_try(struct m *mp)
{
	struct p *pp = mp->p;
	struct g *gp;

	if (pp->try_left == 0 || !pp->untried || globq_length() != 0)
		return NULL;
	pp->try_left--;
	gp = take_first(pp);
	if (!gp)
		return NULL;
	gp->waiters[0].index = WOKEN_TO_TRY;
	count_up(&pp->untried_turn, 1);
	return g_make_runnable(mp, gp) ? gp : NULL;
}

void fd_guess_asked(struct p *pp)
{
	if (pp->try_pause > 0) {
		if (--pp->try_pause > 0)
			return;
	} else if (pp->try_left == 0) {		/* none of a whole row was in vain */
		pp->try_pause_last = 0;
	}
	pp->try_left = TRY_ROW;
}

void fd_guess_in_vain(struct p *pp)
{
	uint32_t pause = 2 * pp->try_pause_last;

	pp->try_left = 0;
	pp->try_pause_last = pause < TRY_PAUSE_MIN ? TRY_PAUSE_MIN :
	                     pause > TRY_PAUSE_MAX ? TRY_PAUSE_MAX : pause;
	pp->try_pause = pp->try_pause_last;
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

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
 *
 * Late
 *
 * A P that never runs out of work is told by sysmon now and then that it is time
 * (untried_due), and makes those try that have waited for long (fd_guess_late). What is
 * long depends on how long an answer takes: with a thousand connections that are all busy
 * each waits for 15 ms, and if they were made to try after one they all would, in vain, for
 * an event that comes anyway. So it is as long as it has to be for such tries to be a
 * small part of all that the P does (adapt). A number that sysmon counts up, twice in that
 * time, says for how long one has waited; four bits of it are noted with the descriptor.
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

/* How long one waits before it tries although its P does not run out of work: at least
 * NETPOLL_LOAD_NS, and so many times twice as long. Longer if more than one switch in
 * LATE_MANY was for that; less if after so many looks there were hardly any. */
#define LATE_DOUBLINGS 6
#define LATE_MANY      32
#define LATE_FEW       256
#define LATE_SOME      8
#define LATE_LOOKS     16

static uint32_t late_doublings;
static uint32_t late_looks;	/* that found few, in a row */
static uint32_t late_clock;	/* counted up twice in that time; sysmon's */
static int64_t late_clock_at;	/* when it last was; sysmon's */

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
	f->since = load_relaxed(&late_clock) & SINCE_MASK;
	if (!f->listed)
		f->listed = 1;
	else if (mp->p->untried == f)	/* those who waited before it come first now */
		store_relaxed(&mp->p->untried, list_next(f));
	else
		return true;
	list_put(mp->p, f);
	return true;
}

/* lock held. It came since the last but one count of the clock. */
static bool is_new(const struct fd *f)
{
	return ((load_relaxed(&late_clock) - f->since) & SINCE_MASK) < 2;
}

/* Who waits for f is to try, if it has not. False: it is too early for that. */
static bool collect(struct fd *f, bool even_new, struct ready_list *list)
{
	bool leave;

	lock_acquire(&f->lock);
	leave = f->untried && !even_new && is_new(f);
	if (!leave)
		f->listed = 0;
	if (!leave && f->untried)
		fd_take_off_first(f, FD_READ, list);
	lock_release(&f->lock);
	return !leave;
}

/* How many are to try now. */
static uint32_t look_through(struct m *mp, bool even_new)
{
	struct ready_list list = { NULL, NULL };
	struct fd *f = mp->p->untried, *next;
	uint32_t n = 0;

	store_relaxed(&mp->p->untried, NULL);
	store_relaxed(&mp->p->untried_due, 0);
	count_up(&mp->p->untried_turn, 1);
	for (; f; f = next) {
		next = list_next(f);		/* before it can be listed again */
		if (!collect(f, even_new, &list))
			list_put(mp->p, f);
	}
	for (struct g *gp = list.head, *after; gp; gp = after, n++) {
		after = gp->link;
		gp->link = NULL;
		if (g_make_runnable(mp, gp))
			runq_put_woken(mp->p, gp);
	}
	return n;
}

void fd_guess_flush(struct m *mp)
{
	look_through(mp, true);
}

/* So many were made to try, of so many who ran. (Ps that do this at the same time may
 * undo each other's change: it will be made again.) */
static void adapt(uint32_t n, uint64_t ran)
{
	uint32_t doublings = load_relaxed(&late_doublings);
	uint32_t looks = load_relaxed(&late_looks) + 1;

	if (n > LATE_SOME + ran / LATE_MANY) {
		looks = 0;
		doublings += doublings < LATE_DOUBLINGS;
	} else if (n > LATE_SOME + ran / LATE_FEW) {
		looks = 0;
	} else if (looks >= LATE_LOOKS) {
		looks = 0;
		doublings -= doublings > 0;
	}
	store_relaxed(&late_doublings, doublings);
	store_relaxed(&late_looks, looks);
}

void fd_guess_late(struct m *mp)
{
	uint64_t switches = mp->p->count.switches;

	adapt(look_through(mp, false), switches - mp->p->untried_switches);
	mp->p->untried_switches = switches;
}

/* The first that still waits, off the list; NULL: none. */
static struct g *take_first(struct p *pp)
{
	struct ready_list list = { NULL, NULL };
	struct fd *f;

	while (!list.head && (f = pp->untried)) {
		store_relaxed(&pp->untried, list_next(f));
		collect(f, true, &list);
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
	int64_t late = (int64_t)NETPOLL_LOAD_NS << load_relaxed(&late_doublings);
	uint32_t turn = load_relaxed(&pp->untried_turn);

	if (now - late_clock_at >= late / 2) {
		late_clock_at = now;
		count_up(&late_clock, 1);
	}
	if (!load_relaxed(&pp->untried) || turn != pp->seen_untried_turn) {
		pp->seen_untried_turn = turn;
		pp->seen_untried_at = now;
	} else if (now - pp->seen_untried_at >= late) {
		store_relaxed(&pp->untried_due, 1);
	}
}

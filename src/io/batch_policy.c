/*
 * batch_policy.c - when a call on a socket is deferred, and until when.
 *
 * GORO_DEBUG=batch=-1: never. batch=1: whenever it is possible, for tests.
 *
 * Writes
 *
 * A gathered write waits until the goroutines that are about to run on its P have run. If
 * one of them computes, or blocks unannounced, the write would be late. A batch begins
 * only if that is not to be expected:
 *
 * - BATCH_LEAST - 1 others wait in the P's queue of the woken.
 * - No preempted goroutine waits for a P: none is known to compute.
 * - Turns on the P took less than BATCH_TURN_NS each, on average, since a batch was last
 *   about to begin.
 * - No batch was late (BATCH_LATE_NS) a short while ago. Each late one makes a pause,
 *   twice as long if the next one is late soon after it.
 * - sysmon will look within BATCH_LOOK_NS.
 *
 * A goroutine that computes for the first time cannot be foreseen. sysmon finds a P whose
 * writes are late, and preempts the goroutine when it has seen its slice for
 * WORK_SLICE_NS; the M that gets the P then sends the writes first. So such a goroutine
 * delays a write by BATCH_LATE_NS, BATCH_LOOK_NS and WORK_SLICE_NS at most, if sysmon and
 * a thread get a CPU, and the pauses make this rarer each time.
 *
 * Untried reads
 *
 * A read is left untried if the last two tries of its descriptor found nothing. Every
 * 16th is tried all the same, to find out when that changes. The P tries
 *
 * - the first untried read, before it looks at the poller, if fewer than BATCH_LEAST
 *   wait. Where request and answer alternate on this machine that often finds something,
 *   and saves the look. After TRY_ROW tries, or one in vain, the P looks at the poller:
 *   others wait there.
 * - the PASS_TRIES oldest every PASS_NS, if the P is never without work. With a thousand
 *   busy connections most of these tries are in vain, which costs a hundredth of a CPU.
 *   (Rejected: tries after as long as answers take, which the P would have to learn.)
 */
#include "io/batch.h"

#include "base/debug.h"
#include "platform/os.h"
#include "sched/runq.h"
#include "sched/runtime.h"
#include "sched/work.h"

/* Fewer calls than this are not worth a batch. */
#define BATCH_LEAST 4
/* Turns are short if they take no longer than this, on average. */
#define BATCH_TURN_NS 20000
/* Writes are sent after WAIT, when the P looks at the clock, and are late after LATE. */
#define BATCH_WAIT_NS 50000
#define BATCH_LATE_NS 200000
/* sysmon looks at this interval while there are batches. */
#define BATCH_LOOK_NS 1000000
/* After a late batch none begins for a pause: the first, and the longest. The pause
 * doubles if the next late one comes within WELL of its end. */
#define PAUSE_MIN_NS 1000000
#define PAUSE_MAX_NS 1000000000
#define WELL_NS      16000000

/* Of this many reads that would be left untried, one is tried (fd.quiet counts on). */
#define GUESS_CHECK 16

/* Tries in a row before a look at the poller; and looks, after a try in vain. */
#define TRY_ROW   8
#define TRY_PAUSE 64

/* Of a P that is never without work. */
#define PASS_NS    NETPOLL_LOAD_NS
#define PASS_TRIES 32

/* ------------------------------------------------------------------ writes */

static bool turns_are_short(const struct p *pp, struct p_io *io, int64_t now)
{
	uint64_t turns = pp->count.switches - io->turns;
	int64_t passed = now - io->turns_at;

	io->turns_at = now;
	io->turns += turns;
	return passed <= (int64_t)turns * BATCH_TURN_NS;
}

static bool sysmon_looks_soon(int64_t now)
{
	return load_relaxed(&monitor.looks_at) - now <= BATCH_LOOK_NS;
}

static bool others_are_about_to_run(const struct p *pp)
{
	return load_relaxed(&pp->woken.tail) - load_relaxed(&pp->woken.head) >= BATCH_LEAST - 1 &&
	       load_relaxed(&globq.bound.n) == 0;
}

bool batch_may_begin(struct m *mp, struct p_io *io)
{
	int64_t now;
	bool is_short;

	if (!others_are_about_to_run(mp->p) || debug.batch < 0 || debug.asyncpreemptoff)
		return false;
	now = os_now();
	store_relaxed(&io->asked, io->asked + 1);
	is_short = turns_are_short(mp->p, io, now) && now >= io->again_at;
	if ((!is_short && debug.batch == 0) || !sysmon_looks_soon(now))
		return false;
	store_relaxed(&io->since, now);
	return true;
}

static bool have_waited(const struct p_io *io, int64_t ns)
{
	return load_relaxed(&io->n) != 0 && os_now() - load_relaxed(&io->since) >= ns;
}

bool batch_sends_due(const struct p_io *io)
{
	return have_waited(io, BATCH_WAIT_NS);
}

bool batch_sends_late(const struct p_io *io)
{
	return have_waited(io, BATCH_LATE_NS);
}

void batch_sends_end(struct p_io *io)
{
	int64_t now = os_now();

	if (likely(now - io->since < BATCH_LATE_NS))
		return;
	fetch_add_relaxed(&batch_counts.late, 1);
	if (io->pause == 0 || now - io->again_at >= WELL_NS)
		io->pause = PAUSE_MIN_NS;
	else
		io->pause = soonest(2 * io->pause, PAUSE_MAX_NS);
	io->again_at = now + io->pause;
}

int64_t batch_watch(int64_t now)
{
	int64_t next = TIMER_NEVER;

	(void)now;
	for (int i = 0, n = load_acquire(&sched.gomaxprocs); i < n; i++) {
		struct p_io *io = batch_known(p_at(i));
		uint32_t asked = io ? load_relaxed(&io->asked) : 0;

		if (!io || (asked == io->seen_asked && load_relaxed(&io->n) == 0))
			continue;
		io->seen_asked = asked;
		next = BATCH_LOOK_NS;
	}
	return next;
}

/* ------------------------------------------------------------ untried reads */

/* Where goroutines compute an untried read may wait for long. */
static bool may_guess(void)
{
	const struct m *mp = m_self();

	return load_relaxed(&globq.bound.n) == 0 && mp && !mp->is_foreign && debug.batch >= 0;
}

bool batch_guess(struct fd *f)
{
	uint8_t quiet = load_relaxed(&f->quiet);

	if (likely(quiet < BATCH_GUESS_AFTER) || quiet >= BATCH_GUESS_AFTER + GUESS_CHECK - 1 ||
	    !may_guess())
		return false;
	store_relaxed(&f->quiet, quiet + 1);
	return true;
}

bool batch_tried(struct fd *f, bool found)
{
	uint8_t quiet = load_relaxed(&f->quiet);

	if (found) {
		if (quiet != 0)
			store_relaxed(&f->quiet, 0);
		return false;
	}
	store_relaxed(&f->quiet, quiet < BATCH_GUESS_AFTER ? quiet + 1 : BATCH_GUESS_AFTER);
	return quiet >= BATCH_GUESS_AFTER && may_guess();
}

bool batch_may_try(struct p_io *io)
{
	if (io->tries == 0 || io->untried_n >= BATCH_LEAST || globq_length() != 0)
		return false;
	io->tries--;
	return true;
}

void batch_try_was(struct p_io *io, bool found)
{
	if (found)
		return;
	io->tries = 0;
	io->try_pause = TRY_PAUSE;
}

void batch_polled(struct p *pp)
{
	struct p_io *io = pp->io;

	if (!io)
		return;
	if (io->try_pause > 0)
		io->try_pause--;
	else
		io->tries = TRY_ROW;
}

bool batch_pass_due(const struct p_io *io)
{
	return load_relaxed(&io->untried) &&
	       load_relaxed(&sched.coarse_now) - load_relaxed(&io->passed_at) >= PASS_NS;
}

uint32_t batch_pass_begin(struct p_io *io)
{
	store_relaxed(&io->passed_at, load_relaxed(&sched.coarse_now));
	return PASS_TRIES;
}

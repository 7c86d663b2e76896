/*
 * beat.c - sleeps of one length, one after the other: the clock is set ahead of them.
 *
 * A thread that sleeps for some time has the kernel set the CPU's timer, unless that is
 * set to something earlier. For a virtual machine this is a trap to its host: on the machine of
 * docs/performance-notes.md it takes 9 us, half of all the CPU time that a sleep and its end take. But when the
 * timer goes off the kernel sets it to whatever comes next, before it wakes anybody. So if
 * something is to happen at the end of the thread's next sleep already, when this one ends, the
 * next finds the timer set, and is only put in a list.
 *
 * Where timers are dense (timer.c) the keeper sleeps again and again, for about as long each time:
 * that is the beat. Two alarms go off at it in turn. Nobody waits for them; they have the
 * CPU's timer set, no more, and the keeper sleeps as it always does, with a limit of its own. Before it
 * does, it sets the alarm that went off last to the beat after next.
 *
 *	beat               1           2           3           4
 *	alarm              a           b           a           b
 *	keeper     sleeps  | a to 3, sleeps  | b to 4, sleeps  | ...
 *
 * The beat comes before what the keeper was allowed, or is not kept: then it sleeps for about as long
 * as it may, and a new one begins. What it is allowed depends on the first timer that waits, which comes some
 * time after the last beat: it takes a while to wake, and timers that become due while others are run are
 * run with them. How long that is is known from the last few times (lead). Sleeps are meant to be a
 * little shorter than allowed, so that a beat that comes later than was meant is kept, too.
 *
 * An alarm for a beat that is not kept is a trap more, instead of one less. So they are set only
 * where most beats were kept of late; the others are only imagined.
 *
 *	- Nobody sleeps longer because of it.
 *	- Nothing depends on the alarms. One that was set for nothing, or on a CPU that the keeper
 *	  has left, is an interrupt for nothing; one that the program has closed is made anew.
 *	- Two threads may be here at once, when another becomes the keeper: one does without.
 *
 * Rejected: a periodic timerfd, which goes off once and is set again by who reads it. To sleep in a
 * read of the alarm: who wakes the keeper would have to know, and the keeper may be in the poller.
 */
#include "beat.h"

#include <stdbool.h>

#include "config.h"
#include "lock.h"
#include "os.h"

static struct lock lock = LOCK_INIT(RANK_LEAF);
static int steady;		/* beats kept of late, BEAT_STEADY_MAX at most */

/* Under the lock. */
static int alarm_fd[2] = { -1, -1 };	/* os_alarm_make's; or negative: none */
static int64_t beat_at[2];	/* those to come, each with its alarm */
static int64_t last_beat;
static int64_t lead;		/* from a beat to the first timer that waits then, of late */

/* ------------------------------------------------------------------ alarms */

/* If there are none to be had, or the program has closed one, it takes a while until the
 * next try. */
static void set_alarm(int i, int64_t at)
{
	if (alarm_fd[i] >= 0 && os_alarm_set(alarm_fd[i], at) == 0)
		return;
	alarm_fd[i] = -1;
	store_relaxed(&steady, 0);
}

/* Where one is gone the other may be, too, and a new one get its number. */
static void make_alarms(void)
{
	if (alarm_fd[0] >= 0 && alarm_fd[1] >= 0)
		return;
	for (int i = 0; i < 2; i++)
		if (alarm_fd[i] >= 0 && os_alarm_set(alarm_fd[i], INT64_MAX) < 0)
			alarm_fd[i] = -1;
	for (int i = 0; i < 2; i++)
		if (alarm_fd[i] < 0)
			alarm_fd[i] = os_alarm_make();
}

/* ------------------------------------------------------------------- beats */

/* Rather too short than too long: a beat that is too late is lost. */
static void learn_lead(int64_t ns, int64_t slack)
{
	if (ns >= 0 && ns < slack)
		lead += (ns - lead) / (ns < lead ? 4 : 16);
}

static void learn_kept(bool kept)
{
	int n = load_relaxed(&steady);

	store_relaxed(&steady, !kept ? n / 2 : n < BEAT_STEADY_MAX ? n + 1 : n);
}

static void plan_beat(int i, int64_t at)
{
	beat_at[i] = at;
	if (load_relaxed(&steady) < BEAT_STEADY)
		return;
	make_alarms();
	set_alarm(i, at);
}

/* The beat that comes in time and not much too early; -1: none. */
static int beat_in_time(int64_t latest, int64_t slack)
{
	int64_t now = os_now();

	for (int i = 0; i < 2; i++)
		if (beat_at[i] > now && beat_at[i] <= latest && beat_at[i] >= latest - slack / 4)
			return i;
	return -1;
}

static int64_t next_beat(int64_t latest, int64_t slack)
{
	int64_t spare = slack / 16, beat = latest - spare;
	int i = beat_in_time(latest, slack);
	int other = i >= 0 ? !i : beat_at[1] < beat_at[0];

	learn_lead(latest - slack - last_beat, slack);
	learn_kept(i >= 0);
	if (i >= 0)
		beat = beat_at[i];
	if (beat_at[other] <= beat)
		plan_beat(other, beat + lead + slack - spare);
	last_beat = beat;
	return beat;
}

int64_t beat_sleep_until(int64_t latest, int64_t slack)
{
	if (slack == 0) {
		store_relaxed(&steady, 0);
		return latest;
	}
	if (!lock_try(&lock))
		return latest;
	latest = next_beat(latest, slack);
	lock_release(&lock);
	return latest;
}

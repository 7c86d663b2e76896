/*
 * scavenge.c - the scavenger: a thread that gives the memory of cold stacks back.
 *
 * Which stacks are cold is g.c's to say, and sysmon's when to look. Giving them back takes
 * the system a good part of a CPU, so it is done at leisure: while the program runs, at most a
 * tenth of what is left each second and a hundredth of a CPU, a batch at a time and a rest
 * after it; when nothing has run for a while, all of it, until something does. (It is CPU time
 * that is counted: beside those who compute a batch may take long and cost little.)
 *
 * It has no P and takes no libc lock, and is there only once there was something to give back.
 * When nothing is left it sleeps until sysmon says that there is:
 *
 *	scavenger                       sysmon
 *	state = ASLEEP                  pools' cold = n
 *	read pools' cold                read state
 *	 0: sleep                        ASLEEP: wake it
 *
 * Rejected: sysmon itself. It would have to do this as an ordinary thread, and beside those
 * who compute an ordinary thread that has used a CPU gets it again when somebody's slice is
 * over; meanwhile nobody looks after those who wake. (A sleep of 2 ms beside two hogs a P while
 * 100,000 stacks were given back, 99th percentile: 2 to 3 ms late, and 0.3 to 0.6 now.) Nor the
 * spawner, for whom those wait whose thread has blocked.
 */
#include "scavenge.h"

#include "os.h"
#include "runtime.h"

enum state { NONE, WANTED, ASLEEP, AT_WORK };

static uint32_t state;		/* NONE to WANTED: sysmon; and back or on: the spawner; then its own */
static uint32_t at_once;	/* nothing runs: no rest */
static struct note note;

/* Some of the cold ones. How long to rest afterwards; TIMER_NEVER: there are none. */
static int64_t give_some_back(void)
{
	int64_t before = os_thread_cpu(0), rest, least;
	size_t left, given = g_pool_give_back(&left);

	if (given == 0)
		return TIMER_NEVER;
	if (load_relaxed(&at_once)) {
		if (all_idle())
			return 0;
		store_relaxed(&at_once, 0);
	}
	rest = SCAVENGE_ALL_NS * (int64_t)given / (int64_t)(given + left);
	least = SCAVENGE_REST * (os_thread_cpu(0) - before);
	return rest > least ? rest : least;
}

static void *scavenger(void *arg)
{
	(void)arg;
	os_thread_name("goro-scavenge");
	for (;;) {
		int64_t rest = give_some_back();

		if (rest != TIMER_NEVER) {
			note_sleep_for(&note, rest);
			continue;
		}
		store_relaxed(&at_once, 0);
		store_seqcst(&state, ASLEEP);	/* see the top */
		if (g_pool_cold() == 0)
			note_sleep(&note);
		store_relaxed(&state, AT_WORK);
	}
	return NULL;
}

void scavenge_start_if_wanted(void)
{
	if (load_relaxed(&state) != WANTED)
		return;
	store_relaxed(&state, AT_WORK);
	if (!m_make_helper(scavenger))
		store_relaxed(&state, NONE);	/* the next time, perhaps */
}

void scavenge_notice(bool idle)
{
	if (g_pool_cold() == 0)
		return;
	switch (load_seqcst(&state)) {	/* see the top */
	case NONE:
		store_relaxed(&state, WANTED);
		m_spawn();
		break;
	case ASLEEP:
		note_wake(&note);
		break;
	}
	if (idle && !load_relaxed(&at_once)) {
		store_relaxed(&at_once, 1);
		note_wake(&note);
	}
}

/*
 * scavenge.c - the scavenger: a thread that gives the memory of cold stacks back.
 *
 * g.c decides which stacks are cold, and sysmon when to look. Giving stacks back takes
 * the kernel a good part of a CPU, so the scavenger rests after each batch:
 *
 * - While the program runs it gives back at most a tenth of the remaining stacks a
 *   second, and uses at most a hundredth of a CPU. CPU time is what counts: where other
 *   threads compute, a batch may last long and cost little.
 * - When nothing has run for a while it gives back all of them without a rest, until
 *   something runs.
 *
 * The scavenger has no P and takes no libc lock. It is started when there first is
 * something to give back. When nothing is left it sleeps until sysmon wakes it:
 *
 *	scavenger                       sysmon
 *	state = ASLEEP                  pools' cold = n
 *	read pools' cold                read state
 *	 0: sleep                        ASLEEP: wake it
 *
 * Rejected:
 *
 * - sysmon itself. For this work it would have to be an ordinary thread. Where goroutines
 *   compute, an ordinary thread that has used a CPU gets it again only when a kernel
 *   slice is over, and until then no goroutine is preempted for those that wake.
 * - The spawner. Goroutines whose thread has blocked wait for the threads that it makes.
 */
#include "reclaim/scavenge.h"

#include "platform/os.h"
#include "sched/init.h"
#include "sched/runtime.h"

/* While the program runs: how long giving all cold stacks back would take at the pace of
 * the last batch; and how many times the CPU time of a batch the rest after it is at
 * least, which makes a hundredth of a CPU at most, as with Go's. */
#define SCAVENGE_ALL_NS 10000000000LL
#define SCAVENGE_REST   99

enum state { NONE, WANTED, ASLEEP, AT_WORK };

static uint32_t state;		/* sysmon moves it from NONE to WANTED, the spawner from
				 * there to AT_WORK or back to NONE, then the scavenger */
static uint32_t at_once;	/* nothing runs: no rests */
static struct note note;

/* Gives a batch of cold stacks back. The ns to rest then; TIMER_NEVER: none is cold. */
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

/* Starts the scavenger, if there is something for it to do. The spawner only. */
static void scavenge_start_if_wanted(void)
{
	if (load_relaxed(&state) != WANTED)
		return;
	store_relaxed(&state, AT_WORK);
	if (!m_make_other(scavenger, false))
		store_relaxed(&state, NONE);	/* sysmon asks again */
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

HOOK(at_spawner, 0, scavenge_start_if_wanted);

/*
 * sysmon.c - the thread that watches the others.
 *
 * It has no P and takes no libc lock. Every tick it looks for goroutines that
 * have run for their whole slice and asks them to give way at the end of their
 * runtime call; it keeps the coarse clock, follows the CPU quota and gives cold
 * stacks back. The tick is 20 us while there is something to do and doubles up
 * to 10 ms when there was nothing for a while, as in Go.
 *
 * When every P is idle it lingers for a few ticks, to see to what is left over
 * (cold stacks, a deadlock that was not yet certain), and then sleeps without a
 * timeout until a P is taken from the idle list: an idle process makes no
 * system calls.
 */
#include <pthread.h>
#include <signal.h>

#include "os.h"
#include "procs.h"
#include "runq.h"
#include "runtime.h"
#include "schedtrace.h"

static struct note sysmon_note;

void sysmon_wake(void)
{
	sched.sysmon_asleep = false;
	note_wake(&sysmon_note);
}

/* Asks the goroutine on pp to give way if it has run for its slice. True if it
 * did anything. */
static bool retake_slice(struct p *pp, int64_t now)
{
	uint32_t tick = load_relaxed(&pp->sched_tick);
	struct m *mp;

	if (load_acquire(&pp->status) != P_RUNNING)
		return false;
	if (pp->seen_tick != tick) {
		pp->seen_tick = tick;
		pp->seen_at = now;
		return false;
	}
	if (now - pp->seen_at < SLICE_NS)
		return false;
	if (runq_empty(pp) && globq_length() == 0)
		return false;
	mp = load_acquire(&pp->mp);
	if (mp)
		fetch_or_acqrel(&mp->attn, ATTN_YIELD);
	pp->seen_at = now;
	return true;
}

static bool retake_all(int64_t now)
{
	bool any = false;

	for (int i = 0, n = load_acquire(&sched.gomaxprocs); i < n; i++)
		any |= retake_slice(sched.all_p[i], now);
	return any;
}

static bool all_idle(void)
{
	return load_relaxed(&sched.idle_p_n) == load_relaxed(&sched.gomaxprocs) &&
	       !load_relaxed(&sched.stopping);
}

/* Sleeps without a timeout until a P is in use again. */
static void deep_sleep(void)
{
	lock_acquire(&sched.lock);
	if (!all_idle()) {
		lock_release(&sched.lock);
		return;
	}
	sched.sysmon_asleep = true;
	lock_release(&sched.lock);
	note_sleep(&sysmon_note);
}

/* Something is left to see to although nothing runs. */
static bool unfinished(void)
{
	return g_pool_cached() != 0 || deadlock_unsure() || schedtrace_on();
}

/* Idle ticks of 10 ms after which even what is unfinished is left alone. */
#define LINGER_TICKS 100

struct watch {
	int64_t tick;
	int quiet;		/* ticks in a row without anything to do */
	int lingered;
	int64_t quota_at, scavenge_at;
};

static void next_tick(struct watch *w, bool busy)
{
	if (busy)
		w->quiet = 0;
	if (w->quiet++ < SYSMON_QUIET_TICKS) {
		w->tick = SYSMON_TICK_MIN_NS;
		return;
	}
	w->tick *= 2;
	if (w->tick > SYSMON_TICK_MAX_NS)
		w->tick = SYSMON_TICK_MAX_NS;
}

static void slow_duties(struct watch *w, int64_t now)
{
	if (now - w->scavenge_at >= STACK_COLD_NS) {
		w->scavenge_at = now;
		g_pool_scavenge();
	}
	if (now - w->quota_at >= QUOTA_CHECK_NS) {
		w->quota_at = now;
		procs_follow_machine();
	}
	schedtrace_tick(now);
}

/* All Ps are idle: lingers, or sleeps. */
static void idle_tick(struct watch *w)
{
	w->tick = SYSMON_TICK_MAX_NS;
	if (w->lingered++ < 2 || (unfinished() && w->lingered < LINGER_TICKS)) {
		os_sleep(w->tick);
		if (deadlock_unsure()) {
			lock_acquire(&sched.lock);
			deadlock_check();
			lock_release(&sched.lock);
		}
		return;
	}
	deep_sleep();
	*w = (struct watch){ .tick = SYSMON_TICK_MIN_NS, .quota_at = w->quota_at };
}

static void *sysmon_thread(void *arg)
{
	struct watch w = { .tick = SYSMON_TICK_MIN_NS };

	(void)arg;
	foreign_attach();	/* an M, so that it can stop the world */
	for (;;) {
		int64_t now;

		if (all_idle()) {
			idle_tick(&w);
		} else {
			w.lingered = 0;
			os_sleep(w.tick);
		}
		now = os_now();
		store_relaxed(&sched.coarse_now, now);
		next_tick(&w, retake_all(now));
		slow_duties(&w, now);
	}
	return NULL;
}

void sysmon_init(void)
{
	pthread_t thread;
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&thread, NULL, sysmon_thread, NULL) != 0)
		throw("newosproc");
	pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/*
 * m.c - threads: made, put to sleep, woken, ended.
 *
 * Who makes threads
 *
 * Making a thread takes libc locks, which a goroutine that was stopped inside
 * libc may hold. So no M makes one, and sysmon neither: a P in need of a thread
 * is queued (sched.need_m) and the spawner thread, which runs no goroutines and
 * holds up nobody when it waits, makes the thread. An M that comes free in the
 * meantime serves the queue first; a thread made too many goes to sleep.
 *
 * Idle Ms sleep on a note each, last in first out, so that those in excess stay
 * at the bottom, where they end after a while. As many as there are Ps, and a
 * few more, never do: an idle process has no timeouts running.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "mem.h"
#include "os.h"
#include "preempt.h"
#include "runq.h"
#include "runtime.h"

__thread struct m *goro_tls_m;

/* Idle threads beyond the Ps that are kept for good. */
#define IDLE_SPARE 2
/* The thread's own stack runs the scheduler loop and nothing of the program's. */
#define M_STACK_BYTES (256 << 10)

static struct note spawner_note;
static struct m *free_m;	/* of ended threads; sched.lock */

struct m *m_alloc(void)
{
	struct m *mp;

	lock_acquire(&sched.lock);
	mp = free_m;
	if (mp)
		free_m = mp->idle_link;
	lock_release(&sched.lock);
	if (mp)
		return mp;
	mp = mem_alloc(sizeof *mp);
	if (!mp)
		return NULL;
	lock_acquire(&sched.lock);
	mp->id = sched.m_next_id++;
	mp->all_link = sched.all_m;
	/* release: dumps walk the list without the lock */
	store_release(&sched.all_m, mp);
	lock_release(&sched.lock);
	return mp;
}

static void learn_stack(struct m *mp)
{
	pthread_attr_t attr;
	void *lo;
	size_t n;

	mp->thread_stack_lo = mp->thread_stack_hi = NULL;
	if (pthread_getattr_np(pthread_self(), &attr) != 0)
		return;
	if (pthread_attr_getstack(&attr, &lo, &n) == 0) {
		mp->thread_stack_lo = lo;
		mp->thread_stack_hi = mp->thread_stack_lo + n;
	}
	pthread_attr_destroy(&attr);
}

void m_attach_thread(struct m *mp)
{
	learn_stack(mp);
	mp->state = M_RUNTIME;
	mp->attn = 0;
	mp->errno_at = &errno;
	mp->tid = os_tid();
	mp->thread = pthread_self();
	mp->rng = (uint64_t)os_now() * 2 + 1;
	goro_tls_m = mp;
}

void m_free(struct m *mp)
{
	goro_tls_m = NULL;
	lock_acquire(&sched.lock);
	mp->idle_link = free_m;
	mp->tid = 0;
	free_m = mp;
	lock_release(&sched.lock);
}

/* ---------------------------------------------------------------- threads */

/* sched.lock held. The first P in need, for an M that is free to serve it. */
static struct p *need_m_pop(void)
{
	struct p *pp = sched.need_m;

	if (pp) {
		sched.need_m = pp->link;
		sched.need_m_n--;
	}
	return pp;
}

static void *m_thread(void *arg)
{
	struct m *mp = arg;

	m_attach_thread(mp);
	preempt_thread_init(mp);
	tool_thread_make(&mp->tool, mp->thread_stack_lo, mp->thread_stack_hi);
	mp->p = NULL;
	mp->ending = false;
	mp->spinning = false;
	mp->starting = true;
	if (m_stop(mp))
		sched_loop(mp);
	if (mp->p)
		p_handoff(p_unbind(mp));
	preempt_thread_end(mp);
	lock_acquire(&sched.lock);
	sched.m_n--;
	sched.m_ended++;
	deadlock_check();
	lock_release(&sched.lock);
	m_free(mp);
	return NULL;
}

static _Noreturn void thread_failed(int error)
{
	char line[128];
	int n = snprintf(line, sizeof line,
	                 "runtime: failed to create new OS thread (have %d already; errno=%d)\n",
	                 sched.m_n, error);

	os_write(STDERR_FILENO, line, (size_t)n);
	if (error == EAGAIN) {
		static const char hint[] =
			"runtime: may need to increase max user processes (ulimit -u)\n";

		os_write(STDERR_FILENO, hint, sizeof hint - 1);
	}
	throw("newosproc");
}

/* The thread starts with all signals blocked, so that none finds it without
 * its M; preempt_thread_init gives it the mask of the program's start. */
static void m_make(void)
{
	struct m *mp = m_alloc();
	pthread_attr_t attr;
	pthread_t thread;
	int error;

	if (!mp)
		throw("out of memory for a thread");
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, M_STACK_BYTES + tool_thread_stack_extra());
	error = pthread_create(&thread, &attr, m_thread, mp);
	pthread_attr_destroy(&attr);
	if (error)
		thread_failed(error);
}

static void check_limit(void)
{
	char line[64];
	int n;

	if (sched.m_n <= THREADS_MAX)
		return;
	n = snprintf(line, sizeof line, "runtime: program exceeds %d-thread limit\n", THREADS_MAX);
	os_write(STDERR_FILENO, line, (size_t)n);
	throw("thread exhaustion");
}

static void *spawner_thread(void *arg)
{
	(void)arg;
	for (;;) {
		bool make;

		lock_acquire(&sched.lock);
		make = sched.need_m_n > sched.m_starting;
		if (make) {
			sched.m_starting++;
			sched.m_n++;
			sched.m_created++;
		}
		lock_release(&sched.lock);
		if (make) {
			check_limit();
			m_make();
		} else {
			note_sleep(&spawner_note);
		}
	}
	return NULL;
}

void m_init(void)
{
	pthread_t thread;
	sigset_t all, old;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(&thread, NULL, spawner_thread, NULL);
	if (error)
		thread_failed(error);
	pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* ------------------------------------------------------- starting, stopping */

void m_start_unlock(struct p *pp, bool spinning)
{
	struct m *mp = sched.idle_m;

	check(lock_is_held(&sched.lock) && !pp->mp);
	if (mp) {
		sched.idle_m = mp->idle_link;
		sched.idle_m_n--;
		mp->next_p = pp;
		mp->spinning = spinning;
		lock_release(&sched.lock);
		note_wake(&mp->park);
		return;
	}
	store_relaxed(&pp->status, P_RUNNING);	/* owned by the queue */
	pp->spawn_spinning = spinning;
	pp->link = sched.need_m;
	sched.need_m = pp;
	sched.need_m_n++;
	lock_release(&sched.lock);
	note_wake(&spawner_note);
}

static void clock_tick(void)
{
	store_relaxed(&sched.coarse_now, os_now());
}

/* sched.lock held. Off the idle list; false: somebody took it off already. */
static bool idle_remove(struct m *mp)
{
	for (struct m **at = &sched.idle_m; *at; at = &(*at)->idle_link)
		if (*at == mp) {
			*at = mp->idle_link;
			sched.idle_m_n--;
			return true;
		}
	return false;
}

/* True: it was handed a P. */
static bool idle_sleep(struct m *mp, bool excess)
{
	bool ended;

	if (!excess || note_sleep_for(&mp->park, IDLE_THREAD_END_NS)) {
		if (!excess)
			note_sleep(&mp->park);
		return true;
	}
	lock_acquire(&sched.lock);
	ended = idle_remove(mp);
	lock_release(&sched.lock);
	if (!ended)
		note_sleep(&mp->park);
	return !ended;
}

bool m_stop(struct m *mp)
{
	struct p *pp;
	bool excess;

	check(!mp->p && !mp->spinning && !mp->locked_g);
	lock_acquire(&sched.lock);
	if (mp->starting) {
		mp->starting = false;
		sched.m_starting--;
	}
	pp = need_m_pop();
	if (pp) {
		mp->spinning = pp->spawn_spinning;
		lock_release(&sched.lock);
		p_bind(mp, pp);
		return true;
	}
	mp->idle_link = sched.idle_m;
	sched.idle_m = mp;
	sched.idle_m_n++;
	excess = sched.idle_m_n > sched.gomaxprocs + IDLE_SPARE;
	deadlock_check();
	lock_release(&sched.lock);

	if (!idle_sleep(mp, excess))
		return false;
	clock_tick();
	p_bind(mp, mp->next_p);
	mp->next_p = NULL;
	return true;
}

/* ------------------------------------------------- goroutines with a thread */

void m_stop_locked(struct m *mp)
{
	check(mp->locked_g && mp->locked_g->locked_m == mp);
	if (mp->p)
		p_handoff(p_unbind(mp));
	lock_acquire(&sched.lock);
	sched.idle_m_locked++;
	deadlock_check();
	lock_release(&sched.lock);
	note_sleep(&mp->park);
	clock_tick();
	p_bind(mp, mp->next_p);
	mp->next_p = NULL;
}

void m_hand_to_locked(struct m *mp, struct g *gp)
{
	struct m *to = gp->locked_m;

	check(to != mp);
	lock_acquire(&sched.lock);
	sched.idle_m_locked--;
	lock_release(&sched.lock);
	to->next_p = p_unbind(mp);
	note_wake(&to->park);
}

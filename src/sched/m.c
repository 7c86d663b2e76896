/*
 * m.c - threads: made, put to sleep, woken, ended.
 *
 * Who makes threads
 *
 * Making a thread takes libc locks, which a goroutine that was stopped inside libc may
 * hold. So neither an M nor sysmon makes one. A P in need of a thread is queued
 * (sched.need_m), and the spawner makes the thread. The spawner is a thread that runs no
 * goroutines, so it holds up nothing when it waits for such a lock. sysmon made it,
 * before it first looked at any P. An M that comes free in the meantime serves the queue
 * first; a thread made too many goes to sleep.
 *
 * (The first M is made by the caller of goro_run, which is in no runtime code and can
 * wait.)
 *
 * Once a P had to be taken from a blocked thread, one idle thread is kept at hand beyond
 * those in use, since making one takes long and may have to wait.
 *
 * Idle threads are in idle.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sched/alone.h"
#include "sched/cxx.h"
#include "sched/init.h"
#include "sched/deadlock.h"
#include "base/mem.h"
#include "platform/os.h"
#include "platform/sim.h"
#include "sched/runq.h"
#include "sched/runtime.h"
#include "stack/stack.h"

__thread struct m *goro_tls_m;

struct hook *at_thread, *at_spawner;

static struct note spawner_note;
static struct m *free_m;	/* of ended threads; sched.lock */

struct m *m_alloc(void)
{
	struct m *mp;

	lock_acquire(&sched.lock);
	mp = free_m;
	if (mp)
		free_m = mp->idle.link;
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

extern void *__libc_stack_end __attribute__((weak));

/* For traces. libc's own answer reads a file of the kernel's for the main thread and
 * allocates memory, a tenth of a millisecond of a program's start. libc puts what it
 * knows of a thread at the end of the thread's stack. */
static void learn_stack(struct m *mp, size_t own_bytes)
{
	pthread_attr_t attr;
	struct rlimit limit;
	void *lo;
	size_t n;

	mp->thread_stack.lo = mp->thread_stack.hi = NULL;
	if (sim && sim->thread_stack(&mp->thread_stack.lo, &mp->thread_stack.hi))
		return;
	if (own_bytes && !tool_thread_stack_extra()) {
		mp->thread_stack.hi = (char *)pthread_self();
		mp->thread_stack.lo = mp->thread_stack.hi - own_bytes;
	} else if (os_tid() == getpid() && &__libc_stack_end && getrlimit(RLIMIT_STACK, &limit) == 0 &&
	           limit.rlim_cur < (uintptr_t)__libc_stack_end) {
		mp->thread_stack.hi = __libc_stack_end;
		mp->thread_stack.lo = mp->thread_stack.hi - limit.rlim_cur;
	} else if (pthread_getattr_np(pthread_self(), &attr) == 0) {
		if (pthread_attr_getstack(&attr, &lo, &n) == 0) {
			mp->thread_stack.lo = lo;
			mp->thread_stack.hi = mp->thread_stack.lo + n;
		}
		pthread_attr_destroy(&attr);
	}
}

void m_attach_thread(struct m *mp, size_t own_bytes)
{
	learn_stack(mp, own_bytes);
	store_relaxed(&mp->state, M_RUNTIME);
	store_relaxed(&mp->attn, (os_membarrier_works ? 0 : ATTN_FENCE) | (sim ? ATTN_SIM : 0));
	mp->errno_at = &errno;
	mp->cxx = cxx_of_thread();
	store_relaxed(&mp->tid, os_tid());
	mp->thread = pthread_self();
	mp->rng = (uint64_t)os_now() * 2 + 1;
	goro_tls_m = mp;
	hook_run(at_thread);
}

void m_free(struct m *mp)
{
	goro_tls_m = NULL;
	lock_acquire(&sched.lock);
	check(!mp->p && !mp->next_p && !mp->idle.at && !mp->spinning);
	mp->idle.link = free_m;
	store_relaxed(&mp->tid, 0);	/* sysmon may look */
	free_m = mp;
	lock_release(&sched.lock);
}

/* ---------------------------------------------------------------- threads */

static void m_thread_run(struct m *mp)
{
	m_attach_thread(mp, M_STACK_BYTES);
	m_signals_begin(mp);
	tool_fiber_make(&mp->tool, NULL, 0);
	mp->p = NULL;
	store_relaxed(&mp->is_foreign, false);	/* it may have stood for a plain thread */
	store_relaxed(&mp->curg, NULL);	/* sysmon may look */
	mp->ending = false;
	mp->spinning = false;
	mp->starting = true;
	if (m_stop(mp))
		sched_loop(mp);
	if (mp->p)
		p_handoff(p_unbind(mp));
	m_signals_end();
	m_end_begin();
	lock_acquire(&sched.lock);
	check(sched.m_n > sched.idle_m_n && !mp->locked_g);
	store_relaxed(&sched.m_n, sched.m_n - 1);
	deadlock_check();
	lock_release(&sched.lock);
	m_free(mp);
}

static void *m_thread(void *mp)
{
	pthread_cleanup_push(thread_end_cleanup, NULL);
	m_thread_run(mp);
	pthread_cleanup_pop(0);
	return NULL;
}

static int add_tls(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_TLS)
			*(size_t *)arg += info->dlpi_phdr[i].p_memsz + info->dlpi_phdr[i].p_align;
	return 0;
}

/* libc puts the thread-local variables of all modules on the thread's stack. */
static size_t tls_bytes(void)
{
	size_t n = 0;

	dl_iterate_phdr(add_tls, &n);
	return (n + os_page_bytes - 1) / os_page_bytes * os_page_bytes;
}

/* With all signals blocked, except for faults: they are not for our threads. */
int m_thread_make_quiet(void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, old;
	int error;

	if (sim)
		return sim->thread_make(fn, arg);
	error = pthread_attr_init(&attr);
	if (error)
		return error;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, M_STACK_BYTES + tool_thread_stack_extra() + tls_bytes());
	os_all_signals(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(&thread, &attr, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return error;
}

/* All signals are blocked until m_signals_begin, so that none finds it without its M. */
__attribute__((noinline)) int m_make(void)
{
	struct m *mp = m_alloc();
	int error;

	if (!mp)
		return ENOMEM;
	if (!m_signals_prepare(mp)) {
		m_free(mp);
		return ENOMEM;
	}
	store_relaxed(&mp->made_at, __builtin_return_address(0));
	error = m_thread_make_quiet(m_thread, mp);
	if (error)
		m_free(mp);
	return error;
}

/* No thread could be made. The program can do without one that is only wanted. */
static void make_failed(int error)
{
	bool needed;

	lock_acquire(&sched.lock);
	check(sched.m_starting > 0 && sched.m_n >= sched.m_starting);
	sched.m_starting--;
	store_relaxed(&sched.m_n, sched.m_n - 1);
	sched.m_created--;
	needed = sched.need_m_n > sched.m_starting ||
	         load_relaxed(&sched.want_spare) == SPARE_NEEDED;
	if (!needed)
		store_relaxed(&sched.want_spare, SPARE_NONE);
	lock_release(&sched.lock);
	if (needed)
		limit_reached(load_relaxed(&sched.m_n), error);
}

/* sched.lock held. One more is about to be made. */
static void count_made(void)
{
	check(lock_is_held(&sched.lock) && sched.m_starting <= sched.m_n);
	sched.m_starting++;
	store_relaxed(&sched.m_n, sched.m_n + 1);
	sched.m_created++;
}

void m_make_first(void)
{
	bool make;
	int error;

	lock_acquire(&sched.lock);
	make = sched.m_created == 0;
	if (make)
		count_made();
	lock_release(&sched.lock);
	if (make)
		alone_begin();
	if (make && (error = m_make()))
		make_failed(error);
}

static void *spawner_thread(void *arg)
{
	bool helping = false;

	(void)arg;
	for (;;) {
		bool make;

		lock_acquire(&sched.lock);
		make = sched.need_m_n > sched.m_starting ||
		       (load_relaxed(&sched.want_spare) && sched.idle_m_n + sched.m_starting == 0);
		if (make)
			count_made();
		lock_release(&sched.lock);
		if (make) {
			int error;

			limit_check(load_relaxed(&sched.m_n));
			if ((error = m_make()))
				make_failed(error);
			else if (load_relaxed(&sched.want_spare))
				store_relaxed(&sched.want_spare, SPARE_WANTED);
		} else if (stack_prepare()) {
			if (!helping)
				procs_help(helping = true);
		} else {
			if (helping)
				procs_help(helping = false);
			hook_run(at_spawner);
			note_sleep(&spawner_note);
		}
	}
	return NULL;
}

/* The spawner also prepares stacks, and runs the hooks of at_spawner. */
void m_spawn(void)
{
	note_wake(&spawner_note);
}

/* Counted when it is there: see deadlock.c. */
bool m_make_other(void *(*fn)(void *), bool needed)
{
	int error = m_thread_make_quiet(fn, NULL);

	if (error && needed)
		limit_reached(load_relaxed(&sched.m_n), error);
	if (error)
		return false;
	lock_acquire(&sched.lock);
	sched.runtime_threads++;
	lock_release(&sched.lock);
	return true;
}

void m_make_spawner(void)
{
	m_make_other(spawner_thread, true);
}

/* ------------------------------------------------- goroutines with a thread */

void m_stop_locked(struct m *mp)
{
	check(mp == m_self() && mp->state == M_RUNTIME);
	check(mp->locked_g && mp->locked_g->locked_m == mp);
	if (mp->p)
		p_handoff(p_unbind(mp));
	lock_acquire(&sched.lock);
	sched.idle_m_locked++;
	deadlock_check();
	lock_release(&sched.lock);
	p_bind(mp, m_await_p(mp));
}

void m_hand_to_locked(struct m *mp, struct g *gp)
{
	struct m *to = gp->locked_m;

	check(to != mp && to->locked_g == gp);
	lock_acquire(&sched.lock);
	sched.idle_m_locked--;
	lock_release(&sched.lock);
	count_up(&mp->p->count.thread_wakeups, 1);
	m_hand_p(to, p_unbind(mp));
}

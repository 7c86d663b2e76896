/*
 * evacuate.c - stacks of goroutines that wait for long take a few hundred bytes.
 *
 * A waiting goroutine takes at least a page, of which it uses a part. If it waits for
 * some seconds, its pages are shrunk to what is in them (shrink.c), kept in compact
 * memory, and given back. A thread that touches such a stack afterwards, in user code or
 * within nearly all system calls, waits until the server, a thread of its own, has put
 * the pages back. The rest of the runtime need not know.
 *
 * Here: the server's thread, its pace, forks. evacuate_take.c: which goroutines have
 * waited for long, and how a stack is taken away. evacuate_serve.c: how it comes back.
 *
 * Why nothing is lost
 *
 * In C nobody knows who points into a stack, or what part of it is in use. So whole pages
 * are taken, whatever they hold, and writes to them are part of the argument:
 *
 *	the server                              any other thread
 *	moves the page elsewhere (1)            writes: before (1), and the write is
 *	shrinks what it has got                   part of what is moved; after (1),
 *	                                          and the page is missing: waits
 *	reads who waits
 *	puts the page back (2)                  goes on with its write
 *
 * (1) is one step of the kernel's (userfault_move), after which no processor knows the
 * old place of the page. A page that a device writes to by its physical address is not
 * moved at all. (2) is one step as well. The server does one thing at a time, so no
 * thread sees the time in between, and nothing has to be locked.
 *
 * That the goroutine waits (its G, in the page, says so) is a matter of sense, not of
 * safety: a running one would have to wait for its page. But the stack of a dead
 * goroutine may be given back (stack_give_back), and then reads as zeroes: it must not be
 * away. A waiting goroutine cannot die while its page is away, and until the server has
 * seen whether it waits no stack is given back (stack_keep_try).
 *
 * What does not wait
 *
 * The kernel waits for the server when user code faults, and when a system call copies
 * from or to user memory or pins it. In a few places it cannot wait, and finds no memory
 * there while the page is away:
 *
 *	FUTEX_WAKE_OP, FUTEX_LOCK_PI and the other  EFAULT. (FUTEX_WAIT, FUTEX_WAKE and
 *	 operations that write to the futex          FUTEX_REQUEUE wait for the page.)
 *	/proc/PID/mem, ptrace                       EIO
 *	the end of a thread: robust mutexes that    the mutex stays locked, and the
 *	 it owns, the word of clone's CLEARTID       word as it was
 *	core dumps                                  the page is not in it
 *
 * A page that user code has touched stays for a look at least, and pthread_mutex_lock
 * touches the mutex before it calls the kernel. So a failure is rare, but a program
 * cannot rule it out. A program that has such a futex or a robust mutex on a stack locks
 * the goroutine to its thread before it waits, since the stack of such a goroutine is
 * never taken away, or keeps it elsewhere.
 *
 * The server waits for nobody
 *
 * A thread that waits for a page may hold any lock, in the runtime, in the program or in
 * the kernel. So the server takes no lock that another thread might hold: not the
 * runtime's, nor mem.c's, nor libc's. The one that keeps stacks from being given back it
 * only tries. It blocks all signals, has no M, and touches only stacks whose page it
 * knows to be there. If it breaks, the process ends without a dump, which would wait for
 * the server (fatal.c).
 *
 * Stretches
 *
 * The kernel watches ranges of memory, not pages. In a watched range the server fills
 * every missing page, also of a stack that just grows, and that takes ten times as long.
 * So only stretches of slots are watched in which many goroutines wait for long, and only
 * while one of their stacks is away. Where new pages are often needed nothing is
 * evacuated for a while. Where several goroutines come back at once all of their stretch
 * do.
 *
 * Whether a goroutine has waited for long is seen at two passes over all stacks: at both
 * it waits, and since the same time. One that comes back soon after it was evacuated must
 * be seen waiting at twice as many passes the next time. When a pass finds no stack that
 * may be evacuated later, and the program has done nothing since, the server sleeps until
 * sysmon says that the program has run.
 *
 * Fork
 *
 * A child has no server and no watched ranges, but it has the compact memory, and puts
 * all pages back itself before fork returns there (evacuate_forked). While the kernel
 * copies the process, range by range, nothing is evacuated, and what is put back is kept
 * in compact memory as well: whichever the kernel copies first, the child finds the page
 * in one place. Pages that are there by then it leaves alone. vfork and posix_spawn share
 * memory and server.
 *
 * Rejected: looking for mutexes in the robust lists of all threads (it says nothing of a
 * thread that is about to lock one, nor of other futexes); restoring in a signal handler
 * (system calls with pointers into the stack would fail); keeping only what lies above
 * the stack pointer (saves 150 bytes of 400, and breaks programs that keep other stacks
 * within theirs); write protection, copy, drop (loses what devices write:
 * userfault_linux.c); watching everything (a new goroutine's first page would cost many
 * times as much); wakers that put the page back themselves (every wake-up would have to
 * look whether it is away).
 */
#include <goro.h>

#include "base/debug.h"
#include "reclaim/evacuate_impl.h"
#include "sched/deadlock.h"
#include "sched/init.h"
#include "sched/runtime.h"
#include "platform/userfault.h"

/* The interval of passes over all stacks. */
#define EVACUATE_LOOK_NS 2000000000LL
/* Rest, in times of the work: 5 % of a CPU, or 20 % while nothing else runs. */
#define EVACUATE_REST      19
#define EVACUATE_REST_IDLE 4

struct evacuation evacuation = { .put_tries = EVACUATE_PUT_TRIES };

enum { UNKNOWN, WANTED, STARTING, RUNNING, IMPOSSIBLE };

static uint32_t state;			/* one of the enum above */
static int server_tid;			/* 0: none has begun */
static uint32_t asleep;			/* the server waits for evacuate_notice */

bool evacuate_is_server(int tid)
{
	return load_relaxed(&server_tid) == tid;
}

int evacuate_threads(void)
{
	return load_relaxed(&state) == RUNNING;
}

size_t evacuate_stacks(void)
{
	return load_relaxed(&evacuation.away_n);
}

size_t evacuate_bytes(void)
{
	return compact_bytes();
}

bool evacuate_works(void)
{
	return load_relaxed(&state) != IMPOSSIBLE;
}

/* ------------------------------------------------------------------- turns */

/*
 * The thread that forks keeps the server from beginning what it must not, and waits until
 * the server has finished what it has begun:
 *
 *	the thread that forks   the server
 *	held++                  turn++, now odd
 *	read turn               read held
 *	 odd: wait for another   more than 0: evacuates nothing, keeps copies
 */
bool evacuate_turn_begin(void)
{
	fetch_add_seqcst(&evacuation.turn, 1);
	return load_seqcst(&evacuation.held) == 0;
}

void evacuate_turn_end(void)
{
	/* seqcst: publishes the work; pairs with load_seqcst in evacuate_fork_begin */
	fetch_add_seqcst(&evacuation.turn, 1);
}

void evacuate_fork_begin(void)
{
	uint32_t t;

	fetch_add_seqcst(&evacuation.held, 1);
	t = load_seqcst(&evacuation.turn);
	for (int i = 0; (t & 1) && load_seqcst(&evacuation.turn) == t; i++)
		if (i < 100)
			cpu_relax();
		else
			os_sleep(20000);
}

void evacuate_fork_end(void)
{
	fetch_add_seqcst(&evacuation.held, -1);
}

/* ----------------------------------------------------------------- grounds */

static uint32_t stretches_of(const struct stack_region *r)
{
	return (r->slots + EVACUATE_STRETCH - 1) / EVACUATE_STRETCH;
}

static struct ground *ground_of(uint32_t region)
{
	struct ground *g = evacuation.grounds[region];
	struct stack_region r;
	size_t n;

	if (g)
		return g;
	r = stack_region(region);
	n = stretches_of(&r);
	g = os_map(sizeof *g + n * sizeof *g->stretch + r.slots * sizeof *g->memo);
	if (!g)
		return NULL;
	g->r = r;
	g->region = region;
	g->stretch = (struct stretch *)(g + 1);
	g->memo = (struct memo *)(g->stretch + n);
	return evacuation.grounds[region] = g;
}

/* ---------------------------------------------------------------- the pace */

/* Threads wait for the server, so it goes before those that compute; not in a pass. */
static void set_urgent(bool on)
{
	if (!debug.nourgent)
		os_thread_urgent(on);
}

/* Serves faults until then. */
static void rest_until(int64_t until)
{
	for (;;) {
		int64_t now;

		evacuate_serve_all();
		now = os_now();
		if (now >= until)
			return;
		userfault_sleep(until - now);
	}
}

/* sysmon stores alive and then reads asleep; the server stores asleep and then reads
 * alive: one of the two sees the other. */
static void sleep_until_noticed(void)
{
	while (load_seqcst(&evacuation.alive) == 0) {
		store_seqcst(&asleep, 1);
		if (load_seqcst(&evacuation.alive) == 0)
			userfault_sleep(-1);
		store_seqcst(&asleep, 0);
		evacuate_serve_all();
	}
}

static int64_t look_interval(void)
{
	int ms = load_relaxed(&debug.evacuate);

	return ms > 0 ? ms * INT64_C(1000000) : EVACUATE_LOOK_NS;
}

/* After a fork: frees the copies of pages that are there. */
static void forget_kept_back(void)
{
	if (evacuate_turn_begin() && evacuation.kept_back) {
		evacuation.kept_back = false;
		for (uint32_t i = 0; i < stack_regions(); i++) {
			struct ground *g = evacuation.grounds[i];

			for (uint32_t k = 0; g && k < g->r.slots; k++)
				if (g->memo[k].back)
					evacuate_copies_free(&g->memo[k]);
		}
	}
	evacuate_turn_end();
}

/* With few goroutines there is next to nothing to gain, however many there were: the dead
 * ones' pages are in no cache, and each costs 0.1 us to look at. */
static bool few_are_alive(void)
{
	return load_relaxed(&debug.evacuate) == 0 && evacuation.away_n == 0 &&
	       g_alive() < EVACUATE_MIN_ALIVE;
}

/* Looks at all stacks once. Rests when it has worked for long enough to sleep for it. */
static void make_pass(void)
{
	int64_t worked = 0;

	store_relaxed(&evacuation.pass, evacuation.pass + 1);	/* atomic for tests */
	evacuation.pending = false;
	forget_kept_back();
	if (few_are_alive())
		return;
	for (uint32_t i = 0; i < stack_regions(); i++) {
		struct ground *g = ground_of(i);

		for (uint32_t k = 0; g && k < stretches_of(&g->r); k++) {
			int64_t start = os_now();

			if (k * EVACUATE_STRETCH >= stack_region_begun(i))
				break;
			evacuate_see_to(g, k);
			worked += os_now() - start;
			if (worked < 50000)
				continue;
			set_urgent(true);
			rest_until(os_now() + worked * (all_idle() ? EVACUATE_REST_IDLE : EVACUATE_REST));
			set_urgent(false);
			worked = 0;
		}
	}
}

/* Only a second look can tell that a goroutine has waited for long. So the first is made
 * after an interval, not when there are many stacks: those have just been made. */
static _Noreturn void serve_for_ever(void)
{
	set_urgent(true);
	rest_until(os_now() + look_interval());
	for (;;) {
		int64_t start = os_now();

		store_seqcst(&evacuation.alive, 0);
		set_urgent(false);
		make_pass();
		set_urgent(true);
		if (!evacuation.pending && !evacuation.kept_back)
			sleep_until_noticed();
		rest_until(start + look_interval());
	}
}

/* --------------------------------------------------------------- the start */

static bool is_possible(void)
{
	if (os_guard_kind != OS_GUARD_MARKER)
		return false;
	/* LeakSanitizer stops all threads, the server too, and reads all memory. What a
	 * tool adds to each page is not saved anyway. */
	if (tool_asan() || tool_lsan() || (TOOL_TSAN && load_relaxed(&debug.evacuate) == 0))
		return false;
	return !debug.nouserfault;
}

static bool make_room(void)
{
	evacuation.stage = os_reserve(STAGE_PAGES * os_page_bytes);
	evacuation.page_buf = os_map(os_page_bytes);
	evacuation.zero_page = os_map(os_page_bytes);
	return evacuation.stage && evacuation.page_buf && evacuation.zero_page &&
	       userfault_watch(evacuation.stage, STAGE_PAGES * os_page_bytes) == 0;
}

static void *server(void *arg)
{
	(void)arg;
	fatal_alone();
	os_thread_name("goro-evacuate");
	store_relaxed(&server_tid, os_tid());
	if (!userfault_open() || !make_room()) {
		store_relaxed(&state, IMPOSSIBLE);
		return NULL;
	}
	store_relaxed(&state, RUNNING);	/* counted as a thread from now on */
	os_thread_punctual();
	os_thread_slice(0, SYSMON_KERNEL_SLICE_NS);
	set_urgent(true);
	serve_for_ever();
}

/* Starts the server, if it is wanted. The spawner only. */
static void evacuate_start_if_wanted(void)
{
	if (load_relaxed(&state) != WANTED)
		return;
	store_relaxed(&state, STARTING);
	if (!is_possible() || m_thread_make_quiet(server, NULL) != 0)
		store_relaxed(&state, IMPOSSIBLE);
}

static bool is_wanted(void)
{
	int ms = load_relaxed(&debug.evacuate);

	return ms >= 0 && (ms > 0 || g_alive() >= EVACUATE_MIN_ALIVE);
}

void evacuate_notice(void)
{
	switch (load_relaxed(&state)) {
	case UNKNOWN:
		if (is_wanted()) {
			store_relaxed(&state, WANTED);
			m_spawn();
		}
		break;
	case RUNNING:
		store_seqcst(&evacuation.alive, 1);
		if (load_seqcst(&asleep))
			userfault_poke();
		break;
	}
}

/* ----------------------------------------------------------------- a child */

/* In a child this is the only thread, and its memory is not watched. */
void evacuate_forked(void)
{
	if (load_relaxed(&state) != RUNNING)
		return;
	store_relaxed(&state, IMPOSSIBLE);
	for (uint32_t i = 0; i < stack_regions(); i++) {
		struct ground *g = evacuation.grounds[i];

		for (uint32_t k = 0; g && k < g->r.slots; k++)
			for (struct copy *c = g->memo[k].copies; c; c = c->next) {
				char *to = page_of(g, k, c->page);

				if (!userfault_present(to))
					unshrink(c->data, to, os_page_bytes);
			}
	}
}

HOOK(at_fork, 0, evacuate_fork_begin);
HOOK(at_fork_end, 0, evacuate_fork_end);
HOOK(at_forked, FORKED_STACKS, evacuate_forked);
HOOK(at_spawner, 0, evacuate_start_if_wanted);
DEADLOCK_WITNESS(evacuate, .threads = evacuate_threads);

/*
 * evacuate.c - stacks of goroutines that wait for long take a few hundred bytes.
 *
 * A goroutine that waits takes a page at least, of which it uses a part. If it waits for
 * some seconds, its pages are shrunk to what is in them (shrink.c), kept in compact memory,
 * and given back. Whoever touches such a stack afterwards, its goroutine's waker or
 * anybody else, in user code or within nearly all system calls, waits until the server, a
 * thread of its own, has put the pages back. Nobody else in the runtime has to know.
 *
 * Why nothing is lost
 *
 * In C nobody knows who points into a stack, or what part of it is in use: there may be
 * another stack inside it. So whole pages are taken, whatever they hold, and with them all
 * that happens to them:
 *
 *	the server                              anybody else
 *	moves the page elsewhere (1)            writes: before (1), and it is part of
 *	shrinks what it has got                   what is moved; after (1), and the page
 *	                                          is missing: waits
 *	looks who waits
 *	puts the page back (2)                  goes on with its write
 *
 * (1) is one step of the kernel's (userfault_move), after which no processor knows the old
 * place of the page; the page is then nobody's but the server's. A page that the system
 * writes to by its physical address is not moved at all. (2) is one step as well. The
 * server does one thing at a time, so nobody sees the time in between, and nothing has
 * to be locked.
 *
 * That the goroutine waits (its G, in the page, says so) is a matter of sense, not of
 * safety: one that runs would have to wait for its page. There is one exception. The
 * stack of a dead goroutine may be given back (stack_give_back), and then reads as zeroes:
 * it must not be away. A goroutine that waits is not dead and cannot die while its page is away,
 * and until the server has looked whether it waits nothing is given back
 * (stack_keep_try).
 *
 * What does not wait
 *
 * The kernel waits for the server when user code faults, and when a system call copies from or
 * to user memory or pins it. In a few places it cannot wait, and finds no memory there while
 * the page is away:
 *
 *	FUTEX_WAKE_OP, FUTEX_LOCK_PI and the other  EFAULT. (FUTEX_WAIT, FUTEX_WAKE and
 *	 operations that write to the futex          FUTEX_REQUEUE wait for the page.)
 *	/proc/PID/mem, ptrace                       EIO
 *	the end of a thread: robust mutexes that    the mutex stays locked, and the word as
 *	 it owns, the word of clone's CLEARTID       it was
 *	core dumps                                  the page is not in it
 *
 * A page that user code has touched is there for a look at least, unless that touch came just
 * before it is taken away; pthread_mutex_lock touches the mutex before it asks the kernel. So
 * what fails is the rare case, but a program cannot rule it out. The stack of a goroutine that
 * is locked to its thread is never taken away. So a program that has such a futex or a robust
 * mutex on a stack locks the goroutine to its thread before it waits, or has it elsewhere.
 *
 * The server waits for nobody
 *
 * Who waits for a page may hold any lock, in the runtime, in the program or in the kernel,
 * and may be anywhere, also growing its own stack. So the server takes no lock that anybody
 * might hold: not the runtime's, nor mem.c's, nor libc's; the one that keeps stacks from
 * being given back it only tries. It blocks all signals, has no M, and touches no
 * stack but those of whom it knows that their page is there: in use, not away, and kept. If it
 * breaks, the process ends without a dump, which would wait for it (fatal.c).
 *
 * Stretches
 *
 * The kernel watches ranges of memory, not pages: there every missing page is the server's
 * to fill, also that of a stack which just grows, and that takes ten times as long. So
 * only stretches of slots are watched in which many goroutines wait for long, and only
 * while something of theirs is away; where new pages are often needed nothing is evacuated for
 * a while. And where several goroutines come back at once all of that stretch do: a
 * million that are woken at once take 4 us each instead of 20 to 50.
 *
 * Whether a goroutine has waited for long is seen by looking twice, at two passes over all
 * stacks: at both it waits, and since the same time. (The time itself may be an old one,
 * see sched.coarse_now.) One that comes back soon after it was evacuated has to wait for
 * twice as many passes the next time.
 *
 * When a pass finds nobody who may be evacuated later, and the program has done nothing
 * since, the server sleeps until sysmon says that it has.
 *
 * Fork
 *
 * In a child ranges are not watched and there is no server, but it has the compact memory,
 * and puts everything back itself before fork returns there (evacuate_forked). While the kernel
 * copies the process, range by range, nothing is evacuated, and what is put back is kept in
 * compact memory as well: whichever was copied first, the child finds it in one place. What
 * is there by then it leaves alone. vfork and posix_spawn share memory and server.
 *
 * Where
 *
 * Here: the server's thread, its pace, forks. evacuate_take.c: who has waited for long, and
 * how a stack is taken away. evacuate_serve.c: how it comes back.
 *
 * Rejected
 *
 * - Looking for mutexes in the robust lists of all threads: it says nothing of a thread that
 *   is about to lock one, nor of other futexes.
 * - Restoring in a signal handler: system calls with pointers into the stack would fail.
 * - Keeping only what lies above the stack pointer: saves 150 bytes of 400, and breaks
 *   programs that keep other stacks within theirs.
 * - Write protection, copy, drop: loses what devices write; see userfault_linux.c.
 * - Watching everything: a new goroutine's first page would take 15 us instead of 1.
 * - Wakers that put the page back themselves: every wake-up would have to look whether
 *   it is away.
 */
#include <goro.h>

#include "debug.h"
#include "evacuate_impl.h"
#include "runtime.h"
#include "userfault.h"

struct evacuation evacuation = { .put_tries = EVACUATE_PUT_TRIES };

enum { UNKNOWN, WANTED, STARTING, RUNNING, IMPOSSIBLE };

static uint32_t state;			/* of these */
static uint32_t asleep;			/* until somebody says so */
static __thread bool is_server;

int evacuate_threads(void)
{
	return load_relaxed(&state) == RUNNING;
}

bool evacuate_is_server(void)
{
	return is_server;
}

size_t evacuate_stacks(void)
{
	return load_relaxed(&evacuation.away_n);
}

size_t evacuate_bytes(void)
{
	return compact_bytes();
}

uint64_t evacuate_count(void)
{
	return load_relaxed(&evacuation.away_ever);
}

bool evacuate_works(void)
{
	return load_relaxed(&state) != IMPOSSIBLE;
}

/* ------------------------------------------------------------------- turns */

/*
 * Who forks sees to it that the server does not begin anything that it must not, and
 * waits until it is done with what it has begun:
 *
 *	who forks               the server
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
	/* seqcst: what was done is seen by who forks */
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

static uint32_t stretches_of(const struct ground *g)
{
	return (g->r.slots + EVACUATE_STRETCH - 1) / EVACUATE_STRETCH;
}

static struct ground *ground_of(uint32_t region)
{
	struct ground *g = evacuation.grounds[region];
	struct stack_region r;
	size_t slots;

	if (g)
		return g;
	r = stack_region(region);
	slots = ((size_t)r.slots + EVACUATE_STRETCH - 1) / EVACUATE_STRETCH * EVACUATE_STRETCH;
	g = os_map(sizeof *g + slots * sizeof *g->memo +
	           slots / EVACUATE_STRETCH * sizeof *g->stretch);
	if (!g)
		return NULL;
	g->r = r;
	g->region = region;
	g->stretch = (struct stretch *)(g + 1);
	g->memo = (struct memo *)(g->stretch + slots / EVACUATE_STRETCH);
	return evacuation.grounds[region] = g;
}

/* ---------------------------------------------------------------- the pace */

/* Who is waited for goes before all who compute, if it may; not while it works at leisure. */
static void set_urgent(bool on)
{
	if (!debug.nourgent)
		os_thread_urgent(on);
}

/* Serves until then. */
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

/* The program says that it is alive and then looks whether we sleep; we say that we sleep
 * and then look whether it is: one of the two sees the other. */
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

static bool program_idle(void)
{
	return load_relaxed(&sched.idle_p_n) == load_relaxed(&sched.gomaxprocs);
}

static int64_t look_interval(void)
{
	int ms = load_relaxed(&debug.evacuate);

	return ms > 0 ? ms * INT64_C(1000000) : EVACUATE_LOOK_NS;
}

/* After a fork: copies of what is there. */
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

/* So few goroutines that there is next to nothing to gain, however many there were once: what is
 * left of those are pages in no cache, 0.1 us for each that is looked at. (To count takes no lock.) */
static bool few_are_alive(void)
{
	return load_relaxed(&debug.evacuate) == 0 && evacuation.away_n == 0 &&
	       goro_num_goroutine() < EVACUATE_MIN_ALIVE;
}

/* All stacks once. Rests are taken when enough has been done that they last a while. */
static void make_pass(void)
{
	int64_t worked = 0;

	store_relaxed(&evacuation.pass, evacuation.pass + 1);	/* tests read it */
	evacuation.pending = false;
	forget_kept_back();
	if (few_are_alive())
		return;
	for (uint32_t i = 0; i < stack_regions(); i++) {
		struct ground *g = ground_of(i);

		for (uint32_t k = 0; g && k < stretches_of(g); k++) {
			int64_t start = os_now();

			if (k * EVACUATE_STRETCH >= stack_region_begun(i))
				break;
			evacuate_see_to(g, k);
			worked += os_now() - start;
			if (worked < 50000)
				continue;
			set_urgent(true);
			rest_until(os_now() + worked * (program_idle() ? EVACUATE_REST_IDLE : EVACUATE_REST));
			set_urgent(false);
			worked = 0;
		}
	}
}

/* A look serves the one after it: who waits at both has waited for long. So the first is made
 * when a look is due, not when there are many stacks: these have just been made. */
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
	/* LeakSanitizer stops all threads, the server too, and looks at all memory; and
	 * what a tool adds to each page is not saved anyway. */
	if (TOOL_ASAN || (TOOL_TSAN && load_relaxed(&debug.evacuate) == 0))
		return false;
	return userfault_prepare();
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
	is_server = true;
	os_thread_name("goro-evacuate");
	if (!userfault_open() || !make_room()) {
		store_relaxed(&state, IMPOSSIBLE);
		return NULL;
	}
	store_relaxed(&state, RUNNING);	/* it is counted from now on, see deadlock.c */
	os_thread_punctual();
	os_thread_slice(0, SYSMON_KERNEL_SLICE_NS);
	set_urgent(true);
	serve_for_ever();
}

void evacuate_start_if_wanted(void)
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

	return ms >= 0 && (ms > 0 || goro_num_goroutine() >= EVACUATE_MIN_ALIVE);
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

/* In a child: nobody else is there, and memory is as it usually is. */
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

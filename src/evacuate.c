/*
 * evacuate.c - stacks of goroutines that wait for long take a few hundred bytes.
 *
 * A goroutine that waits takes a page at least, of which it uses a part. If it waits for
 * some seconds, its pages are shrunk to what is in them (shrink.c), kept in compact memory,
 * and given back. Whoever touches such a stack afterwards, its goroutine's waker or
 * anybody else, in user code or within a system call, waits until the server, a thread
 * of its own, has put the pages back. Nobody else in the runtime has to know.
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
 * Rejected
 *
 * - Restoring in a signal handler: system calls with pointers into the stack would fail.
 * - Keeping only what lies above the stack pointer: saves 150 bytes of 400, and breaks
 *   programs that keep other stacks within theirs.
 * - Write protection, copy, drop: loses what devices write; see userfault_linux.c.
 * - Watching everything: a new goroutine's first page would take 15 us instead of 1.
 * - Wakers that put the page back themselves: every wake-up would have to look whether
 *   it is away.
 */
#include "evacuate.h"

#include <errno.h>
#include <string.h>

#include "compact.h"
#include "debug.h"
#include "os.h"
#include "runtime.h"
#include "shrink.h"
#include "stack.h"
#include "userfault.h"

/* A page that is away. */
struct copy {
	struct copy *next;	/* of the same stack, upwards */
	uint16_t page;		/* from the top; 0 has the G */
	unsigned char data[];	/* by shrink */
};
#define COPY_BYTES_MAX (offsetof(struct copy, data) + EVACUATE_WORTH_BYTES + SHRINK_SLACK)
_Static_assert(COPY_BYTES_MAX <= COMPACT_MAX, "evacuate: a page in one piece");

/* What is known of a slot. */
struct memo {
	struct copy *copies;	/* its pages that are away */
	uint32_t stamp;		/* since when it waits, at the last look; 0: it does not */
	uint8_t still;		/* looks in a row that found it so */
	uint8_t returns;	/* times it came back soon */
	bool stuck;		/* it could not be taken, and will not until it has run */
	bool back;		/* the pages are there as well: see "Fork" */
};

struct stretch {
	bool watched;
	uint8_t trouble;	/* how often it was given up */
	uint16_t away;		/* stacks */
	uint16_t fills;		/* pages put where there was none, in this pass */
	uint16_t burst;		/* stacks that came back .. */
	int64_t burst_at;	/* .. since then */
	uint32_t rests_until;	/* pass */
};

/* A region of stack.c's and what is known of it. */
struct ground {
	struct stack_region r;
	uint32_t region;
	struct memo *memo;		/* a slot */
	struct stretch *stretch;
};

enum { UNKNOWN, WANTED, STARTING, RUNNING, IMPOSSIBLE };

/* Shared with others. */
static uint32_t state;			/* of these */
static uint32_t alive;			/* the program has run since the last pass began */
static uint32_t asleep;			/* until somebody says so */
static uint32_t held;			/* forks under way */
static uint32_t turn;			/* odd: the server is at work on copies */
static size_t away_n;
static uint64_t away_ever;

/* The server's. */
static struct ground *grounds[STACK_REGIONS_MAX];
static uint32_t watched_n;		/* stretches */
static uint32_t pass;
static bool pending;			/* somebody may be evacuated at a later pass */
static bool kept_back;			/* some memo says back */
static char *stage;			/* pages on their way */
static size_t stage_used;
static char *page_buf, *zero_page;
static __thread bool is_server;

#define STAGE_PAGES (EVACUATE_BATCH * EVACUATE_PAGES_MAX)

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
	return load_relaxed(&away_n);
}

size_t evacuate_bytes(void)
{
	return compact_bytes();
}

uint64_t evacuate_count(void)
{
	return load_relaxed(&away_ever);
}

bool evacuate_works(void)
{
	return load_relaxed(&state) != IMPOSSIBLE;
}

/* ------------------------------------------------------------------ places */

static char *page_of(const struct ground *g, uint32_t slot, uint32_t page)
{
	return g->r.base + (size_t)(slot + 1) * g->r.slot_bytes - (size_t)(page + 1) * os_page_bytes;
}

static uint32_t pages_of(const struct ground *g)
{
	size_t n = (g->r.slot_bytes - g->r.guard_bytes) / os_page_bytes;

	return n < EVACUATE_PAGES_MAX ? (uint32_t)n : EVACUATE_PAGES_MAX;
}

static uint32_t stretches_of(const struct ground *g)
{
	return (g->r.slots + EVACUATE_STRETCH - 1) / EVACUATE_STRETCH;
}

static uint32_t stretch_end(const struct ground *g, uint32_t k)
{
	uint32_t end = (k + 1) * EVACUATE_STRETCH;

	return end < g->r.slots ? end : g->r.slots;
}

static struct ground *ground_of(uint32_t region)
{
	struct ground *g = grounds[region];
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
	return grounds[region] = g;
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
static bool turn_begin(void)
{
	fetch_add_seqcst(&turn, 1);
	return load_seqcst(&held) == 0;
}

static void turn_end(void)
{
	/* seqcst: what was done is seen by who forks */
	fetch_add_seqcst(&turn, 1);
}

void evacuate_fork_begin(void)
{
	uint32_t t;

	fetch_add_seqcst(&held, 1);
	t = load_seqcst(&turn);
	for (int i = 0; (t & 1) && load_seqcst(&turn) == t; i++)
		if (i < 100)
			cpu_relax();
		else
			os_sleep(20000);
}

void evacuate_fork_end(void)
{
	fetch_add_seqcst(&held, -1);
}

/* --------------------------------------------------------------- and back */

static _Noreturn void broken(const char *what)
{
	userfault_speak();
	throw("evacuate: %s", what);
}

/* 0, or -EEXIST. There may be no memory for it just now; and the process may be ending. */
static int put(void *to, const void *from)
{
	for (;;) {
		int r = userfault_put(to, from);

		if (r == 0 || r == -EEXIST || r == -ESRCH)
			return r;
		if (r != -ENOMEM && r != -EAGAIN)
			broken("a page cannot be put back");
		os_sleep(100000);
	}
}

static void copies_free(struct memo *n)
{
	for (struct copy *c = n->copies, *next; c; c = next) {
		next = c->next;
		compact_free(c);
	}
	n->copies = NULL;
	n->back = false;
}

static bool is_away(const struct memo *n)
{
	return n->copies && !n->back;
}

/* From the lowest page to that of the G, whose waker goes on with it. True: the page is
 * one of them. */
static bool bring_back(struct ground *g, uint32_t slot, const char *page, bool free)
{
	struct memo *n = &g->memo[slot];
	bool among = false;

	for (struct copy *c = n->copies; c; c = c->next) {
		char *to = page_of(g, slot, c->page);

		unshrink(c->data, page_buf, os_page_bytes);
		if (put(to, page_buf) == -EEXIST)
			broken("a page is away and there");
		among |= to == page;
	}
	n->still = 0;
	n->back = true;
	if (free)
		copies_free(n);
	else
		kept_back = true;
	g->stretch[slot / EVACUATE_STRETCH].away--;
	store_relaxed(&away_n, away_n - 1);
	return among;
}

static void unwatch(struct ground *g, uint32_t k)
{
	struct stretch *s = &g->stretch[k];
	uint32_t first = k * EVACUATE_STRETCH;

	check(s->away == 0);
	if (!s->watched)
		return;
	s->watched = false;
	watched_n--;
	userfault_unwatch(g->r.base + (size_t)first * g->r.slot_bytes,
	                  (stretch_end(g, k) - first) * g->r.slot_bytes);
}

/* Nothing is evacuated there for so many passes. */
static void give_up(struct ground *g, uint32_t k, uint32_t passes, bool free)
{
	struct stretch *s = &g->stretch[k];

	for (uint32_t i = k * EVACUATE_STRETCH, end = stretch_end(g, k); s->away > 0 && i < end; i++)
		if (is_away(&g->memo[i]))
			bring_back(g, i, NULL, free);
	s->rests_until = pass + passes;
	unwatch(g, k);
}

static void came_back(struct ground *g, uint32_t slot, bool free)
{
	uint32_t k = slot / EVACUATE_STRETCH;
	struct stretch *s = &g->stretch[k];
	struct memo *n = &g->memo[slot];
	int64_t now = os_now();

	if (n->returns < EVACUATE_DOUBLINGS && debug.evacuate == 0)
		n->returns++;
	if (now - s->burst_at > EVACUATE_BURST_NS) {
		s->burst_at = now;
		s->burst = 0;
	}
	if (++s->burst >= EVACUATE_BURST)
		give_up(g, k, 1, free);
	else if (s->away == 0)
		unwatch(g, k);
}

static void fill(struct ground *g, uint32_t slot, char *page, bool free)
{
	uint32_t k = slot / EVACUATE_STRETCH;
	struct stretch *s = &g->stretch[k];

	/* -EEXIST: who waited has been served since. */
	if (put(page, zero_page) == -EEXIST) {
		userfault_wake(page);
		return;
	}
	if (++s->fills <= EVACUATE_FILLS_MAX)
		return;
	if (s->trouble < EVACUATE_DOUBLINGS)
		s->trouble++;
	give_up(g, k, 4u << s->trouble, free);
}

/* Somebody waits at this address; or has waited, and is served already. */
static void on_fault(uintptr_t addr)
{
	char *page = (char *)(addr & ~(uintptr_t)(os_page_bytes - 1));
	uint32_t region, slot;
	struct ground *g;
	bool free;

	if (!stack_slot_of(page, &region, &slot)) {
		/* mlockall touches all there is. Then nothing can be moved there any more, and
		 * what is locked is not to be moved anyway. */
		if (page < stage || page >= stage + STAGE_PAGES * os_page_bytes)
			broken("a fault outside of the stacks");
		if (put(page, zero_page) == -EEXIST)
			userfault_wake(page);
		return;
	}
	g = grounds[region];
	if (!g->stretch[slot / EVACUATE_STRETCH].watched) {
		userfault_wake(page);
		return;
	}
	free = turn_begin();
	if (!is_away(&g->memo[slot])) {
		fill(g, slot, page, free);
	} else {
		bool among = bring_back(g, slot, page, free);

		came_back(g, slot, free);
		if (!among && g->stretch[slot / EVACUATE_STRETCH].watched)
			fill(g, slot, page, free);
	}
	turn_end();
}

/* All who wait; false: nobody did. */
static bool serve(void)
{
	uintptr_t addr[16];
	bool any = false;
	size_t n;

	while ((n = userfault_read(addr, 16)) > 0) {
		for (size_t i = 0; i < n; i++)
			on_fault(addr[i]);
		any = true;
	}
	return any;
}

/* Where two came soon after each other the next is about to: looks on for as long as
 * waking takes. */
static void serve_all(void)
{
	static int64_t last_at;
	int64_t now, until = 0;

	do {
		bool any = serve();

		now = os_now();
		if (any) {
			store_relaxed(&alive, 1);
			if (now - last_at < EVACUATE_SOON_NS && os_many_cpus)
				until = now + SPIN_BEFORE_SLEEP_NS;
			last_at = now;
		}
		cpu_relax();
	} while (now < until);
}

/* -------------------------------------------------------------------- away */

static uint32_t stamp_of(int64_t wait_since, uint64_t id)
{
	return (((uint32_t)(wait_since >> 10) * UINT32_C(2654435769)) ^ (uint32_t)id) | 1;
}

/* Since when it waits, at rest; 0: it does not. The page is there. */
static TOOL_RACY uint32_t stamp_peek(const struct g *gp)
{
	if (peek(&gp->status) != G_WAITING || peek(&gp->mp))
		return 0;
	return stamp_of(peek(&gp->wait_since), peek(&gp->id));
}

/* The page is shared with a child made by fork, or was: makes it our own. */
static TOOL_RACY void make_own(struct g *gp)
{
	fetch_add_relaxed(&gp->id, 0);
}

static void stage_clear(void)
{
	if (stage_used > 0)
		os_release(&(struct os_range){ stage, stage_used * os_page_bytes }, 1);
	stage_used = 0;
}

/* The page that was just taken. */
static void put_back(char *to, char *staged)
{
	if (userfault_move(to, staged) == 0)
		return;
	if (put(to, staged) == -EEXIST)
		broken("a page was taken and is there");
	stage_used++;		/* it is still there, too */
}

static struct copy *copy_make(const void *page)
{
	unsigned char *out = (unsigned char *)page_buf;
	size_t n = shrink(page, os_page_bytes, out, EVACUATE_WORTH_BYTES);
	struct copy *c;

	if (n == 0 || !(c = compact_alloc(offsetof(struct copy, data) + n + SHRINK_SLACK)))
		return NULL;
	memcpy(c->data, out, n);
	return c;
}

/* Takes one page; the first one only if its goroutine is found waiting in it. */
static bool take_page(struct ground *g, uint32_t slot, struct g *gp, uint32_t page)
{
	struct memo *n = &g->memo[slot];
	char *from = page_of(g, slot, page), *to = stage + stage_used * os_page_bytes;
	struct copy *c = NULL;
	int r = userfault_move(to, from);

	if (r == -EBUSY && page == 0) {
		make_own(gp);
		r = userfault_move(to, from);
	}
	if (r != 0)
		return false;
	if (page > 0 || stamp_peek((struct g *)(to + ((char *)gp - from))) == n->stamp)
		c = copy_make(to);
	if (!c) {
		put_back(from, to);
		return false;
	}
	stage_used++;
	c->page = (uint16_t)page;
	c->next = n->copies;
	n->copies = c;
	return true;
}

/* The first page and those below it, down to the first that is not there. */
static void take_away(struct ground *g, uint32_t slot)
{
	struct memo *n = &g->memo[slot];
	struct g *gp = stack_slot_g(g->region, slot);
	uint32_t page = 0;

	if (!gp || n->copies || stamp_peek(gp) != n->stamp)
		return;
	while (page < pages_of(g) && take_page(g, slot, gp, page))
		page++;
	if (page == 0) {
		n->stuck = true;
		return;
	}
	g->stretch[slot / EVACUATE_STRETCH].away++;
	store_relaxed(&away_n, away_n + 1);
	count_up(&away_ever, 1);
}

/* ------------------------------------------------------------------ looking */

struct ripe {
	uint64_t bit[(EVACUATE_STRETCH + 63) / 64];
	uint32_t n;
};

/* One more look at a slot. True: its goroutine has waited long enough. */
static bool look(struct ground *g, uint32_t slot)
{
	struct memo *n = &g->memo[slot];
	struct g *gp = n->copies ? NULL : stack_slot_g(g->region, slot);
	uint32_t stamp = gp ? stamp_peek(gp) : 0;

	if (n->copies) {
		/* It stayed away: what was before is forgotten. */
		if (++n->still >= 1u << EVACUATE_DOUBLINGS)
			n->returns = n->still = 0;
		return false;
	}
	if (stamp == 0 || stamp != n->stamp) {
		n->stamp = stamp;
		n->still = 0;
		n->stuck = false;
		pending |= stamp != 0;
		return false;
	}
	if (n->stuck)
		return false;
	if (n->still < UINT8_MAX)
		n->still++;
	if (n->still >= 1u << n->returns)
		return true;
	pending = true;
	return false;
}

static bool look_at_all(struct ground *g, uint32_t k, struct ripe *ripe)
{
	uint32_t first = k * EVACUATE_STRETCH, end = stretch_end(g, k);

	*ripe = (struct ripe){ .n = 0 };
	if (!stack_keep_try())
		return false;
	for (uint32_t i = first; i < end; i++)
		if (look(g, i)) {
			ripe->bit[(i - first) / 64] |= UINT64_C(1) << (i - first) % 64;
			ripe->n++;
		}
	stack_keep_end();
	return true;
}

static bool is_worth_it(const struct ground *g, uint32_t k, uint32_t ripe)
{
	const struct stretch *s = &g->stretch[k];

	if (ripe == 0 || pass < s->rests_until)
		return false;
	if (s->watched || debug.evacuate > 0)
		return true;
	return stack_region_begun(g->region) >= stretch_end(g, k) && watched_n < EVACUATE_STRETCHES_MAX &&
	       ripe * EVACUATE_SHARE >= stretch_end(g, k) - k * EVACUATE_STRETCH;
}

static bool watch(struct ground *g, uint32_t k)
{
	struct stretch *s = &g->stretch[k];
	uint32_t first = k * EVACUATE_STRETCH;

	if (s->watched)
		return true;
	if (userfault_watch(g->r.base + (size_t)first * g->r.slot_bytes,
	                    (stretch_end(g, k) - first) * g->r.slot_bytes) != 0) {
		s->rests_until = pass + (4u << EVACUATE_DOUBLINGS);
		return false;
	}
	s->watched = true;
	watched_n++;
	return true;
}

/* The next of them, at most a batch. False: none is left, or somebody else is to come
 * first. */
static bool take_batch(struct ground *g, uint32_t k, struct ripe *ripe)
{
	uint32_t first = k * EVACUATE_STRETCH;
	bool go_on = turn_begin() && ripe->n > 0 && stack_keep_try();
	uint32_t taken = 0;

	for (uint32_t i = 0; go_on && i < EVACUATE_STRETCH && taken < EVACUATE_BATCH; i++) {
		if (!(ripe->bit[i / 64] >> i % 64 & 1))
			continue;
		ripe->bit[i / 64] &= ~(UINT64_C(1) << i % 64);
		ripe->n--;
		take_away(g, first + i);
		taken++;
	}
	if (go_on) {
		stage_clear();
		stack_keep_end();
	}
	turn_end();
	return go_on;
}

/* One stretch in a pass. */
static void see_to(struct ground *g, uint32_t k)
{
	struct stretch *s = &g->stretch[k];
	struct ripe ripe;

	if (s->fills == 0 && s->trouble > 0 && pass > s->rests_until)
		s->trouble--;
	s->fills = 0;
	if (!look_at_all(g, k, &ripe)) {
		pending = true;
		return;
	}
	if (!is_worth_it(g, k, ripe.n) || !watch(g, k)) {
		pending |= ripe.n > 0 && pass < s->rests_until;
		return;
	}
	while (s->watched && take_batch(g, k, &ripe))
		serve();
	pending |= ripe.n > 0;
	if (s->away == 0)
		unwatch(g, k);
}

/* ----------------------------------------------------------------- the pace */

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

		serve_all();
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
	while (load_seqcst(&alive) == 0) {
		store_seqcst(&asleep, 1);
		if (load_seqcst(&alive) == 0)
			userfault_sleep(-1);
		store_seqcst(&asleep, 0);
		serve_all();
	}
}

static bool program_idle(void)
{
	return load_relaxed(&sched.idle_p_n) == load_relaxed(&sched.gomaxprocs);
}

static int64_t look_interval(void)
{
	return debug.evacuate > 0 ? debug.evacuate * INT64_C(1000000) : EVACUATE_LOOK_NS;
}

/* After a fork: copies of what is there. */
static void forget_kept_back(void)
{
	if (turn_begin() && kept_back) {
		kept_back = false;
		for (uint32_t i = 0; i < stack_regions(); i++)
			for (uint32_t k = 0; grounds[i] && k < grounds[i]->r.slots; k++)
				if (grounds[i]->memo[k].back)
					copies_free(&grounds[i]->memo[k]);
	}
	turn_end();
}

/* All stacks once. Rests are taken when enough has been done that they last a while. */
static void make_pass(void)
{
	int64_t worked = 0;

	pass++;
	pending = false;
	forget_kept_back();
	for (uint32_t i = 0; i < stack_regions(); i++) {
		struct ground *g = ground_of(i);

		for (uint32_t k = 0; g && k < stretches_of(g); k++) {
			int64_t start = os_now();

			if (k * EVACUATE_STRETCH >= stack_region_begun(i))
				break;
			see_to(g, k);
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

static _Noreturn void serve_for_ever(void)
{
	for (;;) {
		int64_t start = os_now();

		store_seqcst(&alive, 0);
		set_urgent(false);
		make_pass();
		set_urgent(true);
		if (!pending && !kept_back)
			sleep_until_noticed();
		rest_until(start + look_interval());
	}
}

/* ---------------------------------------------------------------- the start */

static bool is_possible(void)
{
	if (os_guard_kind != OS_GUARD_MARKER)
		return false;
	/* LeakSanitizer stops all threads, the server too, and looks at all memory; and
	 * what a tool adds to each page is not saved anyway. */
	if (TOOL_ASAN || (TOOL_TSAN && debug.evacuate == 0))
		return false;
	return userfault_prepare();
}

static bool make_room(void)
{
	stage = os_reserve(STAGE_PAGES * os_page_bytes);
	page_buf = os_map(os_page_bytes);
	zero_page = os_map(os_page_bytes);
	return stage && page_buf && zero_page &&
	       userfault_watch(stage, STAGE_PAGES * os_page_bytes) == 0;
}

static void *server(void *arg)
{
	(void)arg;
	is_server = true;
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
	return debug.evacuate >= 0 && (debug.evacuate > 0 || stack_begun() >= EVACUATE_MIN_STACKS);
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
		store_seqcst(&alive, 1);
		if (load_seqcst(&asleep))
			userfault_poke();
		break;
	}
}

/* ------------------------------------------------------------------- a child */

/* In a child: nobody else is there, and memory is as it usually is. */
void evacuate_forked(void)
{
	if (load_relaxed(&state) != RUNNING)
		return;
	store_relaxed(&state, IMPOSSIBLE);
	userfault_forked();
	for (uint32_t i = 0; i < stack_regions(); i++) {
		struct ground *g = grounds[i];

		for (uint32_t k = 0; g && k < g->r.slots; k++)
			for (struct copy *c = g->memo[k].copies; c; c = c->next) {
				char *to = page_of(g, k, c->page);

				if (!userfault_present(to))
					unshrink(c->data, to, os_page_bytes);
			}
	}
}

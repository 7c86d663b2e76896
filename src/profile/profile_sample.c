/*
 * profile_sample.c - CPU samples: taken in a handler, kept for who collects them.
 *
 * A thread that is sampled has a timer on its CPU time, whose signal comes to that very
 * thread while it runs. The handler walks the interrupted stack and appends what it found
 * to a ring of the thread's own: one writer, one reader (profile_cpu.c), no lock.
 *
 *	handler                          collector
 *	read tail                        read head
 *	write words head ..              read words tail ..
 *	head += words (release)          tail += words (release)
 *
 * What does not fit is counted in lost.
 *
 * A ring has one writer: while a thread's number is in it, that thread. Before it is given
 * to another, after sampling was switched off, nobody is in a handler any more:
 *
 *	handler                          switching off
 *	handlers++                       sampling = 0
 *	read sampling                    read handlers until it is 0
 *
 * Both store before they load, sequentially consistently. (A thread that has ended, whose
 * ring is given away earlier, is in no handler.)
 *
 * In the handler. The stack is walked by unwind tables (unwind.c), which takes no lock and
 * reads only the stack that sp is on, from sp upwards: the goroutine's; the thread's; or,
 * of a thread that we know nothing of, the mapping that sp lies in, which the kernel is
 * asked for once. On any other stack (of a program that switches stacks itself) one page
 * is all that is certain to be there. All registers are known, so nothing is guessed.
 * (Rejected: frame pointers. libc and most programs have none.)
 *
 * A record is a word with the number of frames and of periods, the goroutine's id, its name,
 * and the frames.
 */
#include "profile_sample.h"

#include <string.h>

#include "config.h"
#include "maps.h"
#include "os.h"
#include "rt.h"
#include "stack.h"

/* A tenth of a second at 1,000 Hz; 32 KiB of a thread that burns CPU. */
#define RING_WORDS 4096
#define NAME_WORDS (G_NAME_BYTES / sizeof(uint64_t))
#define HEAD_WORDS (2 + NAME_WORDS)

/* A stack that moves all the time is not looked for each time. */
#define STACK_LOOKS_MAX 16

struct sampled *sampled;
static uint64_t *rings;
static uint32_t sampling;
static uint32_t handlers;	/* that are taking a sample */

bool sampled_init(void)
{
	if (!sampled)
		sampled = os_reserve(THREADS_MAX * sizeof *sampled);
	if (!rings)
		rings = os_reserve(THREADS_MAX * RING_WORDS * sizeof *rings);
	return sampled && rings;
}

void sampling_switch(bool on)
{
	store_seqcst(&sampling, on);
	while (!on && load_seqcst(&handlers) != 0)
		os_yield();
}

static uint64_t *ring_of(const struct sampled *s)
{
	return rings + (s - sampled) * RING_WORDS;
}

/* ----------------------------------------------------------- the collector */

static void ring_read(const struct sampled *s, uint64_t from, void *to, size_t words)
{
	const uint64_t *ring = ring_of(s);
	uint64_t *out = to;

	for (size_t i = 0; i < words; i++)
		out[i] = ring[(from + i) % RING_WORDS];
}

bool sampled_take(struct sampled *s, struct sample *out)
{
	uint64_t tail = s->tail, word;

	/* acquire: the record; pairs with store_release in ring_add */
	if (load_acquire(&s->head) == tail)
		return false;
	ring_read(s, tail, &word, 1);
	out->bt.n = (uint32_t)word;
	out->times = (uint32_t)(word >> 32);
	if (out->bt.n > BACKTRACE_MAX)
		throw("sampled_take: a record of %zu frames", out->bt.n);
	ring_read(s, tail + 1, &out->goroutine, 1);
	ring_read(s, tail + 2, out->name, NAME_WORDS);
	ring_read(s, tail + HEAD_WORDS, out->bt.pc, out->bt.n);
	/* release: it is read; pairs with load_acquire in ring_add */
	store_release(&s->tail, tail + HEAD_WORDS + out->bt.n);
	return true;
}

void sampled_skip(struct sampled *s)
{
	store_release(&s->tail, load_acquire(&s->head));
	store_relaxed(&s->lost, 0);
}

void sampled_give_back(int n)
{
	os_release(&(struct os_range){ rings, (size_t)n * RING_WORDS * sizeof *rings }, 1);
}

/* -------------------------------------------------------------- the handler */

static void ring_write(const struct sampled *s, uint64_t to, const void *from, size_t words)
{
	uint64_t *ring = ring_of(s);
	const uint64_t *in = from;

	for (size_t i = 0; i < words; i++)
		ring[(to + i) % RING_WORDS] = in[i];
}

static void ring_add(struct sampled *s, const struct sample *sample)
{
	uint64_t head = s->head, words = HEAD_WORDS + sample->bt.n;
	uint64_t word = (uint64_t)sample->times << 32 | sample->bt.n;

	/* acquire: what is overwritten was read; pairs with store_release in sampled_take */
	if (RING_WORDS - (head - load_acquire(&s->tail)) < words) {
		count_up(&s->lost, sample->times);
		return;
	}
	ring_write(s, head, &word, 1);
	ring_write(s, head + 1, &sample->goroutine, 1);
	ring_write(s, head + 2, sample->name, NAME_WORDS);
	ring_write(s, head + HEAD_WORDS, sample->bt.pc, sample->bt.n);
	/* release: the record; pairs with load_acquire in sampled_take */
	store_release(&s->head, head + words);
}

/* The goroutine whose stack sp is on: the running one's, unless the thread is on the
 * scheduler's, or in the middle of a switch. */
static const struct g *g_on(const struct m *mp, uintptr_t sp)
{
	const struct g *gp = mp->curg;
	struct g *other;

	if (mp->is_foreign || (gp && sp >= (uintptr_t)gp->stack_lo && sp < (uintptr_t)gp->stack_hi))
		return gp;
	return stack_find((void *)sp, &other) == STACK_INSIDE ? other : NULL;
}

static bool find_stack(const struct maps_line *line, void *arg)
{
	struct sampled *s = arg;
	uintptr_t sp = s->stack_lo;

	if (sp >= line->end)
		return true;
	if (sp >= line->start) {
		s->stack_lo = line->start;
		s->stack_hi = line->end;
	}
	return false;
}

/* Of a thread that never called us. */
static void walk_plain(struct sampled *s, const struct unwind_regs *regs, struct backtrace *bt)
{
	uintptr_t sp = regs->reg[UNWIND_SP], hi;

	if ((sp < s->stack_lo || sp >= s->stack_hi) && s->stack_looks < STACK_LOOKS_MAX) {
		s->stack_looks++;
		s->stack_lo = sp;
		s->stack_hi = 0;
		maps_each(find_stack, s);
	}
	hi = sp >= s->stack_lo && sp < s->stack_hi ? s->stack_hi
	                                           : (sp | (os_page_bytes - 1)) + 1;
	bt->n = unwind_walk(regs, sp & ~(uintptr_t)15, hi, bt->pc, BACKTRACE_MAX);
}

static void walk(struct sampled *s, const struct unwind_regs *regs, struct sample *out)
{
	const struct m *mp = m_self();
	const struct g *gp;

	if (!mp) {
		walk_plain(s, regs, &out->bt);
		return;
	}
	gp = g_on(mp, regs->reg[UNWIND_SP]);
	backtrace_regs(&out->bt, regs, gp, mp);
	if (gp && !gp->is_foreign) {
		out->goroutine = gp->id;
		memcpy(out->name, gp->name, sizeof out->name - 1);
	}
}

/* The thread's own, if the signal is of its timer. A pointer into the array is ours and no
 * other timer's of the program. */
TOOL_RACY static struct sampled *sampled_of(const siginfo_t *info, int *times)
{
	uintptr_t value = (uintptr_t)os_signal_timer(info, times);
	uintptr_t first = (uintptr_t)load_relaxed(&sampled);

	if (!value || value - first >= THREADS_MAX * sizeof *sampled)
		return NULL;
	return (struct sampled *)value;
}

/* A signal may be late: of a timer that is gone, of an array slot that is another's. */
static bool is_current(const struct sampled *s)
{
	/* acquire: the slot is prepared; pairs with store_release in thread_begin */
	return load_seqcst(&sampling) && load_acquire(&s->tid) == os_tid();
}

static void take(struct sampled *s, int times, const void *uc)
{
	struct unwind_regs regs;
	struct sample sample = { .times = (uint32_t)times };

	unwind_regs_from_ucontext(&regs, uc);
	walk(s, &regs, &sample);
	ring_add(s, &sample);
}

bool sample_on_signal(const siginfo_t *info, const void *uc)
{
	int times;
	struct sampled *s = sampled_of(info, &times);

	if (!s)
		return false;
	fetch_add_seqcst(&handlers, 1);
	if (is_current(s))
		take(s, times, uc);
	fetch_add_seqcst(&handlers, (uint32_t)-1);
	return true;
}

TOOL_RACY bool sample_lose(const siginfo_t *info)
{
	int times;
	struct sampled *s = sampled_of(info, &times);

	if (s && load_relaxed(&sampling))
		count_up(&s->lost, (uint64_t)times);
	return s != NULL;
}

/*
 * reach_threads.c - the other threads: where they are, and what is in their registers.
 *
 * Each thread gets the preemption signal. The handler shows the thread's registers and
 * stands still until threads_let_go: else it could move a pointer from memory that is not
 * yet scanned to memory that is. A thread that blocks the signal runs on.
 *
 * A thread that sleeps in a system call gets the signal, too, if the call then goes on as
 * if nothing had happened: the kernel restarts most calls itself, and the handler
 * restarts others (restart.c). Left asleep is a thread whose call would wait for its
 * whole time again, such as poll, epoll_wait and usleep with a timeout. Of its registers
 * only the arguments of the call are known. The runtime's own threads are left asleep,
 * too: they have nothing of the program's.
 */
#define _GNU_SOURCE
#include "profile/reach.h"

#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "platform/atomic.h"
#include "base/config.h"
#include "platform/os.h"
#include "platform/raw_file.h"
#include "unwind/regs.h"
#include "preempt/preempt.h"
#include "reclaim/evacuate.h"
#include "sched/runtime.h"
#include "platform/tool.h"
#include "unwind/unwind.h"

/* How long a thread may take to answer on a busy machine. Under TSan it may never. */
#define ANSWER_NS (TOOL_TSAN ? 50000000 : 200000000)

/* A slot for each thread that is to be held. The state includes the turn, so that a
 * thread whose handler runs late does not take another thread's slot in the next turn. */
enum hold_state { HOLD_NONE, HOLD_WANTED, HOLD_HELD };
#define HOLD_STATE(turn, s) ((turn) << 2 | (s))
static struct hold {
	int tid;
	uint32_t state;
	const void *ucontext;
} holds[HOLD_MAX];
static size_t holds_n;

static uint32_t reach_holding;	/* the turn; odd: threads are to stand still. A futex */

/* In the handler: while reach_holding is odd the thread shows its registers and stands
 * still. Once it is held it touches only reach_holding. */
TOOL_RACY static bool reach_on_signal(struct m *mp, const void *ucontext)
{
	uint32_t turn = load_acquire(&reach_holding);
	int tid;

	(void)mp;
	if (!(turn & 1))
		return false;
	tid = os_tid();
	for (size_t i = 0, n = load_acquire(&holds_n); i < n; i++) {
		uint32_t wanted = HOLD_STATE(turn, HOLD_WANTED);

		if (holds[i].tid != tid)
			continue;
		holds[i].ucontext = ucontext;
		/* release: ucontext; pairs with load_acquire in is_held */
		if (!cas_release(&holds[i].state, &wanted, HOLD_STATE(turn, HOLD_HELD)))
			return true;
		while (load_acquire(&reach_holding) == turn)
			os_futex_wait(&reach_holding, turn, -1);
		return true;
	}
	return false;
}
PREEMPT_GUEST(reach, .visits = reach_on_signal, .order = GUEST_REACH);

void threads_let_go(void)
{
	fetch_add_seqcst(&reach_holding, 1);
	os_futex_wake(&reach_holding, INT32_MAX);
}

/* ----------------------------------------------------------------- looking */

/* No descriptor was left to look at some thread: it may do anything. */
static bool unseen;

static size_t read_thread_file(int tid, const char *name, char *out, size_t size)
{
	size_t n = backtrace_thread_file(tid, name, out, size);

	if (n == 0)
		unseen |= raw_out_of_descriptors();
	return n;
}

/* The decimal number that s begins with; 0: none. */
static uint64_t number(const char *s)
{
	uint64_t n = 0;

	for (; *s >= '0' && *s <= '9'; s++)
		n = n * 10 + (uint64_t)(*s - '0');
	return n;
}

/* The value of a field, "\nNAME:\t", of the thread's status; NULL: it cannot be read. */
static const char *status_field(int tid, const char *field)
{
	static char status[4096];
	const char *at = NULL;

	if (read_thread_file(tid, "/status", status, sizeof status))
		at = strstr(status, field);
	return at ? at + strlen(field) : NULL;
}

/* Does a call that a signal interrupts wait only for what is left of its time? */
static bool can_be_interrupted(long nr, const uintptr_t *arg)
{
	switch (nr) {
	case SYS_read: case SYS_readv: case SYS_write: case SYS_writev:
	case SYS_recvfrom: case SYS_recvmsg: case SYS_sendto: case SYS_sendmsg:
	case SYS_accept: case SYS_accept4: case SYS_connect:
	case SYS_wait4: case SYS_waitid: case SYS_flock: case SYS_fcntl: case SYS_ioctl:
	case SYS_openat: case SYS_rt_sigsuspend: case SYS_semop: case SYS_msgrcv: case SYS_msgsnd:
	case SYS_pselect6: case SYS_ppoll:	/* what is left is written back */
		return true;
	case SYS_futex:
		/* FUTEX_WAIT_BITSET's time is absolute. */
		return arg[3] == 0 || (arg[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
	case SYS_epoll_pwait:
		return (int)arg[3] < 0;
	case SYS_rt_sigtimedwait:
		return arg[2] == 0;
	case SYS_nanosleep:		/* if the rest is written over the time */
		return arg[1] == arg[0];
	case SYS_clock_nanosleep:
		return arg[1] & TIMER_ABSTIME || arg[2] == arg[3];
#ifdef SYS_poll
	case SYS_select: case SYS_pause: case SYS_open:
		return true;
	case SYS_poll:
		return (int)arg[2] < 0;
	case SYS_epoll_wait:
		return (int)arg[3] < 0;
#endif
	default:
		return false;
	}
}

/* Parses "NR 0xARG ... 0xSP 0xPC", "-1 0xSP 0xPC", or "running". */
static void look(struct thread_view *v)
{
	char line[256];
	const char *times;

	v->asleep = false;
	v->n = 0;
	v->stamp = 0;
	if (!read_thread_file(v->tid, "/syscall", line, sizeof line) || line[0] == 'r')
		return;
	v->asleep = true;
	v->n = backtrace_syscall_words(line, v->word);
	if (v->n >= 2)
		v->sp = v->word[v->n - 2];
	v->patient = v->n == SYSCALL_WORDS && can_be_interrupted((long)number(line), v->word);
	for (const char *at = line; *at; at++)
		v->stamp = v->stamp * 31 + (unsigned char)*at;
	/* How often it has gone to sleep tells two equal calls apart. */
	times = status_field(v->tid, "\nvoluntary_ctxt_switches:\t");
	v->stamp = v->stamp * 31 + (times ? number(times) : 0);
}

static bool blocks_signal(int tid)
{
	const char *mask = status_field(tid, "\nSigBlk:\t");

	return !mask || backtrace_parse_hex(&mask) >> (SIG_PREEMPT - 1) & 1;
}

/* ----------------------------------------------------------------- holding */

static void take_registers(struct thread_view *v, const void *ucontext)
{
	struct unwind_regs regs;

	unwind_regs_from_ucontext(&regs, ucontext);
	v->held = true;
	v->sp = regs.reg[UNWIND_SP];
	v->frame = (struct span){ (uintptr_t)ucontext, (uintptr_t)ucontext + REACH_FRAME_BYTES };
}

static struct m *m_of(int tid)
{
	for (struct m *mp = load_acquire(&sched.all_m); mp; mp = mp->all_link)
		if (load_relaxed(&mp->tid) == tid)
			return mp;
	return NULL;
}

/* It runs no goroutine, or is stopped in the handler: reach.c finds its registers. */
static bool is_at_rest(const struct m *mp)
{
	return mp && (!load_relaxed(&mp->curg) || load_acquire(&mp->stopped_at));
}

static bool is_held(const struct hold *h)
{
	/* acquire: ucontext; pairs with cas_release in reach_on_signal */
	return (load_acquire(&h->state) & 3) == HOLD_HELD;
}

/* Sends the signal and waits for a moment. True: the thread is held. */
static bool ask(struct thread_view *v, struct hold *h)
{
	os_signal(v->tid, SIG_PREEMPT);
	for (int i = 0; i < 20 && !is_held(h); i++)
		i < 10 ? os_yield() : os_sleep(20000);
	if (!is_held(h))
		return false;
	take_registers(v, h->ucontext);
	return true;
}

/* Waits until the thread is held, or sleeps and is to be left asleep. An M that blocks
 * the signal is in a handler, and soon leaves it or sleeps there. False: it runs on. */
static bool hold(struct thread_view *v, struct hold *h)
{
	int64_t end = os_now() + ANSWER_NS;
	const struct m *mp = m_of(v->tid);

	/* It brings back the stacks that reach.c scans. */
	v->ignored = evacuate_is_server(v->tid);
	if (v->ignored)
		return true;
	while (os_now() < end) {
		bool blocks = blocks_signal(v->tid);

		look(v);
		/* Mostly a thread of the runtime that is no M and never still. */
		v->ignored = (blocks && (!mp || load_relaxed(&mp->is_foreign))) || (v->asleep && is_at_rest(mp));
		if (v->ignored || (v->asleep && (!v->patient || TOOL_TSAN)))
			return true;
		if (blocks)
			os_sleep(20000);
		else if (ask(v, h))
			return true;
	}
	return false;
}

/* From here to hold_end the thread's handler may use the slot. */
static struct hold *hold_begin(int tid)
{
	struct hold *h = &holds[load_relaxed(&holds_n)];

	h->tid = tid;
	/* release: tid; pairs with cas_release in reach_on_signal */
	store_release(&h->state, HOLD_STATE(load_relaxed(&reach_holding), HOLD_WANTED));
	fetch_add_acqrel(&holds_n, 1);
	return h;
}

/* If the handler has used the slot meanwhile, the thread is held after all. */
static void hold_end(struct thread_view *v, struct hold *h)
{
	uint32_t wanted = HOLD_STATE(load_relaxed(&reach_holding), HOLD_WANTED);

	if (!v->held && !cas_acquire(&h->state, &wanted, HOLD_NONE))
		take_registers(v, h->ucontext);
}

/* -------------------------------------------------------------------- all */

struct listing {
	struct thread_view *out;
	size_t n;
};

static void list_one(int tid, void *arg)
{
	struct listing *l = arg;

	if (tid != os_tid() && l->n < HOLD_MAX)
		l->out[l->n++] = (struct thread_view){ .tid = tid };
}

bool threads_hold(struct thread_view *out, size_t *count)
{
	struct listing l = { .out = out };
	bool all = true;

	unseen = os_thread_each(list_one, &l) < 0;
	*count = l.n;
	store_release(&holds_n, 0);
	fetch_add_seqcst(&reach_holding, 1);
	for (size_t i = 0; i < l.n; i++) {
		struct hold *h = hold_begin(out[i].tid);

		if (!hold(&out[i], h))
			all = false;
		hold_end(&out[i], h);
	}
	return all && !unseen;
}

bool threads_still(const struct thread_view *views, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct thread_view now = { .tid = views[i].tid };

		if (views[i].held || views[i].ignored || !views[i].asleep)
			continue;
		look(&now);
		if (now.stamp != views[i].stamp)
			return false;
	}
	return true;
}

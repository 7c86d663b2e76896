/*
 * reach_threads.c - the other threads: where they are, and what is in their registers.
 *
 * A thread gets the preemption signal, whose handler, on any thread, shows the registers
 * and stands still until it is let go: otherwise it could move a pointer from where nobody
 * has looked yet to where somebody has. Those that block the signal run on.
 *
 * One that sleeps in a system call gets it, too, if the call goes on afterwards as if
 * nothing had been: the kernel makes most calls again by itself, and the handler makes
 * others again (restart.c). Left asleep are those whose time would begin anew: poll,
 * epoll_wait and usleep with a timeout, and the like. What such a thread has in its
 * registers, beyond the arguments of the call, cannot be had. Left asleep as well are
 * the runtime's own, which have nothing of the program's.
 */
#define _GNU_SOURCE
#include "reach_scan.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "atomic.h"
#include "config.h"
#include "os.h"
#include "raw_file.h"
#include "reach.h"
#include "regs.h"
#include "runtime.h"
#include "text.h"
#include "tool.h"
#include "unwind.h"

/* How long a thread may take to answer, where CPUs are scarce. Under TSan it may never. */
#define ANSWER_NS (TOOL_TSAN ? 50000000 : 200000000)

/* A place for each thread that is to be held. The state has the turn in it: a thread that
 * was slow to come does not take the place of another at the next. */
enum hold_state { HOLD_NONE, HOLD_WANTED, HOLD_HELD };
#define HOLD_STATE(turn, s) ((turn) << 2 | (s))
static struct hold {
	int tid;
	uint32_t state;
	const void *ucontext;
} holds[HOLD_MAX];
static size_t holds_n;

uint32_t reach_holding;		/* odd: threads are to stand still; a futex */

/* On the thread itself, in the handler. Afterwards only reach_holding is touched. */
TOOL_RACY bool reach_on_signal(const void *ucontext)
{
	uint32_t turn = load_acquire(&reach_holding);
	int tid = os_tid();

	if (!(turn & 1))
		return false;
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

void threads_let_go(void)
{
	fetch_add_seqcst(&reach_holding, 1);
	os_futex_wake(&reach_holding, INT32_MAX);
}

/* ----------------------------------------------------------------- looking */

static size_t read_thread_file(int tid, const char *name, char *out, size_t max)
{
	char path[64];
	struct text t = text_make(path, sizeof path);
	ssize_t n;
	int fd;

	text_add(&t, "/proc/self/task/");
	text_add_decimal(&t, (unsigned)tid);
	text_add(&t, name);
	fd = raw_open(path);
	if (fd < 0)
		return 0;
	n = raw_read(fd, out, max - 1);
	raw_close(fd);
	out[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

static uintptr_t hex(const char **at)
{
	uintptr_t v = 0;

	for (;; ++*at) {
		char c = **at;

		if (c >= '0' && c <= '9')
			v = v << 4 | (uintptr_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			v = v << 4 | (uintptr_t)(c - 'a' + 10);
		else
			return v;
	}
}

/* At the start of s; 0: there is none. */
static int number(const char *s)
{
	int n = 0;

	for (; *s >= '0' && *s <= '9'; s++)
		n = n * 10 + (*s - '0');
	return n;
}

/* How often it was put to sleep: the same call may be another one. */
static uint64_t times_asleep(int tid)
{
	static const char field[] = "\nvoluntary_ctxt_switches:\t";
	char status[4096];
	const char *at;
	uint64_t n = 0;

	if (!read_thread_file(tid, "/status", status, sizeof status) || !(at = strstr(status, field)))
		return 0;
	for (at += sizeof field - 1; *at >= '0' && *at <= '9'; at++)
		n = n * 10 + (uint64_t)(*at - '0');
	return n;
}

/* Whether a call that a signal interrupts is made again for what is left of its time. */
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
		/* Waits with a mask are until a time, not for one. */
		return arg[3] == 0 || (arg[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
	case SYS_epoll_pwait:
		return (int)arg[3] < 0;
	case SYS_rt_sigtimedwait:
		return arg[2] == 0;
	case SYS_nanosleep:		/* what is left must be written where it was */
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

/* "NR 0xARG .. 0xSP 0xPC", "-1 0xSP 0xPC", or "running". */
static void look(struct thread_view *v)
{
	char line[256];
	const char *at = line;

	v->asleep = false;
	v->n = 0;
	v->stamp = 0;
	if (!read_thread_file(v->tid, "/syscall", line, sizeof line) || line[0] == 'r')
		return;
	v->asleep = true;
	v->n = 0;
	while ((at = strstr(at, "0x")) && v->n < 8) {
		at += 2;
		v->word[v->n++] = hex(&at);
	}
	if (v->n >= 2)
		v->sp = v->word[v->n - 2];
	v->patient = v->n == 8 && can_be_interrupted(number(line), v->word);
	for (at = line; *at; at++)
		v->stamp = v->stamp * 31 + (unsigned char)*at;
	v->stamp = v->stamp * 31 + times_asleep(v->tid);
}

static bool blocks_signal(int tid)
{
	char status[4096];
	const char *at;

	if (!read_thread_file(tid, "/status", status, sizeof status) ||
	    !(at = strstr(status, "\nSigBlk:\t")))
		return true;
	at += 9;
	return hex(&at) >> (SIG_PREEMPT - 1) & 1;
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

/* It runs no goroutine, or has stopped in our handler already: nothing is missed. */
static bool is_at_rest(const struct m *mp)
{
	return mp && (!load_relaxed(&mp->curg) || load_acquire(&mp->stopped_at));
}

static bool is_held(const struct hold *h)
{
	/* acquire: ucontext; pairs with cas_release in reach_on_signal */
	return (load_acquire(&h->state) & 3) == HOLD_HELD;
}

/* Sends the signal and waits a while. True: the thread is held. */
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

/* Until it is held, or sleeps and is to be left asleep. A thread of goroutines that blocks the
 * signal is in a handler, and soon out of it, or asleep in it. False: it runs on. */
static bool hold(struct thread_view *v, struct hold *h)
{
	int64_t end = os_now() + ANSWER_NS;
	const struct m *mp = m_of(v->tid);

	while (os_now() < end) {
		bool blocks = blocks_signal(v->tid);

		look(v);
		/* Not to be had: one of the runtime's others, mostly, which are always on the move. */
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

/* The place is the thread's to use from here .. */
static struct hold *hold_begin(int tid)
{
	struct hold *h = &holds[load_relaxed(&holds_n)];

	h->tid = tid;
	/* release: tid; pairs with cas_release in reach_on_signal */
	store_release(&h->state, HOLD_STATE(load_relaxed(&reach_holding), HOLD_WANTED));
	fetch_add_acqrel(&holds_n, 1);
	return h;
}

/* .. to here, unless it has just come. */
static void hold_end(struct thread_view *v, struct hold *h)
{
	uint32_t wanted = HOLD_STATE(load_relaxed(&reach_holding), HOLD_WANTED);

	if (!v->held && !cas_acquire(&h->state, &wanted, HOLD_NONE))
		take_registers(v, h->ucontext);
}

/* -------------------------------------------------------------------- all */

struct linux_dirent64_ {
	uint64_t ino, off;
	uint16_t len;
	uint8_t type;
	char name[];
};

static size_t list_threads(struct thread_view *out)
{
	_Alignas(8) char buf[2048];
	int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int self = os_tid();
	size_t n = 0;
	long got;

	while (fd >= 0 && (got = syscall(SYS_getdents64, fd, buf, sizeof buf)) > 0)
		for (long at = 0; at < got;) {
			const struct linux_dirent64_ *e = (const void *)(buf + at);
			int tid = number(e->name);

			if (tid && tid != self && n < HOLD_MAX)
				out[n++] = (struct thread_view){ .tid = tid };
			at += e->len;
		}
	if (fd >= 0)
		raw_close(fd);
	return n;
}

bool threads_hold(struct thread_view *out, size_t *count)
{
	size_t n = *count = list_threads(out);
	bool all = true;

	store_release(&holds_n, 0);
	fetch_add_seqcst(&reach_holding, 1);
	for (size_t i = 0; i < n; i++) {
		struct hold *h = hold_begin(out[i].tid);

		if (!hold(&out[i], h))
			all = false;
		hold_end(&out[i], h);
	}
	return all;
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

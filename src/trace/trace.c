/*
 * trace.c - execution traces: started, written, stopped.
 *
 * From its start to its stop a trace has a thread of its own, the writer. The writer
 * takes the other threads' events (trace_buffer.c) to the file. It stops the world to
 * begin a trace, to go on to the next generation, and to end. It never has a P, so while
 * it has the world stopped no thread has a P and no goroutine runs. That makes the state
 * that it has to record simple (trace_event.c).
 *
 * A generation that is over is written as a whole before anything of the next. When the
 * world is stopped, the queue holds all events of that generation and no others.
 *
 * Rejected: Go's way, which stops nothing but counts at every event, so that the tracer
 * knows which threads are inside one. A stop is short, and comes once a second.
 *
 * A trace fails if its file cannot be written, or not fast enough. It then ends at once:
 * the file has whole generations and part of one, which readers leave out. A failure
 * blocks no thread, and the program still has to call goro_trace_stop.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <goro.h>

#include "base/environment.h"
#include "platform/os.h"
#include "platform/own_fd.h"
#include "goroutine/run.h"
#include "sched/deadlock.h"
#include "sched/runtime.h"
#include "trace/trace.h"

/* Go's. A process that is killed loses its last generation. */
#define GENERATION_NS 1000000000LL

struct trace trace;

enum session_state {
	SESSION_NONE,
	SESSION_ON,		/* owned by no thread; goro_trace_stop takes it */
	SESSION_BUSY,		/* owned by the caller of goro_trace_start or _stop */
};

static struct {
	uint32_t state;		/* enum session_state */
	int fd;
	struct note wake;	/* the writer sleeps on it */
	uint32_t stop;		/* the writer is to end */
	/* Two notes: a trace may fail, and its writer end, before its starter has run. */
	struct note begun;	/* the writer has begun */
	struct note ended;	/* the writer has ended */
	uint32_t threads;	/* writers: 0 or 1 */
} session;

void trace_writer_wake(void)
{
	note_wake(&session.wake);
}

void trace_fail(int error)
{
	uint32_t none = 0;

	if (cas_relaxed(&trace.error, &none, (uint32_t)error))
		trace_writer_wake();
}

static int trace_threads(void)
{
	return (int)load_relaxed(&session.threads);
}

DEADLOCK_WITNESS(trace, .threads = trace_threads);

/* -------------------------------------------------- with the world stopped */

static void next_generation(void)
{
	check(lock_is_held(&sched.lock) && load_relaxed(&sched.stopping));
	store_relaxed(&trace.gen, trace.gen + 1);
	trace_texts_put();
}

static void begin(struct m *mp)
{
	mp = world_stop(mp);
	lock_acquire(&sched.lock);
	next_generation();
	trace.first_gen = trace.gen;
	trace_event_begin(mp);
	store_relaxed(&sched.tracing, 1);
	lock_release(&sched.lock);
	world_start(mp, sched.gomaxprocs);
}

/* Ends a generation, and with the last one the trace. Returns its batches. */
static struct trace_buf *end_generation(struct m *mp, bool last)
{
	struct trace_buf *list;

	mp = world_stop(mp);
	lock_acquire(&sched.lock);
	for (struct m *each = load_acquire(&sched.all_m); each; each = each->all_link)
		trace_buf_finish(each);
	list = trace_buf_take_all();
	if (last)
		store_relaxed(&sched.tracing, 0);
	else
		next_generation();
	lock_release(&sched.lock);
	world_start(mp, sched.gomaxprocs);
	lock_acquire(&sched.lock);
	deadlock_check();	/* none is made while the world is stopped */
	lock_release(&sched.lock);
	return list;
}

/* --------------------------------------------------------------- the writer */

static uint64_t switches(void)
{
	uint64_t n = 0;

	for (int i = 0, all = load_acquire(&sched.all_p_n); i < all; i++)
		n += load_relaxed(&p_at(i)->count.switches);
	return n;
}

static void write_generation(struct m *mp, bool last)
{
	uint32_t gen = trace.gen;

	trace_write_batches(session.fd, end_generation(mp, last));
	trace_write_tables(session.fd, gen);
}

/* Writes until the trace is to stop. While no goroutine switches, no generation ends, so
 * that an idle program is not woken for one. */
static void write_on(struct m *mp)
{
	int64_t began = os_now(), now;
	uint64_t seen = switches();

	while (!load_acquire(&session.stop) && !trace_failed()) {
		trace_write_batches(session.fd, trace_buf_take_all());
		now = os_now();
		if (now - began >= GENERATION_NS && switches() != seen) {
			write_generation(mp, false);
			began = os_now();
			seen = switches();
			continue;
		}
		note_sleep_for(&session.wake, now - began >= GENERATION_NS
		               ? GENERATION_NS : began + GENERATION_NS - now);
	}
	write_generation(mp, true);
}

/* In user code, or in a plain thread. */
static void await_writer(struct note *has)
{
	goro_syscall_enter();
	note_sleep(has);
	goro_syscall_exit();
}

static void *writer_thread(void *arg)
{
	struct m *mp = foreign_attach(M_STACK_BYTES);

	(void)arg;
	os_thread_name("goro-trace");
	begin(mp);
	note_wake(&session.begun);
	trace_write_header(session.fd);
	write_on(mp);
	fetch_add_seqcst(&session.threads, (uint32_t)-1);
	note_wake(&session.ended);
	return NULL;
}

/* ------------------------------------------------------------ start and stop */

/* A copy that the program does not close, or -errno. */
static int own_descriptor(int fd)
{
	int mode = fcntl(fd, F_GETFL);

	if (mode < 0)
		return -EBADF;
	if ((mode & O_ACCMODE) == O_RDONLY)
		return -EBADF;
	return own_fd_copy(fd);
}

static int start(int fd)
{
	int error;

	fd = own_descriptor(fd);
	if (fd < 0)
		return fd;
	if (!trace_tables_init()) {
		close(fd);
		return -ENOMEM;
	}
	session.fd = fd;
	session.stop = 0;
	store_relaxed(&trace.error, 0);
	trace_stack_forget();
	fetch_add_seqcst(&session.threads, 1);
	error = m_thread_make_quiet(writer_thread, NULL);
	if (error) {
		fetch_add_seqcst(&session.threads, (uint32_t)-1);
		close(fd);
		return -error;
	}
	await_writer(&session.begun);
	return 0;
}

int goro_trace_start(int fd)
{
	uint32_t none = SESSION_NONE;
	struct m *mp;
	int error;

	rt_exit(rt_enter());	/* starts the runtime if need be */
	/* acquire: what the last trace left; pairs with the release of goro_trace_stop */
	if (!cas_acqrel(&session.state, &none, SESSION_BUSY))
		return -EBUSY;
	error = start(fd);
	store_release(&session.state, error ? SESSION_NONE : SESSION_ON);
	if (error)
		return error;
	mp = rt_enter();
	if (trace_on())
		trace_procs(mp, sched.gomaxprocs);
	rt_exit(mp);
	return 0;
}

void goro_trace_stop(void)
{
	uint32_t on = SESSION_ON;

	if (!cas_acqrel(&session.state, &on, SESSION_BUSY))
		return;
	store_release(&session.stop, 1);
	trace_writer_wake();
	await_writer(&session.ended);
	if (trace_file_is(session.fd))
		close(session.fd);
	store_release(&session.state, SESSION_NONE);
}

int goro_trace_error(void)
{
	return -(int)load_relaxed(&trace.error);
}

/* -------------------------------------------------------------- GORO_TRACE */

static pid_t traced;		/* this process: a forked child has no writer */

static void stop_at_exit(void)
{
	if (getpid() != traced)
		return;
	goro_trace_stop();
	if (goro_trace_error())
		environment_complain("GORO_TRACE", strerror(-goro_trace_error()));
}

static void trace_start_by_environment(void)
{
	static uint32_t done;
	int fd, error;

	if (exchange_acqrel(&done, 1) || (fd = environment_open("GORO_TRACE")) < 0)
		return;
	error = goro_trace_start(fd);
	close(fd);
	if (error) {
		environment_complain("GORO_TRACE", strerror(-error));
		return;
	}
	traced = getpid();
	atexit(stop_at_exit);
}
HOOK(at_run, 0, trace_start_by_environment);

/*
 * trace.c - execution traces: started, written, stopped.
 *
 * A trace has a thread of its own, the writer, from its start to its stop. It takes
 * what the others have told (trace_buffer.c) to the file, and it stops the world: to
 * begin, to go on to the next generation, and to end. It never has a P, so that when
 * the world is stopped nobody has one, and nobody runs: what the trace then has to
 * say of each is simple (trace_event.c).
 *
 * A generation that is over is written as a whole before anything of the next. What
 * was told in it is in the queue at the moment when the world is stopped, and nothing
 * else is.
 *
 * Go does without stopping the world for this, by a count at every event that says
 * whether its thread is at one. A stop takes goro 20 to 50 us, once a second.
 *
 * Where the trace fails, because its file cannot be written or not fast enough, it
 * ends there and then: what is in the file is whole generations, and part of one that
 * readers leave out. Nobody is held up for it, and goro_trace_stop is still to be
 * called.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <goro.h>

#include "environment.h"
#include "os.h"
#include "runtime.h"
#include "trace_impl.h"
#include "world.h"

struct trace trace;

enum session_state {
	SESSION_NONE,
	SESSION_STARTING,	/* the caller of goro_trace_start has it .. */
	SESSION_ON,		/* .. whoever calls goro_trace_stop .. */
	SESSION_STOPPING,	/* .. and has called it */
};

static struct {
	uint32_t state;		/* enum session_state */
	int fd;
	struct note wake;	/* the writer's */
	uint32_t stop;		/* it is to end */
	uint32_t begun, ended;	/* futexes: it has */
	uint32_t threads;
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

int trace_threads(void)
{
	return (int)load_relaxed(&session.threads);
}

/* -------------------------------------------------- with the world stopped */

/* All Ps are idle, and sched.lock is held. */
static void next_generation(void)
{
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

/* What is left in the threads' buffers. */
static void finish_all(void)
{
	for (struct m *mp = load_acquire(&sched.all_m); mp; mp = mp->all_link)
		trace_buf_finish(mp);
}

/* Ends a generation, and the trace if it was the last: its batches. */
static struct trace_buf *end_generation(struct m *mp, bool last)
{
	struct trace_buf *list;

	mp = world_stop(mp);
	lock_acquire(&sched.lock);
	finish_all();
	list = trace_buf_take_all();
	if (last)
		store_relaxed(&sched.tracing, 0);
	else
		next_generation();
	lock_release(&sched.lock);
	world_start(mp, sched.gomaxprocs);
	lock_acquire(&sched.lock);
	deadlock_check();	/* none was made while it was stopped */
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

/* Until it is to end. A program that stands still is not woken for a generation. */
static void write_on(struct m *mp)
{
	int64_t began = os_now(), now;
	uint64_t seen = switches();

	while (!load_acquire(&session.stop) && !trace_failed()) {
		trace_write_batches(session.fd, trace_buf_take_all());
		now = os_now();
		if (now - began >= TRACE_GENERATION_NS && switches() != seen) {
			write_generation(mp, false);
			began = os_now();
			seen = switches();
			continue;
		}
		note_sleep_for(&session.wake, now - began >= TRACE_GENERATION_NS
		               ? TRACE_GENERATION_NS : began + TRACE_GENERATION_NS - now);
	}
	write_generation(mp, true);
}

static void tell(uint32_t *event)
{
	store_release(event, 1);
	os_futex_wake(event, 1);
}

/* In user code or in a plain thread. */
static void await(uint32_t *event)
{
	goro_syscall_enter();
	while (!load_acquire(event))
		os_futex_wait(event, 0, -1);
	goro_syscall_exit();
}

static void *writer_thread(void *arg)
{
	struct m *mp = foreign_attach(M_STACK_BYTES);

	(void)arg;
	os_thread_name("goro-trace");
	begin(mp);
	tell(&session.begun);
	trace_write_header(session.fd);
	write_on(mp);
	trace_buf_release_all();
	fetch_add_seqcst(&session.threads, (uint32_t)-1);
	tell(&session.ended);
	return NULL;
}

/* ------------------------------------------------------------ start and stop */

static bool tables_init(void)
{
	return trace_table_init(&trace_strings[0]) && trace_table_init(&trace_strings[1]) &&
	       trace_table_init(&trace_stacks[0]) && trace_table_init(&trace_stacks[1]);
}

/* A descriptor of the trace's own, that the program does not close: or -errno. */
static int own_descriptor(int fd)
{
	int mode = fcntl(fd, F_GETFL), own;

	if (mode < 0)
		return -EBADF;
	if ((mode & O_ACCMODE) == O_RDONLY)
		return -EBADF;
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return own < 0 ? -errno : own;
}

static int start(int fd)
{
	int error;

	fd = own_descriptor(fd);
	if (fd < 0)
		return fd;
	if (!tables_init()) {
		close(fd);
		return -ENOMEM;
	}
	session.fd = fd;
	session.wake.word = 0;
	session.stop = session.begun = session.ended = 0;
	store_relaxed(&trace.error, 0);
	trace_stack_forget();
	fetch_add_seqcst(&session.threads, 1);
	error = m_thread_make_quiet(writer_thread, NULL);
	if (error) {
		fetch_add_seqcst(&session.threads, (uint32_t)-1);
		close(fd);
		return -error;
	}
	await(&session.begun);
	return 0;
}

int goro_trace_start(int fd)
{
	uint32_t none = SESSION_NONE;
	struct m *mp;
	int error;

	rt_exit(rt_enter());	/* the runtime is running */
	/* acquire: what the last one left; pairs with store_release below */
	if (!cas_acqrel(&session.state, &none, SESSION_STARTING))
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

	if (!cas_acqrel(&session.state, &on, SESSION_STOPPING))
		return;
	store_release(&session.stop, 1);
	trace_writer_wake();
	await(&session.ended);
	if (trace_file_is(session.fd))
		close(session.fd);
	store_release(&session.state, SESSION_NONE);
}

int goro_trace_error(void)
{
	return -(int)load_relaxed(&trace.error);
}

/* -------------------------------------------------------------- GORO_TRACE */

static pid_t traced;		/* the process: its children have no writer */

static void stop_at_exit(void)
{
	if (getpid() != traced)
		return;
	goro_trace_stop();
	if (goro_trace_error())
		environment_complain("GORO_TRACE", strerror(-goro_trace_error()));
}

void trace_start_by_environment(void)
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

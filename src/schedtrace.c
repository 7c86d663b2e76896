/*
 * schedtrace.c - GORO_DEBUG=schedtrace=ms[,scheddetail=1]: a line about the
 * scheduler every so often, in the format of Go 1.25's GODEBUG=schedtrace.
 *
 * Called by sysmon, so it formats into a buffer of its own and writes with a
 * raw system call: no libc lock is taken.
 */
#include "schedtrace.h"

#include <unistd.h>

#include "debug.h"
#include "os.h"
#include "runq.h"
#include "runtime.h"
#include "print.h"

static int64_t started_at, last_at;

void schedtrace_init(void)
{
	started_at = last_at = os_now();
}

bool schedtrace_on(void)
{
	return debug.schedtrace > 0;
}

/* SCHED 0ms: gomaxprocs=2 idleprocs=1 threads=4 spinningthreads=1
 * needspinning=0 idlethreads=0 runqueue=0 [ 0 0 ] */
static void print_line(struct printer *o, int64_t now)
{
	int procs = load_relaxed(&sched.gomaxprocs);

	print_str(o, "SCHED ");
	print_int(o, (now - started_at) / 1000000);
	print_str(o, "ms: gomaxprocs=");
	print_int(o, procs);
	print_str(o, " idleprocs=");
	print_int(o, load_relaxed(&sched.idle_p_n));
	print_str(o, " threads=");
	print_int(o, load_relaxed(&sched.m_n));
	print_str(o, " spinningthreads=");
	print_int(o, load_relaxed(&sched.spinning));
	print_str(o, " needspinning=");
	print_int(o, load_relaxed(&sched.need_spinning));
	print_str(o, " idlethreads=");
	print_int(o, load_relaxed(&sched.idle_m_n));
	print_str(o, " runqueue=");
	print_int(o, (int64_t)globq_length());
	print_str(o, " [ ");
	for (int i = 0; i < procs; i++) {
		print_int(o, (int64_t)runq_length(sched.all_p[i]));
		print_str(o, " ");
	}
	print_str(o, "]\n");
}

void schedtrace_tick(int64_t now)
{
	struct printer o;

	if (!schedtrace_on() || now - last_at < debug.schedtrace * INT64_C(1000000))
		return;
	last_at = now;
	o = print_to_fd(STDERR_FILENO);
	print_line(&o, now);
	print_flush(&o);
}

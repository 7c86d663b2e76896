/*
 * debug_attach.c - the debug server for a program that does not serve
 *
 * Attaching
 *
 *	goro dump PID, goro top PID             the program
 *
 *	listens on a Unix socket
 *	sends SIGURG with a mark and            the handler notes the number and wakes the
 *	  the number in the socket's name         spawner, which makes a thread
 *	                                        the thread connects, checks the listener's
 *	checks the connecting process             user, and starts a goroutine that serves
 *	sends requests                          the goroutine answers
 *
 * Of several requests at the same time one is answered: the kernel merges the signals,
 * and there is one number. So the sender repeats its signal until the program connects.
 *
 * The program keeps nothing ready and leaves nothing behind. The socket's name is random
 * and abstract: no file, and no other process's socket, could be put in its place.
 *
 * Root may attach, and the user that the process runs as if the process is dumpable. That
 * is the kernel's rule for ptrace: a program that is set-uid, or has changed its user,
 * cannot be attached to. GORO_DEBUG=noattach=1 refuses all.
 *
 * The signal is that of preemption. Its handler is there, it interrupts no call of a
 * goroutine, and a process without goro ignores it.
 *
 * Rejected: SIGQUIT with a value, which ends a process that does not handle it; a socket
 * that listens in each program, which takes a descriptor and a name for nothing; a file
 * for the dump, which would have to be guarded against links and removed.
 */
#define _GNU_SOURCE
#include "http/debug_attach.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/debug.h"
#include "http/debug_http.h"
#include "preempt/preempt.h"
#include "sched/init.h"
#include "sched/runtime.h"

static uint32_t asked;		/* atomic: the number in the last request; 0: none */

/* In the signal handler. Takes the signal if it is a request. */
TOOL_RACY static bool debug_attach_take(int sig, const siginfo_t *info)
{
	uint64_t value = (uintptr_t)info->si_value.sival_ptr;

	(void)sig;
	if (info->si_code != SI_QUEUE || value >> 32 != DEBUG_ATTACH_MARK || debug.noattach)
		return false;
	store_relaxed(&asked, (uint32_t)value);
	m_spawn();
	return true;
}
PREEMPT_GUEST(attach, .takes = debug_attach_take, .order = GUEST_ATTACH);

/* Never waits: a listener whose queue is full is not the sender's. */
static int connect_to(uint32_t number)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int n = snprintf(sa.sun_path + 1, sizeof sa.sun_path - 1, DEBUG_ATTACH_NAME, number);
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&sa, len) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool may_look(int fd)
{
	struct ucred who;
	socklen_t len = sizeof who;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) != 0)
		return false;
	return who.uid == 0 || (who.uid == geteuid() && prctl(PR_GET_DUMPABLE) == 1);
}

static void *attach(void *arg)
{
	int fd = connect_to((uint32_t)(uintptr_t)arg);

	if (fd >= 0 && may_look(fd))
		debug_http_take(fd, false);
	else if (fd >= 0)
		close(fd);
	return NULL;
}

/* On the spawner: makes a thread that answers the request, if there is one. */
static void debug_attach_start_if_asked(void)
{
	uint32_t number = load_relaxed(&asked) ? exchange_acquire(&asked, 0) : 0;

	if (number)
		m_thread_make_quiet(attach, (void *)(uintptr_t)number);
}

HOOK(at_spawner, 0, debug_attach_start_if_asked);

/*
 * debug_attach.c - the debug server for a program that was not told to serve.
 *
 * Attaching
 *
 *	goro dump PID, goro top PID             the program
 *
 *	listens on a Unix socket
 *	sends SIGURG with a mark and            the handler notes the number and wakes the
 *	  the number in the socket's name         spawner, which makes a thread
 *	                                        the thread connects, looks who listens, and
 *	looks who has connected                   hands the connection to a goroutine
 *	asks by HTTP                            the goroutine answers as the debug server does
 *
 * Of several requests at once one is answered: the signal merges, and there is one number. So
 * the sender repeats its own until it is connected to.
 *
 * Nothing is kept ready for it, and nothing is left behind: the name is abstract, which
 * has no file that could be replaced, and is random, so that nobody has it first.
 *
 * Who may: root, and the user that the process runs as if the process is dumpable. That is
 * the kernel's rule for ptrace: a program that is set-uid, or has changed its user, is left
 * alone. GORO_DEBUG=noattach=1 refuses everybody.
 *
 * The signal is that of preemption: its handler is there, interrupts no call of a goroutine's,
 * and a process without goro ignores it.
 *
 * Rejected: SIGQUIT with a value, which ends a process that does not handle it; a socket
 * that listens in each program, which takes a descriptor and a name for nothing; a file
 * for the dump, which has to be guarded against links and removed by somebody.
 */
#define _GNU_SOURCE
#include "debug_attach.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "debug.h"
#include "debug_http.h"
#include "runtime.h"

static uint32_t asked;		/* the number; 0: nobody asks; atomic */

TOOL_RACY bool debug_attach_take(const siginfo_t *info)
{
	uint64_t value = (uintptr_t)info->si_value.sival_ptr;

	if (info->si_code != SI_QUEUE || value >> 32 != DEBUG_ATTACH_MARK || debug.noattach)
		return false;
	store_relaxed(&asked, (uint32_t)value);
	m_spawn();
	return true;
}

/* Never waits: a listener whose queue is full is not ours. */
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

void debug_attach_start_if_asked(void)
{
	uint32_t number = load_relaxed(&asked) ? exchange_acquire(&asked, 0) : 0;

	if (number)
		m_thread_make_quiet(attach, (void *)(uintptr_t)number);
}

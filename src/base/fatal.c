/*
 * fatal.c - ends of the process that are not panics: "fatal error: ...".
 *
 * Anything may be held or broken here, so nothing is locked or allocated. The first
 * thread prints. Other threads that come meanwhile wait for the end.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "platform/atomic.h"
#include "platform/os.h"
#include "base/print.h"
#include "base/throw.h"

void (*fatal_dump)(enum culprit, uintptr_t pc);
bool fatal_leaves_core;

static uint32_t dying;
static __thread bool alone;

void fatal_alone(void)
{
	alone = true;
}

bool fatal_is_alone(void)
{
	return alone;
}

_Noreturn void fatal_exit(void)
{
	sigset_t abort_only;

	if (fatal_leaves_core) {
		sigemptyset(&abort_only);
		sigaddset(&abort_only, SIGABRT);
		signal(SIGABRT, SIG_DFL);
		pthread_sigmask(SIG_UNBLOCK, &abort_only, NULL);
		raise(SIGABRT);
	}
	_exit(2);
}

void fatal_first_only(void)
{
	static __thread bool here;

	if (here)
		_exit(2);
	here = true;
	if (fetch_add_seqcst(&dying, 1) > 0)
		for (;;)
			os_sleep(1000000000);
}

static _Noreturn void die(const char *fmt, va_list ap, enum culprit who)
{
	struct printer pr = print_to_fd(STDERR_FILENO);
	char text[256];

	if (!alone)
		fatal_first_only();
	vsnprintf(text, sizeof text, fmt, ap);
	print_str(&pr, "fatal error: ");
	print_str(&pr, text);
	print_str(&pr, "\n");
	print_flush(&pr);
	if (fatal_dump && !alone)
		fatal_dump(who, 0);
	fatal_exit();
}

_Noreturn void throw(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	die(fmt, ap, CULPRIT_RUNTIME);
}

_Noreturn void fatal(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	die(fmt, ap, CULPRIT_GOROUTINE);
}

_Noreturn void fatal_nobody(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	die(fmt, ap, CULPRIT_NOBODY);
}

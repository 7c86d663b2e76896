/*
 * fatal.c - ends of the process that are not panics: "fatal error: ...".
 *
 * Anything may be held or broken here, so nothing is locked or allocated. The
 * first thread to come prints; others that come while it does wait for the end.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "dump.h"
#include "evacuate.h"
#include "os.h"
#include "runtime.h"
#include "throw.h"

static uint32_t dying;

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

/* Whose stack is shown first: the runtime's own; the running goroutine's; or
 * nobody's, when it is not the caller who is at fault. */
enum culprit { RUNTIME, GOROUTINE, NOBODY };

static _Noreturn void die(const char *fmt, va_list ap, enum culprit who)
{
	struct printer pr = print_to_fd(STDERR_FILENO);
	struct m *mp = m_self();
	const struct g *gp = mp && who == GOROUTINE ? mp->curg : NULL;
	struct backtrace bt;
	char text[256];

	if (!evacuate_is_server())
		fatal_first_only();
	vsnprintf(text, sizeof text, fmt, ap);
	print_str(&pr, "fatal error: ");
	print_str(&pr, text);
	print_str(&pr, "\n");
	print_flush(&pr);
	/* A dump touches all stacks, and would wait for the server. */
	if (dump_level != DUMP_NONE && !evacuate_is_server()) {
		backtrace_here(&bt);
		if (who == RUNTIME) {
			print_str(&pr, "\nruntime stack:\n");
			dump_frames(&pr, &bt);
		}
		dump_all_unstopped(&pr, gp, &bt);
	}
	_exit(2);
}

_Noreturn void throw(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	die(fmt, ap, RUNTIME);
}

_Noreturn void fatal(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	die(fmt, ap, GOROUTINE);
}

_Noreturn void fatal_nobody(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	die(fmt, ap, NOBODY);
}

/*
 * panic.c - panic, defer, try, goexit.
 *
 * Go recovers inside a deferred function. C has no closures to recover into, so goro_try
 * marks the place to come back to. A panic runs the defers made since the innermost
 * goro_try, on top of the stack that panicked, so that a trace still shows where. Then it
 * jumps back into goro_try, which returns the message. Without a goro_try the panic runs
 * all defers, prints its message and ends the process.
 *
 * A defer is taken off the list before it runs, so a defer that panics is not run twice.
 * The new panic runs the remaining defers and takes the place of the old one, which is
 * printed before it, as in Go.
 *
 * A C++ exception passes goro_try, which runs its defers first. It cannot leave a defer:
 * see cxx.c. A panic that comes back to goro_try calls the destructors on the way, and
 * ends the catch blocks there: see panic_cxx.c.
 *
 * goexit is a panic that no goro_try stops. A defer that panics during goexit, inside a
 * try, would have been recovered there, so goexit goes on.
 *
 * Everything here is private to the goroutine and runs in user code, where malloc is
 * allowed. If there is no memory for a message, its first BRIEF_BYTES are kept in struct
 * panic and printed, and goro_try returns no_memory.
 */
#include "goroutine/panic.h"
#include "goroutine/panic_cxx.h"

#include <goro.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sched/cxx.h"
#include "sched/g.h"
#include "platform/os.h"
#include "base/throw.h"
#include "sched/runtime.h"

#define BRIEF_BYTES 200

static char no_memory[] = "(out of memory)";

struct try_frame {
	jmp_buf back;
	struct try_frame *outer;
	struct defer *defers;	/* gp->defers when the try began */
	struct panic *panics;
	uint32_t preempt_off;	/* the goroutine's nesting when the try began */
	struct cxx_state cxx;	/* the thread's exceptions when the try began */
	struct panic_unwinding unwinding;
	char *message;		/* of the panic that came back here */
	bool exiting;		/* goexit is running its defers */
};

struct panic {
	struct panic *earlier;	/* the panic whose defers raised this one */
	char *message;		/* if no_memory, the text is in brief */
	char brief[BRIEF_BYTES];
};

/* ------------------------------------------------------------------ defers */

void goro_defer(void (*fn)(void *arg), void *arg)
{
	struct g *gp = rt_g();
	struct defer *d = malloc(sizeof *d);

	if (!d)
		goro_panic("runtime error: out of memory");
	*d = (struct defer){ .next = gp->defers, .fn = fn, .arg = arg };
	gp->defers = d;
}

void panic_defer(struct defer *d, void (*fn)(void *arg), void *arg)
{
	struct g *gp = rt_g();

	*d = (struct defer){ .next = gp->defers, .fn = fn, .arg = arg, .in_frame = true };
	gp->defers = d;
}

static void defer_free(struct defer *d)
{
	if (!d->in_frame)
		free(d);
}

__attribute__((noinline)) void panic_run_defers(struct g *gp, struct defer *until)
{
	CXX_PERSONALITY(cxx_no_way_out);
	while (gp->defers != until) {
		struct defer d;

		check(gp->defers);	/* until is in the list */
		d = *gp->defers;
		defer_free(gp->defers);
		gp->defers = d.next;
		d.fn(d.arg);
	}
}

FILL(g_run_defers, panic_run_defers);

void panic_run_deferred(void (*fn)(void *arg))
{
	for (struct defer **at = &rt_g()->defers, *d; (d = *at); at = &d->next)
		if (d->fn == fn) {
			void *arg = d->arg;

			*at = d->next;
			defer_free(d);
			fn(arg);
			return;
		}
}

/* -------------------------------------------------------------------- try */

static void message_free(char *message)
{
	if (message != no_memory)
		free(message);
}

static void drop_last_message(struct g *gp)
{
	message_free(gp->last_try_message);
	gp->last_try_message = NULL;
}

/* The try ends. gp->tries is NULL if a goexit on its way to pthread_exit has ended it. */
CXX_ROUTINE(try_passed)
{
	struct g *gp = rt_g();
	struct try_frame *frame = gp->tries;

	if (CXX_PASSES && frame) {
		panic_run_defers(gp, frame->defers);
		gp->tries = frame->outer;
	}
	return CXX_GO_ON;
}

const char *goro_try(void (*fn)(void *arg), void *arg)
{
	struct g *gp = rt_g();
	struct try_frame frame = {
		.outer = gp->tries,
		.defers = gp->defers,
		.panics = gp->panics,
		.preempt_off = gp->preempt_off,
		.cxx = cxx_get(m_self()),
	};

	CXX_PERSONALITY(try_passed);
	drop_last_message(gp);
	gp->tries = &frame;
	if (_setjmp(frame.back) == 0) {
		fn(arg);
		panic_run_defers(gp, frame.defers);
		check(gp->tries == &frame);
		gp->tries = frame.outer;
		return NULL;
	}
	gp = rt_g();
	drop_last_message(gp);
	store_relaxed(&gp->untidy, true);
	store_relaxed(&gp->preempt_off, frame.preempt_off);
	cxx_set(m_self(), frame.cxx);
	gp->tries = frame.outer;
	gp->last_try_message = frame.message;
	return frame.message;
}

/* ------------------------------------------------------------------- panic */

void panic_print(const struct g *gp, int fd)
{
	const struct panic *chain[64];
	int n = 0;

	for (const struct panic *p = gp->panics; p && n < 64; p = p->earlier)
		chain[n++] = p;
	for (int i = n - 1; i >= 0; i--) {
		const char *text = chain[i]->message == no_memory ? chain[i]->brief : chain[i]->message;

		if (i < n - 1)
			os_write(fd, "\t", 1);
		os_write(fd, "panic: ", 7);
		os_write(fd, text, strlen(text));
		os_write(fd, "\n", 1);
	}
}

static _Noreturn void goexit_continue(struct g *gp);

static void free_panics(struct g *gp, struct panic *until, struct panic *but)
{
	while (gp->panics != until) {
		struct panic *p = gp->panics;

		gp->panics = p->earlier;
		if (p != but)
			message_free(p->message);
	}
}

/* No goro_try catches the panic. */
static _Noreturn void end_of_panic(const struct g *gp)
{
	fatal_first_only();
	panic_print(gp, STDERR_FILENO);
	fatal_dump(CULPRIT_PANIC, 0);
	fatal_exit();
}

static _Noreturn void back_to_try(void *frame)
{
	_longjmp(((struct try_frame *)frame)->back, 1);
}

/* The message becomes goro_try's. p itself lies on the stack that panics. */
static _Noreturn void panic_with(struct panic *p)
{
	struct g *gp = rt_g();
	struct try_frame *frame = gp->tries;

	goro_syscall_exit();	/* it may leave goro_blocking */
	p->earlier = gp->panics;
	gp->panics = p;
	panic_run_defers(gp, frame ? frame->defers : NULL);
	if (!frame)
		end_of_panic(gp);
	free_panics(gp, frame->panics, p);
	if (frame->exiting) {
		message_free(p->message);
		goexit_continue(gp);
	}
	frame->message = p->message;
	panic_unwind(&frame->unwinding, back_to_try, frame);
	back_to_try(frame);
}

static void say(struct panic *p, const char *fmt, va_list ap)
{
	va_list again;

	va_copy(again, ap);
	if (vasprintf(&p->message, fmt, ap) < 0) {
		p->message = no_memory;
		vsnprintf(p->brief, sizeof p->brief, fmt, again);
	}
	va_end(again);
}

_Noreturn void goro_panic(const char *fmt, ...)
{
	struct panic p;
	va_list ap;

	va_start(ap, fmt);
	say(&p, fmt, ap);
	va_end(ap);
	panic_with(&p);
}

_Noreturn void panic_misuse(const char *fmt, ...)
{
	struct panic p;
	va_list ap;

	rt_exit(m_self());
	va_start(ap, fmt);
	say(&p, fmt, ap);
	va_end(ap);
	panic_with(&p);
}

/* ------------------------------------------------------------------ goexit */

static _Noreturn void goexit_continue(struct g *gp)
{
	while (gp->tries) {
		struct try_frame *frame = gp->tries;

		frame->exiting = true;
		panic_run_defers(gp, frame->defers);
		gp->tries = frame->outer;
	}
	panic_run_defers(gp, NULL);
	free_panics(gp, NULL, NULL);	/* panics whose defers called goexit are over */
	if (gp->is_foreign)
		pthread_exit(NULL);
	g_end(gp);
}

_Noreturn void goro_goexit(void)
{
	struct g *gp = rt_g();

	goro_syscall_exit();	/* it may leave goro_blocking */
	gp->goexiting = true;
	store_relaxed(&gp->untidy, true);
	goexit_continue(gp);
}

/* Forgets what a goroutine that ends leaves of its tries and panics. */
static void panics_end(struct g *gp)
{
	drop_last_message(gp);
	gp->tries = NULL;
	gp->panics = NULL;
	gp->goexiting = false;
}
G_END(G_END_PANICS, panics_end);

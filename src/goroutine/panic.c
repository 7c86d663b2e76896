/*
 * panic.c - panic, defer, try, goexit.
 *
 * Go recovers inside a deferred function; C has no closures to recover into, so
 * goro_try marks the place to come back to. A panic runs the defers made since
 * the innermost goro_try, on top of the stack that panicked (so that a trace
 * still shows where), and then jumps back into goro_try, which returns the
 * message. Without a goro_try it runs all defers, prints and ends the process.
 *
 * A defer is taken off the list before it runs, so one that panics itself is
 * not run twice: the new panic runs what is left and takes the place of the old
 * one, which is printed before it, as in Go.
 *
 * A C++ exception passes goro_try, which runs its defers first. It cannot leave a defer: see
 * cxx.c. A panic that comes back to goro_try leaves the exceptions that were thrown or caught
 * on the way; they are not freed.
 *
 * goexit is a panic that no goro_try stops: it runs the defers of every try on
 * the way to the end of the goroutine. A defer that panics during goexit, inside
 * a try, would have been recovered there: goexit goes on.
 *
 * Everything here is private to the goroutine and runs in user code; malloc is
 * allowed. Where there is no memory for a message, which is what many a panic is about, the
 * panic has its beginning beside it and is printed with that; who catches it is told that
 * there was no memory.
 */
#include "panic.h"

#include <goro.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cxx.h"
#include "dump.h"
#include "g.h"
#include "os.h"
#include "runtime.h"

#define BRIEF_BYTES 200

static char no_memory[] = "(out of memory)";

struct try_frame {
	jmp_buf back;
	struct try_frame *outer;
	struct defer *defers;	/* the list when the try began */
	struct panic *panics;
	uint32_t preempt_off;	/* the goroutine's nesting when the try began */
	struct cxx_state cxx;	/* its exceptions then */
	char *message;		/* of the panic that came back here */
	bool exiting;		/* goexit is running its defers */
};

struct panic {
	struct panic *earlier;	/* whose defers raised this one */
	char *message;		/* no_memory: what there was room for is in brief */
	char brief[BRIEF_BYTES];
};

/* The calling goroutine; a plain thread has a G too. */
static struct g *my_g(void)
{
	struct m *mp = m_self();

	if (!mp) {
		mp = rt_enter();
		rt_exit(mp);
	}
	return mp->curg;
}

/* ------------------------------------------------------------------ defers */

void goro_defer(void (*fn)(void *arg), void *arg)
{
	struct g *gp = my_g();
	struct defer *d = malloc(sizeof *d);

	if (!d)
		goro_panic("runtime error: out of memory");
	*d = (struct defer){ .next = gp->defers, .fn = fn, .arg = arg };
	gp->defers = d;
}

__attribute__((noinline)) void panic_run_defers(struct g *gp, struct defer *until)
{
	CXX_PERSONALITY(cxx_no_way_out);
	while (gp->defers != until) {
		struct defer d = *gp->defers;

		free(gp->defers);
		gp->defers = d.next;
		d.fn(d.arg);
	}
}

/* Takes this goroutine's latest defer of fn off the list; *arg is its argument. */
static bool take_deferred(void (*fn)(void *arg), void **arg)
{
	for (struct defer **at = &my_g()->defers; *at; at = &(*at)->next) {
		struct defer *d = *at;

		if (d->fn == fn) {
			*at = d->next;
			*arg = d->arg;
			free(d);
			return true;
		}
	}
	return false;
}

void panic_undefer(void (*fn)(void *arg))
{
	void *arg;

	take_deferred(fn, &arg);
}

void panic_run_deferred(void (*fn)(void *arg))
{
	void *arg;

	if (take_deferred(fn, &arg))
		fn(arg);
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

/* An exception passes goro_try: that is over, and its defers run. There is no try if a
 * goexit on its way to pthread_exit has ended it. */
CXX_ROUTINE(try_passed)
{
	struct g *gp = my_g();
	struct try_frame *frame = gp->tries;

	if (CXX_PASSES && frame) {
		panic_run_defers(gp, frame->defers);
		gp->tries = frame->outer;
	}
	return CXX_GO_ON;
}

const char *goro_try(void (*fn)(void *arg), void *arg)
{
	struct g *gp = my_g();
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
		gp->tries = frame.outer;
		return NULL;
	}
	gp = my_g();
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

/* p's message is given away; p itself lies on the stack that panics. */
static _Noreturn void panic_with(struct panic *p)
{
	struct g *gp = my_g();
	struct try_frame *frame = gp->tries;

	goro_syscall_exit();	/* it may leave goro_blocking */
	p->earlier = gp->panics;
	gp->panics = p;
	panic_run_defers(gp, frame ? frame->defers : NULL);
	if (!frame)
		dump_panic(gp);
	free_panics(gp, frame->panics, p);
	if (frame->exiting) {
		message_free(p->message);
		goexit_continue(gp);
	}
	frame->message = p->message;
	_longjmp(frame->back, 1);
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
	free_panics(gp, NULL, NULL);	/* whose defers called goexit: they are over */
	if (gp->is_foreign)
		pthread_exit(NULL);
	g_end(gp);
}

_Noreturn void goro_goexit(void)
{
	struct g *gp = my_g();

	goro_syscall_exit();	/* it may leave goro_blocking */
	gp->goexiting = true;
	store_relaxed(&gp->untidy, true);
	goexit_continue(gp);
}

void panic_g_end(struct g *gp)
{
	drop_last_message(gp);
	gp->tries = NULL;
	gp->panics = NULL;
	gp->goexiting = false;
}

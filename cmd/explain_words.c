/*
 * explain_words.c - the words for the steps of a trace.
 *
 * A step is told with its cause where the trace shows one: a goroutine that starts on
 * another P than the one on which it was made ready was taken from that P's queue; one
 * that was preempted goes on on its thread; a P that its thread gives up while goroutines
 * are ready goes to another thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "explain_steps.h"
#include "screen.h"

typedef unsigned long long number;

char *step_who(const struct steps *s, uint64_t g)
{
	uint32_t name = (uint32_t)map_get(&s->name_of, g);

	return name ? format("G%llu %s", (number)g, text_of(s->names, name)) : format("G%llu", (number)g);
}

char *step_time(const struct steps *s, const struct step *step)
{
	int64_t ns = step->time - s->at[0].time;

	return ns == 0 ? format("0") : time_text((double)ns / 1e9);
}

/* The queue of a P, or the global one. */
static char *queue(uint64_t p)
{
	return p == NO_P || p == TRACE_NONE ? format("the global queue") : format("P%llu's queue", (number)p);
}

/* What one waits for, in the trace's words and in ours. */
static const char *wait_words(const char *why)
{
	static const struct { const char *why, *words; } table[] = {
		{ "chan send", "until another goroutine receives" },
		{ "chan receive", "until another goroutine sends" },
		{ "select", "until one of several channels is ready" },
		{ "sync", "for a group, a mutex or a condition" },
		{ "sleep", "until its time has come: a timer is set" },
		{ "network", "for a descriptor, at which the poller looks" },
	};

	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (strcmp(why, table[i].why) == 0)
			return table[i].words;
	return "";
}

static char *create_words(const struct step *s, const char *who, const char *by)
{
	char *to = queue(s->p);

	if (s->by)
		return format("%s starts %s: ready, in %s.", by, who, to);
	return format("A plain thread starts %s: ready, in %s.", who, to);
}

static bool is_first_start(const struct steps *s, size_t i)
{
	for (size_t k = i; k-- > 0;)
		if (s->at[k].g == s->at[i].g && s->at[k].kind == STEP_START)
			return false;
	return true;
}

static char *start_words(const struct steps *s, size_t i, const struct being *b, const char *who)
{
	const struct step *step = &s->at[i];
	number p = step->p, m = step->m;

	if (!b || b->state != G_RUNNABLE)
		return format("P%llu runs %s on thread M%llu.", p, who, m);
	if (b->is_preempted && b->m == step->m)
		return format("%s goes on, on P%llu and its own thread M%llu.", who, p, m);
	if (b->p == NO_P && b->m == step->m)
		return format("%s has a processor again, P%llu, and goes on, on its thread M%llu.", who, p, m);
	if (b->p == NO_P)
		return format("P%llu takes %s from the global queue and runs it on M%llu.", p, who, m);
	if (b->p != step->p)
		return format("P%llu has stolen %s from P%llu, and runs it on M%llu.", p, who, (number)b->p, m);
	return format(is_first_start(s, i) ? "P%llu takes %s from its queue and runs it on M%llu."
	                                   : "P%llu takes %s from its queue: it goes on, on M%llu.", p, who, m);
}

static char *block_words(const struct steps *s, const struct step *step, const char *who)
{
	const char *why = text_of(s->names, step->why), *words = wait_words(why);

	return format("%s waits (%s)%s%s. P%llu is free for others.", who, why, *words ? " " : "", words, (number)step->p);
}

static char *stop_words(const struct steps *s, const struct step *step, const struct being *b, const char *who)
{
	const char *why = text_of(s->names, step->why);

	if (strcmp(why, "preempted") == 0 && b)
		return format("%s has run for %s: it is preempted, and ready again.", who,
		              time_text((double)(step->time - b->since) / 1e9));
	if (strcmp(why, "runtime.Gosched") == 0)
		return format("%s lets others run first (goro_gosched).", who);
	return format("%s stops (%s), and is ready to go on.", who, why);
}

static char *unblock_words(const struct steps *s, const struct step *step, const struct being *b, const char *who, const char *by)
{
	char *to = queue(step->p);
	const char *why = b && b->state == G_WAITING ? text_of(s->names, b->why) : "";

	if (step->by)
		return format("%s makes %s ready, in %s.", by, who, to);
	if (strcmp(why, "network") == 0)
		return format("The poller finds data for %s: ready, in %s.", who, to);
	if (strcmp(why, "sleep") == 0)
		return format("The timer of %s goes off: ready, in %s.", who, to);
	return format("%s is made ready, in %s.", who, to);
}

static char *p_start_words(const struct steps *s, size_t i)
{
	const struct step *step = &s->at[i];
	bool looks = i + 1 >= s->n || s->at[i + 1].kind != STEP_START || s->at[i + 1].m != step->m;

	return format(looks ? "M%llu takes P%llu, which was free, and looks for work."
	                    : "M%llu takes P%llu.", (number)step->m, (number)step->p);
}

/* Ready, and bound to a thread: it was preempted, or comes back from a call. */
static const struct being *bound(const struct world *w)
{
	for (size_t i = 0; i < w->beings; i++)
		if (w->being[i].state == G_RUNNABLE && w->being[i].m != TRACE_NONE)
			return &w->being[i];
	return NULL;
}

static char *p_stop_words(const struct steps *s, const struct step *step, const struct world *w)
{
	const struct being *b = bound(w), *in_call = world_find(w, step->by);
	number p = step->p, m = step->m;

	if (in_call && in_call->state == G_CALL && !in_call->is_call)
		return format("P%llu is taken from M%llu, and free for others.", p, m);
	if (in_call && in_call->state == G_CALL)
		return format("P%llu is taken from M%llu, which is asleep in the kernel, and free for others.", p, m);
	if (b && b->m == step->m)
		return format("%s keeps its thread M%llu, which gives P%llu to another.", step_who(s, b->id), m, p);
	if (b)
		return format("M%llu gives P%llu to M%llu, the thread of %s.", m, p, (number)b->m, step_who(s, b->id));
	return format("P%llu has nothing to run: M%llu gives it up and sleeps.", p, m);
}

char *step_words(const struct steps *s, size_t i, const struct world *w)
{
	const struct step *step = &s->at[i];
	const struct being *b = world_find(w, step->g);
	char *who = step_who(s, step->g), *by = step_who(s, step->by), *words = NULL;
	number p = step->p, m = step->m;

	switch (step->kind) {
	case STEP_CREATE: words = create_words(step, who, by); break;
	case STEP_START: words = start_words(s, i, b, who); break;
	case STEP_BLOCK: words = block_words(s, step, who); break;
	case STEP_STOP: words = stop_words(s, step, b, who); break;
	case STEP_UNBLOCK: words = unblock_words(s, step, b, who, by); break;
	case STEP_END: words = format("%s ends.", who); break;
	case STEP_CALL:
		words = format(step->is_call ? "%s is in a call that blocks, on its thread M%llu."
		                             : "%s has a thread, M%llu, that gets no CPU from the kernel.", who, m);
		break;
	case STEP_CALL_END: words = format("The call of %s is over. It still has P%llu, and goes on.", who, p); break;
	case STEP_CALL_END_BLOCKED:
		words = format(b && !b->is_call ? "The thread of %s goes on. Its processor is gone: it waits for one."
		                                : "The call of %s is over. Its processor is gone: it waits for one.", who);
		break;
	case STEP_P_START: words = p_start_words(s, i); break;
	case STEP_P_STOP: words = p_stop_words(s, step, w); break;
	case STEP_P_STEAL:
		words = format("P%llu is taken from M%llu, whose goroutine is in a call.", p, m);
		break;
	case STEP_SEEN: words = format("%s", ""); break;
	}
	free(who);
	free(by);
	return words;
}

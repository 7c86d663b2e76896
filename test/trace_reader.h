/*
 * trace_reader.h - reads an execution trace as Go's tools do, and is as strict: see
 * /usr/share/go-*\/src/internal/trace, order.go above all. A trace that trace_read
 * takes is one that `go tool trace` opens.
 *
 * Written from the format, not from what the runtime writes: it shares no code with it.
 */
#ifndef GORO_TEST_TRACE_READER_H
#define GORO_TEST_TRACE_READER_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* X(number, name, arguments after the time) */
#define TRACE_EVENT_LIST(X)                                                             \
	X(9, ProcsChange, 2) X(10, ProcStart, 2) X(11, ProcStop, 0) X(12, ProcSteal, 3)  \
	X(13, ProcStatus, 2) X(14, GoCreate, 3) X(15, GoCreateSyscall, 1)                \
	X(16, GoStart, 2) X(17, GoDestroy, 0) X(18, GoDestroySyscall, 0) X(19, GoStop, 2) \
	X(20, GoBlock, 2) X(21, GoUnblock, 3) X(22, GoSyscallBegin, 2)                   \
	X(23, GoSyscallEnd, 0) X(24, GoSyscallEndBlocked, 0) X(25, GoStatus, 3)          \
	X(26, STWBegin, 2) X(27, STWEnd, 0) X(39, GoLabel, 1) X(40, UserTaskBegin, 4)    \
	X(41, UserTaskEnd, 2) X(42, UserRegionBegin, 3) X(43, UserRegionEnd, 3)          \
	X(44, UserLog, 4) X(48, GoStatusStack, 4)
enum trace_event_kind {
#define X(number, name, n) TR_##name = number,
	TRACE_EVENT_LIST(X)
#undef X
	TR_KINDS = 64
};

enum { TR_G_NONE, TR_G_RUNNABLE, TR_G_RUNNING, TR_G_SYSCALL, TR_G_WAITING };
enum { TR_P_NONE, TR_P_RUNNING, TR_P_IDLE, TR_P_SYSCALL, TR_P_ABANDONED };
#define TR_NO UINT64_MAX

#define TR_REGIONS 16
struct tr_g {
	struct tr_g *next;	/* in its bucket */
	uint64_t id;
	int status;
	uint32_t gen;
	uint64_t seq;
	bool stw;
	unsigned regions;
	/* the outermost so many */
	struct { uint64_t task; char name[64]; } *region;
};

struct tr_p {
	int status;		/* TR_P_NONE: not heard of */
	uint32_t gen;
	uint64_t seq;
};

struct tr_m {
	bool known;
	uint64_t g, p;		/* or TR_NO */
	/* The stream of the generation that is read. */
	size_t n, at;		/* batches */
	struct tr_batch {
		const uint8_t *data, *end;
		uint64_t time;
	} *batch;
	uint64_t time;
	bool has;		/* an event: */
	int kind;
	uint64_t arg[4];
};

#define TR_PS 4200
#define TR_MS 12000
#define TR_BUCKETS (1 << 16)

struct trace_reading {
	/* What was found. */
	size_t count[TR_KINDS];
	unsigned generations;
	size_t batches;
	char reasons[4096];	/* all reasons of GoBlock, GoStop and STWBegin: "|a|b|" */
	char functions[1 << 16];	/* all functions of stacks: "|f|g|" */
	char words[1 << 14];	/* labels, tasks, regions, logs: "|x|y|" */
	size_t live, waiting, syscall;	/* goroutines at the end */
	/* one after the other by the same: at last, and at most */
	size_t woke, woke_most;
	char error[512];	/* "": none */

	/* The reader's. */
	uint32_t gen, first_gen;
	uint64_t waker;		/* of the last that was woken */
	struct tr_g *g[TR_BUCKETS];
	struct tr_p p[TR_PS];
	struct tr_m *m;
	uint64_t m_n;
	const char **string;
	size_t string_n;
	bool *stack;
	size_t stack_n;
	bool frequency;
};

static bool tr_error(struct trace_reading *t, const char *fmt, ...)
{
	va_list ap;

	if (t->error[0])
		return false;
	va_start(ap, fmt);
	vsnprintf(t->error, sizeof t->error, fmt, ap);
	va_end(ap);
	return false;
}

static const char *tr_name(int kind)
{
	switch (kind) {
#define X(number, name, n) case number: return #name;
	TRACE_EVENT_LIST(X)
#undef X
	}
	return "?";
}

static int tr_args(int kind)
{
	switch (kind) {
#define X(number, name, n) case number: return n;
	TRACE_EVENT_LIST(X)
#undef X
	}
	return -1;
}

/* Adds s to a list "|a|b|" of what fits. */
static void tr_note(char *list, size_t size, const char *s)
{
	char item[600];
	size_t n = strlen(list);

	if (n == 0)
		strcpy(list, "|"), n = 1;
	snprintf(item, sizeof item, "|%s|", s);
	if (!strstr(list, item) && n + strlen(item) < size)
		strcpy(list + n - 1, item);
}

static bool trace_has(const char *list, const char *s)
{
	char item[600];

	snprintf(item, sizeof item, "|%s|", s);
	return strstr(list, item) != NULL;
}

/* ---------------------------------------------------------------- bytes */

static bool tr_number(const uint8_t **p, const uint8_t *end, uint64_t *v)
{
	*v = 0;
	for (unsigned shift = 0; *p < end && shift < 64; shift += 7) {
		uint8_t b = *(*p)++;

		*v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80))
			return true;
	}
	return false;
}

static bool tr_strings(struct trace_reading *t, const uint8_t *p, const uint8_t *end)
{
	while (p < end) {
		uint64_t id, n;
		char *s;

		if (*p++ != 5 || !tr_number(&p, end, &id) || !tr_number(&p, end, &n) ||
		    n > 1024 || (size_t)(end - p) < n)
			return tr_error(t, "bad string");
		if (id >= t->string_n) {
			size_t to = id * 2 + 64;

			t->string = realloc(t->string, to * sizeof *t->string);
			memset(t->string + t->string_n, 0, (to - t->string_n) * sizeof *t->string);
			t->string_n = to;
		}
		if (t->string[id])
			return tr_error(t, "string %llu twice", (unsigned long long)id);
		s = malloc(n + 1);
		memcpy(s, p, n);
		s[n] = '\0';
		t->string[id] = s;
		p += n;
	}
	return true;
}

static const char *tr_string(struct trace_reading *t, uint64_t id)
{
	if (id == 0)
		return "";
	if (id < t->string_n && t->string[id])
		return t->string[id];
	tr_error(t, "no string %llu", (unsigned long long)id);
	return "";
}

/* Twice: before the strings are known, to check the form; and after, the names. */
static bool tr_stacks(struct trace_reading *t, const uint8_t *p, const uint8_t *end, bool names)
{
	while (p < end) {
		uint64_t id, n, pc, fn, file, line;

		if (*p++ != 3 || !tr_number(&p, end, &id) || !tr_number(&p, end, &n) || n > 128 || id == 0)
			return tr_error(t, "bad stack");
		if (id >= t->stack_n) {
			size_t to = id * 2 + 64;

			t->stack = realloc(t->stack, to * sizeof *t->stack);
			memset(t->stack + t->stack_n, 0, (to - t->stack_n) * sizeof *t->stack);
			t->stack_n = to;
		}
		if (!names && t->stack[id])
			return tr_error(t, "stack %llu twice", (unsigned long long)id);
		t->stack[id] = true;
		for (; n > 0; n--) {
			if (!tr_number(&p, end, &pc) || !tr_number(&p, end, &fn) ||
			    !tr_number(&p, end, &file) || !tr_number(&p, end, &line))
				return tr_error(t, "bad frame");
			if (names) {
				tr_note(t->functions, sizeof t->functions, tr_string(t, fn));
				tr_string(t, file);
			}
		}
	}
	return !t->error[0];
}

static void tr_check_stack(struct trace_reading *t, uint64_t id)
{
	if (id != 0 && (id >= t->stack_n || !t->stack[id]))
		tr_error(t, "no stack %llu", (unsigned long long)id);
}

/* ---------------------------------------------------------------- states */

static struct tr_g **tr_g_at(struct trace_reading *t, uint64_t id)
{
	struct tr_g **at = &t->g[id % TR_BUCKETS];

	while (*at && (*at)->id != id)
		at = &(*at)->next;
	return at;
}

static struct tr_g *tr_g(struct trace_reading *t, uint64_t id)
{
	return *tr_g_at(t, id);
}

static struct tr_g *tr_g_new(struct trace_reading *t, uint64_t id)
{
	struct tr_g **at = tr_g_at(t, id);

	*at = calloc(1, sizeof **at);
	(*at)->id = id;
	return *at;
}

static void tr_g_end(struct trace_reading *t, struct tr_g *g)
{
	*tr_g_at(t, g->id) = g->next;
	free(g->region);
	free(g);
}

static bool tr_follows(const struct trace_reading *t, uint32_t gen, uint64_t last, uint64_t seq)
{
	return gen == t->gen && seq == last + 1;
}

enum tr_result { TR_NOT_YET, TR_DONE, TR_BAD };

/* The event's context must be complete: a thread with a P and a goroutine. */
static bool tr_user(struct trace_reading *t, const struct tr_m *m)
{
	if (m->p == TR_NO || m->g == TR_NO)
		return tr_error(t, "%s without %s", tr_name(m->kind), m->p == TR_NO ? "a P" : "a goroutine");
	return true;
}

static struct tr_g *tr_running(struct trace_reading *t, const struct tr_m *m, int status)
{
	struct tr_g *g;

	if (!tr_user(t, m))
		return NULL;
	g = tr_g(t, m->g);
	if (!g || g->status != status) {
		tr_error(t, "%s of goroutine %llu in state %d", tr_name(m->kind),
		         (unsigned long long)m->g, g ? g->status : 0);
		return NULL;
	}
	return g;
}

static enum tr_result tr_proc(struct trace_reading *t, struct tr_m *m, uint64_t self)
{
	uint64_t id = m->arg[0];
	struct tr_p *p;

	if (m->kind == TR_ProcStop) {
		p = m->p == TR_NO ? NULL : &t->p[m->p];
		if (!p || (p->status != TR_P_RUNNING && p->status != TR_P_SYSCALL))
			return tr_error(t, "ProcStop of no running P"), TR_BAD;
		p->status = TR_P_IDLE;
		m->p = TR_NO;
		return TR_DONE;
	}
	if (id >= TR_PS)
		return tr_error(t, "P %llu", (unsigned long long)id), TR_BAD;
	p = &t->p[id];
	switch (m->kind) {
	case TR_ProcStatus:
		if (p->status != TR_P_NONE && p->status != (int)m->arg[1])
			return tr_error(t, "P %llu in state %d is said to be in %d", (unsigned long long)id,
			                p->status, (int)m->arg[1]), TR_BAD;
		p->status = (int)m->arg[1];
		p->gen = t->gen;
		p->seq = 0;
		if (p->status == TR_P_RUNNING || p->status == TR_P_SYSCALL)
			m->p = id;
		return TR_DONE;
	case TR_ProcStart:
		if (p->status != TR_P_IDLE || !tr_follows(t, p->gen, p->seq, m->arg[1]) || m->p != TR_NO)
			return TR_NOT_YET;
		p->status = TR_P_RUNNING;
		p->seq = m->arg[1];
		m->p = id;
		return TR_DONE;
	default:
		if ((p->status != TR_P_SYSCALL) || !tr_follows(t, p->gen, p->seq, m->arg[1]))
			return TR_NOT_YET;
		p->status = TR_P_IDLE;
		p->seq = m->arg[1];
		if (m->arg[2] >= t->m_n || !t->m[m->arg[2]].known || t->m[m->arg[2]].p != id)
			return tr_error(t, "P %llu stolen from thread %llu, which has not got it",
			                (unsigned long long)id, (unsigned long long)m->arg[2]), TR_BAD;
		t->m[m->arg[2]].p = TR_NO;
		(void)self;
		return TR_DONE;
	}
}

static enum tr_result tr_status(struct trace_reading *t, struct tr_m *m, uint64_t self)
{
	uint64_t id = m->arg[0], on = m->arg[1];
	int status = (int)m->arg[2];
	struct tr_g *g = tr_g(t, id);

	if (g && g->status != status)
		return tr_error(t, "goroutine %llu in state %d is said to be in %d",
		                (unsigned long long)id, g->status, status), TR_BAD;
	if (!g && t->gen != t->first_gen)
		return tr_error(t, "goroutine %llu was never created", (unsigned long long)id), TR_BAD;
	if (!g)
		g = tr_g_new(t, id);
	g->status = status;
	g->gen = t->gen;
	g->seq = 0;
	if (status == TR_G_RUNNING)
		m->g = id;
	if (status != TR_G_SYSCALL)
		return TR_DONE;
	if (on == TR_NO || on >= TR_MS)
		return tr_error(t, "a call on no thread"), TR_BAD;
	if (on == self) {
		if (t->gen != t->first_gen && m->g != id)
			return tr_error(t, "a call of goroutine %llu on another's thread",
			                (unsigned long long)id), TR_BAD;
		m->g = id;
		return TR_DONE;
	}
	if (t->m[on].known && t->m[on].g != id)
		return tr_error(t, "a call of goroutine %llu on thread %llu, which has %lld",
		                (unsigned long long)id, (unsigned long long)on,
		                (long long)t->m[on].g), TR_BAD;
	if (!t->m[on].known) {
		t->m[on].known = true;
		t->m[on].g = id;
		t->m[on].p = TR_NO;
	}
	return TR_DONE;
}

static enum tr_result tr_create(struct trace_reading *t, struct tr_m *m)
{
	struct tr_g *g;

	if (m->kind == TR_GoCreate && m->p == TR_NO)
		return tr_error(t, "GoCreate without a P"), TR_BAD;
	if (m->kind == TR_GoCreate && m->g != TR_NO && !tr_running(t, m, TR_G_RUNNING))
		return TR_BAD;
	if (m->kind == TR_GoCreateSyscall && m->g != TR_NO)
		return tr_error(t, "GoCreateSyscall in a goroutine"), TR_BAD;
	if (tr_g(t, m->arg[0]))
		return tr_error(t, "goroutine %llu created twice", (unsigned long long)m->arg[0]), TR_BAD;
	g = tr_g_new(t, m->arg[0]);
	g->status = m->kind == TR_GoCreate ? TR_G_RUNNABLE : TR_G_SYSCALL;
	g->gen = t->gen;
	if (m->kind == TR_GoCreateSyscall)
		m->g = m->arg[0];
	return TR_DONE;
}

/* Becoming runnable and running. */
static enum tr_result tr_ready(struct trace_reading *t, struct tr_m *m)
{
	bool starts = m->kind == TR_GoStart;
	struct tr_g *g = tr_g(t, m->arg[0]);

	if (!g || g->status != (starts ? TR_G_RUNNABLE : TR_G_WAITING) ||
	    !tr_follows(t, g->gen, g->seq, m->arg[1]))
		return TR_NOT_YET;
	if (starts && (m->p == TR_NO || m->g != TR_NO))
		return tr_error(t, "GoStart without a P, or in a goroutine"), TR_BAD;
	g->status = starts ? TR_G_RUNNING : TR_G_RUNNABLE;
	g->seq = m->arg[1];
	if (starts)
		m->g = m->arg[0];
	return TR_DONE;
}

static enum tr_result tr_stop(struct trace_reading *t, struct tr_m *m)
{
	struct tr_g *g = tr_running(t, m, TR_G_RUNNING);

	if (!g)
		return TR_BAD;
	m->g = TR_NO;
	if (m->kind == TR_GoDestroy)
		tr_g_end(t, g);
	else
		g->status = m->kind == TR_GoStop ? TR_G_RUNNABLE : TR_G_WAITING;
	return TR_DONE;
}

static enum tr_result tr_syscall(struct trace_reading *t, struct tr_m *m)
{
	struct tr_g *g;
	struct tr_p *p = m->p == TR_NO ? NULL : &t->p[m->p];

	switch (m->kind) {
	case TR_GoSyscallBegin:
		g = tr_running(t, m, TR_G_RUNNING);
		if (!g)
			return TR_BAD;
		if (!tr_follows(t, p->gen, p->seq, m->arg[0]))
			return tr_error(t, "GoSyscallBegin is number %llu after %llu",
			                (unsigned long long)m->arg[0], (unsigned long long)p->seq), TR_BAD;
		g->status = TR_G_SYSCALL;
		p->status = TR_P_SYSCALL;
		p->seq = m->arg[0];
		return TR_DONE;
	case TR_GoSyscallEnd:
		g = tr_running(t, m, TR_G_SYSCALL);
		if (!g || p->status != TR_P_SYSCALL)
			return tr_error(t, "GoSyscallEnd with a P in state %d", p ? p->status : 0), TR_BAD;
		g->status = TR_G_RUNNING;
		p->status = TR_P_RUNNING;
		return TR_DONE;
	default:
		if (p && p->status == TR_P_SYSCALL && m->kind == TR_GoSyscallEndBlocked)
			return TR_NOT_YET;
		g = m->g == TR_NO ? NULL : tr_g(t, m->g);
		if (!g || g->status != TR_G_SYSCALL)
			return tr_error(t, "%s of no call", tr_name(m->kind)), TR_BAD;
		m->g = TR_NO;
		if (m->kind == TR_GoSyscallEndBlocked)
			g->status = TR_G_RUNNABLE;
		else
			tr_g_end(t, g);
		return TR_DONE;
	}
}

static enum tr_result tr_region(struct trace_reading *t, struct tr_m *m)
{
	struct tr_g *g = tr_running(t, m, TR_G_RUNNING);
	const char *name = tr_string(t, m->arg[1]);

	if (!g)
		return TR_BAD;
	if (m->kind == TR_UserRegionBegin) {
		if (!g->region)
			g->region = calloc(TR_REGIONS, sizeof *g->region);
		if (g->regions < TR_REGIONS) {
			g->region[g->regions].task = m->arg[0];
			snprintf(g->region[g->regions].name, 64, "%s", name);
		}
		g->regions++;
		return TR_DONE;
	}
	if (g->regions == 0)
		return TR_DONE;
	g->regions--;
	if (g->regions < TR_REGIONS && (g->region[g->regions].task != m->arg[0] ||
	                        strncmp(g->region[g->regions].name, name, 63) != 0))
		return tr_error(t, "the end of region %s in %s", name, g->region[g->regions].name), TR_BAD;
	return TR_DONE;
}

static enum tr_result tr_stw(struct trace_reading *t, struct tr_m *m)
{
	struct tr_g *g = tr_running(t, m, TR_G_RUNNING);

	if (!g || g->stw == (m->kind == TR_STWBegin))
		return tr_error(t, "the world is stopped or started twice"), TR_BAD;
	g->stw = !g->stw;
	return TR_DONE;
}

static enum tr_result tr_advance(struct trace_reading *t, uint64_t self)
{
	struct tr_m *m = &t->m[self];

	if (!m->known) {
		m->known = true;
		m->g = m->p = TR_NO;
	}
	switch (m->kind) {
	case TR_ProcStart: case TR_ProcStop: case TR_ProcSteal: case TR_ProcStatus:
		return tr_proc(t, m, self);
	case TR_GoStatus: case TR_GoStatusStack:
		return tr_status(t, m, self);
	case TR_GoCreate: case TR_GoCreateSyscall:
		return tr_create(t, m);
	case TR_GoStart: case TR_GoUnblock:
		return tr_ready(t, m);
	case TR_GoStop: case TR_GoBlock: case TR_GoDestroy:
		return tr_stop(t, m);
	case TR_GoSyscallBegin: case TR_GoSyscallEnd: case TR_GoSyscallEndBlocked:
	case TR_GoDestroySyscall:
		return tr_syscall(t, m);
	case TR_UserRegionBegin: case TR_UserRegionEnd:
		return tr_region(t, m);
	case TR_STWBegin: case TR_STWEnd:
		return tr_stw(t, m);
	default:
		return tr_user(t, m) ? TR_DONE : TR_BAD;
	}
}

/* What an event says beyond states. */
static void tr_look(struct trace_reading *t, const struct tr_m *m)
{
	static const struct { int kind, arg; bool reason; } strings[] = {
		{ TR_GoBlock, 0, true }, { TR_GoStop, 0, true }, { TR_STWBegin, 0, true },
		{ TR_GoLabel, 0, false }, { TR_UserTaskBegin, 2, false },
		{ TR_UserRegionBegin, 1, false }, { TR_UserLog, 1, false }, { TR_UserLog, 2, false },
	};
	static const struct { int kind, arg; } stacks[] = {
		{ TR_ProcsChange, 1 }, { TR_GoCreate, 1 }, { TR_GoCreate, 2 }, { TR_GoStop, 1 },
		{ TR_GoBlock, 1 }, { TR_GoUnblock, 2 }, { TR_GoSyscallBegin, 1 }, { TR_STWBegin, 1 },
		{ TR_UserTaskBegin, 3 }, { TR_UserTaskEnd, 1 }, { TR_UserRegionBegin, 2 },
		{ TR_UserRegionEnd, 2 }, { TR_UserLog, 3 }, { TR_GoStatusStack, 3 },
	};

	t->count[m->kind]++;
	if (m->kind == TR_GoUnblock) {
		t->woke = m->g == t->waker ? t->woke + 1 : 1;
		t->waker = m->g;
		if (t->woke > t->woke_most)
			t->woke_most = t->woke;
	}
	for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++)
		if (strings[i].kind == m->kind)
			tr_note(strings[i].reason ? t->reasons : t->words,
			        strings[i].reason ? sizeof t->reasons : sizeof t->words,
			        tr_string(t, m->arg[strings[i].arg]));
	for (size_t i = 0; i < sizeof stacks / sizeof stacks[0]; i++)
		if (stacks[i].kind == m->kind)
			tr_check_stack(t, m->arg[stacks[i].arg]);
}

/* ------------------------------------------------------------ generations */

/* The next event of a thread's. */
static bool tr_next(struct trace_reading *t, struct tr_m *m)
{
	struct tr_batch *b;
	uint64_t dt;

	m->has = false;
	while (m->at < m->n && m->batch[m->at].data == m->batch[m->at].end)
		if (++m->at < m->n)
			m->time = m->batch[m->at].time;
	if (m->at == m->n)
		return true;
	b = &m->batch[m->at];
	m->kind = *b->data++;
	if (tr_args(m->kind) < 0)
		return tr_error(t, "event %d", m->kind);
	if (!tr_number(&b->data, b->end, &dt))
		return tr_error(t, "no time");
	m->time += dt;
	for (int i = 0; i < tr_args(m->kind); i++)
		if (!tr_number(&b->data, b->end, &m->arg[i]))
			return tr_error(t, "%s is cut off", tr_name(m->kind));
	m->has = true;
	return true;
}

/* The earliest event that can come next; those of other threads may have to wait. */
static bool tr_order(struct trace_reading *t)
{
	for (;;) {
		uint64_t tried_time = 0, tried = TR_NO;
		bool any = false;

		for (;;) {
			uint64_t best = TR_NO;
			enum tr_result r;

			for (uint64_t i = 0; i < t->m_n; i++) {
				const struct tr_m *m = &t->m[i];

				if (!m->has || (tried != TR_NO && (m->time < tried_time ||
				    (m->time == tried_time && i <= tried))))
					continue;
				if (best == TR_NO || m->time < t->m[best].time)
					best = i;
			}
			if (best == TR_NO)
				break;
			any = true;
			r = tr_advance(t, best);
			if (r == TR_BAD)
				return tr_error(t, "?");
			if (r == TR_DONE) {
				tr_look(t, &t->m[best]);
				if (t->error[0] || !tr_next(t, &t->m[best]))
					return false;
				tried = TR_NO;
				any = false;
				continue;
			}
			tried = best;
			tried_time = t->m[best].time;
		}
		if (!any)
			return true;
		return tr_error(t, "generation %u: nothing can come next: thread %llu has %s of %llu",
		                t->gen, (unsigned long long)tried, tr_name(t->m[tried].kind),
		                (unsigned long long)t->m[tried].arg[0]);
	}
}

/* One generation; *p is moved behind it. False: an error, or the end of the file. */
static bool tr_generation(struct trace_reading *t, const uint8_t **p, const uint8_t *end)
{
	const uint8_t *stacks[4096], *stacks_end[4096];
	size_t stacks_n = 0;
	bool ok = true, begun = false;

	t->frequency = false;
	for (size_t i = 0; i < t->string_n; i++)
		free((void *)(uintptr_t)t->string[i]);
	if (t->string_n)
		memset(t->string, 0, t->string_n * sizeof *t->string);
	if (t->stack_n)
		memset(t->stack, 0, t->stack_n * sizeof *t->stack);
	for (uint64_t i = 0; i < t->m_n; i++) {
		free(t->m[i].batch);
		t->m[i].batch = NULL;
		t->m[i].n = t->m[i].at = 0;
	}
	while (ok && *p < end) {
		const uint8_t *q = *p;
		uint64_t gen, m, time, n;

		if (*q++ != 1 || !tr_number(&q, end, &gen) || !tr_number(&q, end, &m) ||
		    !tr_number(&q, end, &time) || !tr_number(&q, end, &n) || n > 64 << 10 ||
		    (size_t)(end - q) < n)
			return tr_error(t, "bad batch");
		if (!begun) {
			if (t->gen != 0 && gen != t->gen + 1)
				return tr_error(t, "generation %llu after %u", (unsigned long long)gen, t->gen);
			t->gen = (uint32_t)gen;
			if (t->first_gen == 0)
				t->first_gen = t->gen;
			begun = true;
		} else if (gen != t->gen) {
			break;
		}
		*p = q + n;
		t->batches++;
		if (n == 0)
			continue;
		if (*q == 4) {
			ok = tr_strings(t, q + 1, q + n);
		} else if (*q == 2) {
			if (stacks_n == 4096)
				return tr_error(t, "too many stacks for this reader");
			stacks[stacks_n] = q + 1;
			stacks_end[stacks_n++] = q + n;
			ok = tr_stacks(t, q + 1, q + n, false);
		} else if (*q == 8) {
			if (t->frequency)
				return tr_error(t, "two frequencies");
			t->frequency = true;
		} else if (m < TR_MS) {
			struct tr_m *s = &t->m[m];

			if (m >= t->m_n)
				t->m_n = m + 1;
			s->batch = realloc(s->batch, (s->n + 1) * sizeof *s->batch);
			s->batch[s->n++] = (struct tr_batch){ q, q + n, time };
		} else {
			return tr_error(t, "thread %llu", (unsigned long long)m);
		}
	}
	if (!ok || !begun)
		return false;
	if (!t->frequency)
		return tr_error(t, "generation %u without a frequency", t->gen);
	for (size_t i = 0; i < stacks_n; i++)
		if (!tr_stacks(t, stacks[i], stacks_end[i], true))
			return false;
	t->generations++;
	for (uint64_t i = 0; i < t->m_n; i++) {
		t->m[i].time = t->m[i].n ? t->m[i].batch[0].time : 0;
		if (!tr_next(t, &t->m[i]))
			return false;
	}
	return tr_order(t);
}

/* NULL never. Free with trace_reading_free. */
static struct trace_reading *trace_read(const void *data, size_t n)
{
	struct trace_reading *t = calloc(1, sizeof *t);
	const uint8_t *p = data, *end = p + n;

	t->m = calloc(TR_MS, sizeof *t->m);
	if (n < 16 || memcmp(p, "go 1.23 trace\0\0\0", 16) != 0)
		tr_error(t, "no header");
	for (p += 16; !t->error[0] && p < end;)
		if (!tr_generation(t, &p, end))
			break;
	for (size_t i = 0; i < TR_BUCKETS; i++)
		for (struct tr_g *g = t->g[i]; g; g = g->next) {
			t->live++;
			t->waiting += g->status == TR_G_WAITING;
			t->syscall += g->status == TR_G_SYSCALL;
		}
	return t;
}

static void trace_reading_free(struct trace_reading *t)
{
	for (size_t i = 0; i < t->string_n; i++)
		free((void *)(uintptr_t)t->string[i]);
	for (uint64_t i = 0; i < TR_MS; i++)
		free(t->m[i].batch);
	for (size_t i = 0; i < TR_BUCKETS; i++)
		while (t->g[i])
			tr_g_end(t, t->g[i]);
	free(t->string);
	free(t->stack);
	free(t->m);
	free(t);
}

#endif

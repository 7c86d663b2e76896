/*
 * dump.c - goroutines printed in the layout of Go's own dumps:
 *
 *	goroutine 18 [chan receive, 5 minutes, locked to thread]:
 *	worker(...)
 *		/home/me/prog.c:12 +0x1d
 *	created by start in goroutine 1
 *		/home/me/prog.c:31 +0x4f
 *
 * Frames of the runtime itself are left out: see frame.h.
 *
 * goro_dump stops the world, notes every goroutine's frames (addresses only, in mapped
 * memory), lets the world go on, and then prints. A fatal end cannot wait for other
 * threads: dump_all_unstopped prints what it finds.
 */
#include "observe/dump.h"

#include <goro.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/hook.h"
#include "observe/frame.h"
#include "platform/os.h"
#include "goroutine/panic.h"
#include "sched/init.h"
#include "sched/runtime.h"
#include "stack/stack.h"
#include "unwind/symbol.h"

enum dump_level dump_level = DUMP_SINGLE;

static void dump_init(void)
{
	const char *s = environment_get("GORO_TRACEBACK");

	if (!s)
		return;
	if (!strcmp(s, "none") || !strcmp(s, "0"))
		dump_level = DUMP_NONE;
	else if (!strcmp(s, "all") || !strcmp(s, "1") || !strcmp(s, "system") || !strcmp(s, "crash"))
		dump_level = DUMP_ALL;
	fatal_leaves_core = !strcmp(s, "crash");
}

HOOK(at_start, START_STATE, dump_init);

/* ------------------------------------------------------------------ frames */

static void print_place(struct printer *pr, const struct symbol *sym, uintptr_t pc)
{
	if (sym->file[0])
		print_format(pr, "\n\t%s:%d +%#lx\n", sym->file, sym->line, sym->offset);
	else
		print_format(pr, "\n\t%s +%#lx pc=%#lx\n", sym->module[0] ? sym->module : "?",
		             sym->offset, pc);
}

static const char *function_of(const struct symbol *sym)
{
	return sym->function[0] ? sym->function : "?";
}

/* Of a call, prints the offset that it returns to. */
static void print_frame(struct printer *pr, uintptr_t address, bool exact)
{
	struct symbol sym = { .function = "" };

	symbol_find(address, &sym);
	print_format(pr, "%s(...)", function_of(&sym));
	sym.offset += !exact;
	print_place(pr, &sym, address + !exact);
}

/* ------------------------------------------------------------- a goroutine */

/* What a dump has of a goroutine besides its frames. */
struct head {
	uint64_t id, parent_id;
	uintptr_t created_at;
	uint32_t status;	/* enum g_status */
	uint8_t wait_reason;
	bool is_main;
	bool locked;		/* by the program; preempt.c may set locked_m, too */
	int64_t wait_since;
	char name[G_NAME_BYTES];
};

/* Even with the world stopped, a goroutine that runs on without its P may change. Each
 * field is right by itself, and the name is terminated. */
static TOOL_RACY void head_of(struct head *h, const struct g *gp)
{
	h->id = peek(&gp->id);
	h->parent_id = peek(&gp->parent_id);
	h->created_at = (uintptr_t)peek(&gp->created_at);
	h->status = peek(&gp->status);
	h->wait_reason = peek(&gp->wait_reason);
	h->is_main = peek(&gp->is_main);
	h->locked = peek(&gp->lock_depth) != 0;
	h->wait_since = peek(&gp->wait_since);
	for (size_t i = 0; i < G_NAME_BYTES; i++)
		h->name[i] = peek(&gp->name[i]);
	h->name[G_NAME_BYTES - 1] = '\0';
}

static const char *state_text(const struct head *h)
{
	static const char *const name[] = {
#define X(id, text) text,
		G_STATUS_LIST(X)
#undef X
	};

	if (h->status == G_WAITING && h->wait_reason)
		return wait_reason_text(h->wait_reason);
	return h->status < G_STATUS_COUNT ? name[h->status] : "unknown state";
}

static int64_t minutes_waited(const struct head *h)
{
	if (h->status != G_WAITING || !h->wait_since)
		return 0;
	return (os_now() - h->wait_since) / INT64_C(60000000000);
}

static void print_header(struct printer *pr, const struct head *h)
{
	int64_t minutes = minutes_waited(h);

	print_format(pr, "goroutine %ld [%s", (long)h->id, state_text(h));
	if (minutes >= 1)
		print_format(pr, ", %ld minutes", minutes);
	if (h->locked)
		print_str(pr, ", locked to thread");
	if (h->name[0])
		print_format(pr, ", \"%s\"", h->name);
	print_str(pr, "]:\n");
}

static void print_created_by(struct printer *pr, const struct head *h)
{
	struct symbol sym = { .function = "" };

	if (!h->created_at || h->is_main)
		return;
	symbol_find(h->created_at - 1, &sym);
	print_format(pr, "created by %s", function_of(&sym));
	if (h->parent_id)
		print_format(pr, " in goroutine %ld", (long)h->parent_id);
	sym.offset++;
	print_place(pr, &sym, h->created_at);
}

static void print_elided(struct printer *pr, const struct backtrace *bt)
{
	if (bt->n == BACKTRACE_MAX)
		print_str(pr, "...additional frames elided...\n");
}

void dump_frames(struct printer *pr, const struct backtrace *bt)
{
	for (size_t i = 0; i < bt->n; i++)
		print_frame(pr, bt->pc[i] - (i > 0), i == 0);
	print_elided(pr, bt);
}

/* The innermost address is exact only if no frame inside it was left out. */
static void print_program_frames(struct printer *pr, const struct backtrace *bt)
{
	uintptr_t address[BACKTRACE_MAX];
	size_t n = frame_program(bt->pc, bt->n, bt->from, frame_of_address, NULL, address);

	for (size_t i = 0; i < n; i++)
		print_frame(pr, address[i], i == 0 && address[0] == bt->pc[0]);
	print_elided(pr, bt);
}

static void print_goroutine(struct printer *pr, const struct head *h, const struct backtrace *bt)
{
	print_header(pr, h);
	if (bt->n == 0)
		print_str(pr, "\tgoroutine running on other thread; stack unavailable\n");
	print_program_frames(pr, bt);
	print_created_by(pr, h);
}

void dump_goroutine(struct printer *pr, const struct g *gp, const struct backtrace *bt)
{
	struct head h;

	head_of(&h, gp);
	print_goroutine(pr, &h, bt);
}

/* ----------------------------------------------------------- without a stop */

/* A stop of the world does not stop plain threads: one may be starting gp. */
static bool is_shown(const void *self, const struct g *gp)
{
	/* acquire: pairs with store_release in g_launch */
	return gp != self && load_acquire(&gp->status) != G_DEAD;
}

struct dump_each {
	struct printer *pr;
	const struct g *self;
};

static void dump_one(struct g *gp, void *arg)
{
	struct dump_each *d = arg;
	struct backtrace bt;

	if (!is_shown(d->self, gp))
		return;
	backtrace_any(&bt, gp);
	print_str(d->pr, "\n");
	dump_goroutine(d->pr, gp, &bt);
	print_flush(d->pr);
}

void dump_all_unstopped(struct printer *pr, const struct g *self, const struct backtrace *bt)
{
	struct dump_each d = { .pr = pr, .self = self };

	if (self && bt) {
		print_str(pr, "\n");
		dump_goroutine(pr, self, bt);
	}
	stack_each(dump_one, &d);
	print_flush(pr);
}

/* Drops the frames inside the call that returns to pc. */
static void begin_at(struct backtrace *bt, uintptr_t pc)
{
	size_t i = 0;

	while (i < bt->n && bt->pc[i] != pc)
		i++;
	if (i == bt->n)
		return;
	bt->n -= i;
	memmove(bt->pc, bt->pc + i, bt->n * sizeof *bt->pc);
}

static void dump_fatal(enum culprit who, uintptr_t pc)
{
	struct printer pr = print_to_fd(STDERR_FILENO);
	struct m *mp = m_self();
	const struct g *gp = mp && (who == CULPRIT_GOROUTINE || who == CULPRIT_PANIC) ? mp->curg : NULL;
	struct backtrace bt;

	if (dump_level == DUMP_NONE)
		return;
	backtrace_here(&bt);
	if (pc) {
		bt.from = FRAMES_ALL;
		begin_at(&bt, pc);
	}
	if (who == CULPRIT_RUNTIME) {
		print_str(&pr, "\nruntime stack:\n");
		dump_frames(&pr, &bt);
	}
	if (who != CULPRIT_PANIC || dump_level == DUMP_ALL) {
		dump_all_unstopped(&pr, gp, &bt);
	} else {
		print_str(&pr, "\n");
		dump_goroutine(&pr, gp, &bt);
	}
	print_flush(&pr);
}

FILL(fatal_dump, dump_fatal);

/* ---------------------------------------------------------------- goro_dump */

/* One record after the other: what a dump has of each goroutine. */
struct noted {
	struct head head;
	size_t n;
	enum frames from;
	uintptr_t pc[];
};

static size_t noted_bytes(size_t n)
{
	return sizeof(struct noted) + n * sizeof(uintptr_t);
}

static void note_trace(struct dump_list *l, const struct g *gp, const struct backtrace *bt)
{
	struct noted *r = chunks_take(&l->noted, noted_bytes(bt->n), SIZE_MAX);

	if (!r)
		return;
	head_of(&r->head, gp);
	r->n = bt->n;
	r->from = bt->from;
	memcpy(r->pc, bt->pc, bt->n * sizeof *r->pc);
}

struct note_those {
	struct dump_list *list;
	bool (*is_one)(const void *arg, const struct g *gp);
	const void *arg;
};

static void note_one(struct g *gp, void *arg)
{
	struct note_those *t = arg;
	struct backtrace bt;

	if (!t->is_one(t->arg, gp))
		return;
	backtrace_any(&bt, gp);
	note_trace(t->list, gp, &bt);
}

void dump_note_those(struct dump_list *l, bool (*is_one)(const void *arg, const struct g *gp),
                     const void *arg)
{
	check(load_relaxed(&sched.stopping));
	stack_each(note_one, &(struct note_those){ l, is_one, arg });
}

void dump_print(struct dump_list *l, FILE *out)
{
	struct printer pr = print_to_file(out);
	struct backtrace bt;

	for (struct chunk *c = l->noted.first; c; c = c->next) {
		for (size_t at = sizeof *c; at < c->used;) {
			const struct noted *r = (const void *)((const char *)c + at);

			bt.n = r->n;
			bt.from = r->from;
			memcpy(bt.pc, r->pc, r->n * sizeof *r->pc);
			print_goroutine(&pr, &r->head, &bt);
			print_str(&pr, "\n");
			at += noted_bytes(r->n);
		}
	}
	chunks_free(&l->noted);
	print_flush(&pr);
}

void goro_dump(FILE *out)
{
	struct dump_list all = { .noted.bytes = 0 };
	const struct g *self = NULL;
	struct m *mp = rt_enter();
	struct backtrace bt;

	mp = world_stop_for(mp, "all goroutines stack trace");
	if (!mp->is_foreign) {
		self = mp->curg;
		backtrace_here(&bt);
		note_trace(&all, self, &bt);
	}
	dump_note_those(&all, is_shown, self);
	mp = world_start(mp, sched.gomaxprocs);
	rt_exit(mp);
	dump_print(&all, out);
}

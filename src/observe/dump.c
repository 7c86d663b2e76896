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
 * goro_dump stops the world, notes the frames of every goroutine (addresses
 * only, in memory of the runtime's own), lets the world go on, and prints then.
 * A fatal end cannot wait for anybody: dump_all_unstopped takes what it finds.
 */
#include "dump.h"

#include <goro.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "environment.h"
#include "frame.h"
#include "os.h"
#include "panic.h"
#include "runtime.h"
#include "stack.h"
#include "symbol.h"
#include "world.h"

enum dump_level dump_level = DUMP_SINGLE;

void dump_init(void)
{
	const char *s = environment_get("GORO_TRACEBACK");

	if (!s)
		return;
	if (!strcmp(s, "none") || !strcmp(s, "0"))
		dump_level = DUMP_NONE;
	else if (!strcmp(s, "all") || !strcmp(s, "1") || !strcmp(s, "system") || !strcmp(s, "crash"))
		dump_level = DUMP_ALL;
}

/* ------------------------------------------------------------------ frames */

static void print_place(struct printer *pr, const struct symbol *sym, uintptr_t pc)
{
	print_str(pr, "\n\t");
	if (sym->file[0]) {
		print_str(pr, sym->file);
		print_str(pr, ":");
		print_int(pr, sym->line);
	} else {
		print_str(pr, sym->module[0] ? sym->module : "?");
	}
	print_str(pr, " +");
	print_hex(pr, sym->offset);
	if (!sym->file[0]) {
		print_str(pr, " pc=");
		print_hex(pr, pc);
	}
	print_str(pr, "\n");
}

static void print_function(struct printer *pr, const struct symbol *sym)
{
	if (sym->function[0])
		print_str(pr, sym->function);
	else
		print_str(pr, "?");
}

/* Of a call, where it returns to is printed. */
static void print_frame(struct printer *pr, uintptr_t address, bool exact)
{
	struct symbol sym = { .function = "" };

	symbol_find(address, &sym);
	print_function(pr, &sym);
	print_str(pr, "(...)");
	sym.offset += !exact;
	print_place(pr, &sym, address + !exact);
}

/* ------------------------------------------------------------- a goroutine */

/* What is said of a goroutine besides its frames. */
struct head {
	uint64_t id, parent_id;
	uintptr_t created_at;
	uint32_t status;	/* enum g_status */
	uint8_t wait_reason;
	bool is_main;
	bool locked;		/* by the program; locked_m may be preempt.c's */
	int64_t wait_since;
	char name[G_NAME_BYTES];
};

/* Nothing holds the goroutine: even while the world is stopped one that runs on
 * without its P may just be getting in line for another, or clear its name as it
 * ends. Each of these is right by itself, and the name ends where it should. */
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

	print_str(pr, "goroutine ");
	print_int(pr, (int64_t)h->id);
	print_str(pr, " [");
	print_str(pr, state_text(h));
	if (minutes >= 1) {
		print_str(pr, ", ");
		print_int(pr, minutes);
		print_str(pr, " minutes");
	}
	if (h->locked)
		print_str(pr, ", locked to thread");
	if (h->name[0]) {
		print_str(pr, ", \"");
		print_str(pr, h->name);
		print_str(pr, "\"");
	}
	print_str(pr, "]:\n");
}

static void print_created_by(struct printer *pr, const struct head *h)
{
	struct symbol sym = { .function = "" };

	if (!h->created_at || h->is_main)
		return;
	symbol_find(h->created_at - 1, &sym);
	print_str(pr, "created by ");
	print_function(pr, &sym);
	if (h->parent_id) {
		print_str(pr, " in goroutine ");
		print_int(pr, (int64_t)h->parent_id);
	}
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

/* The innermost is exact only if none inside it was left out. */
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

/* Plain threads, which no stop of the world stops, may just be making one. */
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

void dump_culprit(struct printer *pr, const struct g *gp, const struct backtrace *bt)
{
	if (dump_level == DUMP_ALL) {
		dump_all_unstopped(pr, gp, bt);
	} else if (dump_level != DUMP_NONE) {
		print_str(pr, "\n");
		dump_goroutine(pr, gp, bt);
	}
	print_flush(pr);
}

_Noreturn void dump_panic(const struct g *gp)
{
	struct printer pr = print_to_fd(STDERR_FILENO);
	struct backtrace bt;

	fatal_first_only();
	panic_print(gp, STDERR_FILENO);
	backtrace_here(&bt);
	dump_culprit(&pr, gp, &bt);
	_exit(2);
}

/* ---------------------------------------------------------------- goro_dump */

/* What is noted of a goroutine while the world is stopped, with as many frames as
 * there are, packed one record after the other in mapped chunks. */
struct note_chunk {
	struct note_chunk *next;
	size_t used, size;
	char data[];
};

struct noted {
	size_t bytes;		/* of this record */
	struct head head;
	size_t n;
	enum frames from;
	uintptr_t pc[];
};

#define NOTE_CHUNK_BYTES (1 << 20)

static struct noted *note_room(struct dump_list *l, size_t bytes)
{
	struct note_chunk *c = l->last;
	struct noted *r;

	if (!c || c->size - c->used < bytes) {
		c = os_map(NOTE_CHUNK_BYTES);
		if (!c)
			return NULL;
		c->size = NOTE_CHUNK_BYTES - sizeof *c;
		if (l->last)
			l->last->next = c;
		else
			l->first = c;
		l->last = c;
	}
	r = (struct noted *)(c->data + c->used);
	c->used += bytes;
	r->bytes = bytes;
	return r;
}

static void note_trace(struct dump_list *l, const struct g *gp, const struct backtrace *bt)
{
	struct noted *r = note_room(l, sizeof *r + bt->n * sizeof *r->pc);

	if (!r)
		return;
	head_of(&r->head, gp);
	r->n = bt->n;
	r->from = bt->from;
	memcpy(r->pc, bt->pc, bt->n * sizeof *r->pc);
}

void dump_note(struct dump_list *l, const struct g *gp)
{
	struct backtrace bt;

	backtrace_any(&bt, gp);
	note_trace(l, gp, &bt);
}

struct note_those {
	struct dump_list *list;
	bool (*is_one)(const void *arg, const struct g *gp);
	const void *arg;
};

static void note_one(struct g *gp, void *arg)
{
	struct note_those *t = arg;

	if (t->is_one(t->arg, gp))
		dump_note(t->list, gp);
}

void dump_note_those(struct dump_list *l, bool (*is_one)(const void *arg, const struct g *gp),
                     const void *arg)
{
	stack_each(note_one, &(struct note_those){ l, is_one, arg });
}

void dump_print(struct dump_list *l, FILE *out)
{
	struct printer pr = print_to_file(out);
	struct backtrace bt;

	for (struct note_chunk *c = l->first, *next; c; c = next) {
		for (size_t at = 0; at < c->used;) {
			struct noted *r = (struct noted *)(c->data + at);

			bt.n = r->n;
			bt.from = r->from;
			memcpy(bt.pc, r->pc, r->n * sizeof *r->pc);
			print_goroutine(&pr, &r->head, &bt);
			print_str(&pr, "\n");
			at += r->bytes;
		}
		next = c->next;
		os_unmap(c, NOTE_CHUNK_BYTES);
	}
	print_flush(&pr);
}

void goro_dump(FILE *out)
{
	struct dump_list all = { NULL, NULL };
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

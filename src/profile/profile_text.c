/*
 * profile_text.c - profiles as text: what Go's pprof writes with debug=1.
 *
 *	goroutine profile: total 12
 *	10 @ 0x55d0c0a3 0x55d0b1f0
 *	#	0x55d0c0a2	goro_chan_recv+0x42	/home/me/goro/src/chan.c:206
 *	#	0x55d0b1ef	worker+0x1f	/home/me/prog.c:12
 *
 * Only the program's frames are shown, the most frequent (or longest) stacks first.
 */
#include <stdlib.h>

#include "profile/profile.h"

struct sorted {
	const struct profile_record **at;
	size_t n;
};

static void collect(const struct profile_record *r, void *arg)
{
	struct sorted *s = arg;

	s->at[s->n++] = r;
}

static int longest_first(const void *a, const void *b)
{
	const struct profile_record *x = *(const struct profile_record *const *)a;
	const struct profile_record *y = *(const struct profile_record *const *)b;

	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	return x->count < y->count ? 1 : x->count > y->count ? -1 : 0;
}

static void put_frame(FILE *out, uintptr_t pc)
{
	struct symbol sym = { .function = "" };

	symbol_find(pc, &sym);
	fprintf(out, "#\t%#zx\t%s+%#zx", (size_t)pc, sym.function[0] ? sym.function : "?",
	        (size_t)sym.offset);
	if (sym.file[0])
		fprintf(out, "\t%s:%d", sym.file, (int)sym.line);
	else if (sym.module[0])
		fprintf(out, "\t%s", sym.module);
	putc('\n', out);
}

static void put_record(FILE *out, const struct profile_record *r, bool timed)
{
	if (timed)
		fprintf(out, "%lld ", (long long)r->total);
	fprintf(out, "%llu @", (unsigned long long)(r->count + 0.5));
	for (uint32_t i = 0; i < r->n; i++)
		fprintf(out, " %#zx", (size_t)r->pc[i]);
	putc('\n', out);
	if (r->name[0])
		fprintf(out, "# name: %s\n", r->name);
	for (uint32_t i = 0; i < r->n; i++)
		put_frame(out, r->pc[i]);
	putc('\n', out);
}

static void sum(const struct profile_record *r, void *arg)
{
	*(double *)arg += r->count;
}

void profile_text(FILE *out, const char *name, const char *delays, const struct profile_table *t)
{
	struct profile_table trimmed;
	struct sorted s = { .n = 0 };
	double total = 0;

	profile_table_each(t, sum, &total);
	if (delays)
		fprintf(out, "--- %s:\ncycles/second=1000000000\n", delays);
	else
		fprintf(out, "%s profile: total %.0f\n", name, total);
	profile_table_trim(&trimmed, t, frame_of_address, NULL);
	s.at = malloc((trimmed.records.n + 1) * sizeof *s.at);
	if (s.at) {
		profile_table_each(&trimmed, collect, &s);
		qsort(s.at, s.n, sizeof *s.at, longest_first);
	}
	for (size_t i = 0; i < s.n; i++)
		put_record(out, s.at[i], delays);
	free(s.at);
	profile_table_free(&trimmed);
}

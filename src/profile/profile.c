/*
 * profile.c - profiles by name.
 *
 * Each profile has a file of its own, which gathers stacks in a table (profile_table.c).
 * Here the table becomes a file (pprof_proto.c). Gathering runs in the runtime, and is
 * short. The rest runs in user code, where the caller can be preempted.
 */
#include "profile/profile.h"

#include <errno.h>
#include <goro.h>
#include <string.h>
#include <time.h>

#include "sched/runtime.h"

static void dump_leaks(FILE *out)
{
	profile_goroutineleak_dump(out);
}

static const struct profile {
	const char *name;
	void (*take)(struct profile_table *now);
	const char *delays;	/* each event has a duration: the text's title; or NULL */
	void (*dump)(FILE *out);	/* prints goroutines one by one; or NULL */
} profiles[] = {
	{ "goroutine", profile_goroutine_take, NULL, goro_dump },
	{ "goroutineleak", profile_goroutineleak_take, NULL, dump_leaks },
	{ "block", profile_block_take, "contention", NULL },
	{ "mutex", profile_mutex_take, "mutex", NULL },
	{ "threadcreate", profile_threadcreate_take, NULL, NULL },
};

/* NULL: there is none. */
static const struct profile *find(const char *name)
{
	for (size_t i = 0; name && i < sizeof profiles / sizeof *profiles; i++)
		if (strcmp(profiles[i].name, name) == 0)
			return &profiles[i];
	return NULL;
}

static struct pprof_kind kind_of(const struct profile *p)
{
	const struct pprof_type count = { p->delays ? "contentions" : p->name, "count" };

	return (struct pprof_kind){
		.type = { count, { "delay", "nanoseconds" } }, .types = p->delays ? 2 : 1,
		.period_type = count, .period = 1,
	};
}

int profile_encode(const char *name, struct bytes *out)
{
	const struct profile *p = find(name);
	struct pprof_kind kind;
	struct profile_table now;
	struct pprof b;

	runtime_init();
	if (!p)
		return -EINVAL;
	kind = kind_of(p);
	p->take(&now);
	pprof_begin(&b, &kind);
	pprof_time(&b, profile_wall_now(), 0);
	profile_add_table(&b, &now);
	pprof_sample_named(&b, "lost_events", (const int64_t[]){ (int64_t)now.lost, 0 });
	profile_table_free(&now);
	return pprof_end(&b, out);
}

void profile_print(const char *name, int debug, FILE *out)
{
	const struct profile *p = find(name);
	struct profile_table now;

	if (debug != 1 && p->dump) {
		p->dump(out);
		return;
	}
	p->take(&now);
	profile_text(out, name, p->delays, &now);
	profile_table_free(&now);
}

int profile_send(struct bytes *bytes, int fd)
{
	ssize_t n = goro_write_full(fd, bytes->at, bytes->n);
	bool all = n == (ssize_t)bytes->n;

	bytes_free(bytes);
	return n < 0 ? (int)n : all ? 0 : -EIO;
}

static void add_record(const struct profile_record *r, void *arg)
{
	pprof_sample(arg, r, (const int64_t[]){ (int64_t)(r->count + 0.5), r->total });
}

void profile_add_table(struct pprof *b, const struct profile_table *t)
{
	struct profile_table trimmed;

	profile_table_trim(&trimmed, t, pprof_look, b);
	profile_table_each(&trimmed, add_record, b);
	profile_table_free(&trimmed);
}

int64_t profile_wall_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * GORO_SECOND + now.tv_nsec;
}

int goro_profile_write(const char *profile, int fd)
{
	struct bytes bytes;
	int error = profile_encode(profile, &bytes);

	return error ? error : profile_send(&bytes, fd);
}

/*
 * profile.c - profiles by name.
 *
 * What is measured, and how, is in the files of the single profiles: each gathers
 * stacks in a table (profile_table.c), which is made a file here (pprof_proto.c).
 * Gathering is done by the runtime, and quick; all else happens in user code, where
 * the caller may be preempted as anywhere.
 */
#include "profile.h"

#include <errno.h>
#include <goro.h>
#include <string.h>
#include <time.h>

#include "backtrace.h"
#include "runtime.h"

static const struct {
	const char *name;
	int (*encode)(struct bytes *out);
} profiles[] = {
	{ "goroutine", profile_goroutine },
	{ "goroutineleak", profile_goroutineleak },
	{ "block", profile_block },
	{ "mutex", profile_mutex },
	{ "threadcreate", profile_threadcreate },
};

int profile_encode(const char *name, struct bytes *out)
{
	runtime_init();
	for (size_t i = 0; name && i < sizeof profiles / sizeof *profiles; i++)
		if (strcmp(profiles[i].name, name) == 0)
			return profiles[i].encode(out);
	return -EINVAL;
}

int profile_send(struct bytes *bytes, int fd)
{
	ssize_t n = goro_write_full(fd, bytes->at, bytes->n);
	bool all = n == (ssize_t)bytes->n;

	bytes_free(bytes);
	return n < 0 ? (int)n : all ? 0 : -EIO;
}

struct trimming {
	struct pprof *b;
	struct profile_table seen;	/* what is left of the stacks: some have become the same */
};

static void trim_record(const struct profile_record *r, void *arg)
{
	struct trimming *t = arg;
	uintptr_t address[BACKTRACE_MAX];
	struct profile_key key = {
		.pc = address, .n = pprof_trim(t->b, r, address), .name = r->name, .id = r->id,
	};

	profile_table_add(&t->seen, &key, r->count, r->total);
}

static void add_record(const struct profile_record *r, void *arg)
{
	pprof_sample(arg, r, (const int64_t[]){ (int64_t)(r->count + 0.5), r->total });
}

void profile_add_table(struct pprof *b, const struct profile_table *t)
{
	struct trimming trim = { .b = b, .seen.bytes_max = SIZE_MAX / 2 };

	profile_table_each(t, trim_record, &trim);
	profile_table_each(&trim.seen, add_record, b);
	profile_table_free(&trim.seen);
}

int profile_of_table(const struct pprof_kind *kind, const struct profile_table *t,
                     struct bytes *out)
{
	struct timespec now;
	struct pprof b;

	clock_gettime(CLOCK_REALTIME, &now);
	pprof_begin(&b, kind);
	pprof_time(&b, now.tv_sec * GORO_SECOND + now.tv_nsec, 0);
	profile_add_table(&b, t);
	pprof_sample_named(&b, "lost_events", (const int64_t[]){ (int64_t)t->lost, 0 });
	return pprof_end(&b, out);
}

int goro_profile_write(const char *profile, int fd)
{
	struct bytes bytes;
	int error = profile_encode(profile, &bytes);

	return error ? error : profile_send(&bytes, fd);
}

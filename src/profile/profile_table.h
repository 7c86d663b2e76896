/* profile_table.h - stacks, and what was counted at each. Defined in profile_table.c. */
#ifndef GORO_PROFILE_TABLE_H
#define GORO_PROFILE_TABLE_H

#include "base/table.h"
#include "observe/frame.h"
#include "sched/types.h"

/* Two records differ in one of these. */
struct profile_key {
	const uintptr_t *pc;	/* pc[0] exact, the others return addresses */
	size_t n;		/* at most BACKTRACE_MAX */
	const char *name;	/* the goroutine's, or NULL; shorter than G_NAME_BYTES */
	uint64_t id;		/* the goroutine's; 0: any */
	enum frames from;
};

struct profile_record {
	double count;
	int64_t total;		/* the sum of what is measured at each event, or 0 */

	/* The key. */
	uint64_t id;
	char name[G_NAME_BYTES];
	enum frames from;
	uint32_t n;
	uintptr_t pc[BACKTRACE_MAX];	/* n of them */
};

struct profile_table {
	struct table records;	/* the owner sets bytes_max */
	uint64_t lost;		/* additions that did not fit */
};

/* Adds to the record of this stack. Takes no lock, and does not call malloc. The owner
 * lets one thread at a time do this. */
void profile_table_add(struct profile_table *t, const struct profile_key *key, double count,
                       int64_t total);
void profile_table_each(const struct profile_table *t,
                        void (*fn)(const struct profile_record *r, void *arg), void *arg);
/* Copies from, which does not change meanwhile, into an empty table. */
void profile_table_copy(struct profile_table *to, const struct profile_table *from);
/* Fills an empty table with what frame_program leaves of the stacks, as addresses of
 * instructions. Stacks that become equal are one record. */
void profile_table_trim(struct profile_table *to, const struct profile_table *from,
                        struct frame (*look)(void *arg, uintptr_t address), void *arg);
void profile_table_free(struct profile_table *t);

#endif

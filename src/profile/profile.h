/*
 * profile.h - profiles for `go tool pprof`: the room's main header.
 *
 * The room may use every room except trace and http. It offers goro_profile_write and
 * goro_profile_cpu_start with their kin in goro/observe.h, GORO_CPUPROFILE, and to http
 * each profile as a table.
 */
#ifndef GORO_PROFILE_H
#define GORO_PROFILE_H

#include <stdio.h>

#include "base/bytes.h"
#include "profile/pprof_proto.h"

struct g;

/* In user code. An int is 0 or -errno. The caller frees the bytes or the table. */

/* ---- profile.c */

/* Makes the profile that goro_profile_write writes. */
int profile_encode(const char *name, struct bytes *out);
/* Prints a profile that there is. debug 1: as a table; 2: its goroutines one by one. */
void profile_print(const char *name, int debug, FILE *out);
/* Writes the bytes to fd, and frees them. */
int profile_send(struct bytes *bytes, int fd);
/* Adds a sample of each record, trimmed to the program's frames. */
void profile_add_table(struct pprof *b, const struct profile_table *t);
int64_t profile_wall_now(void);		/* ns since 1970 */

/* ---- profile_cpu.c: a CPU profile for http. -EINVAL: the program has stopped it */

int profile_cpu_begin(void);
int profile_cpu_end(struct bytes *out);

/* ---- each profile as a table */

void profile_goroutine_take(struct profile_table *now);
void profile_threadcreate_take(struct profile_table *now);
void profile_goroutineleak_take(struct profile_table *now);
void profile_block_take(struct profile_table *now);
void profile_mutex_take(struct profile_table *now);

/* ---- profile_goroutine.c */

/* Prints leaked goroutines like goro_dump, unless out is NULL. Returns their number. */
size_t profile_goroutineleak_dump(FILE *out);

/* ---- profile_text.c: text for people. delays: the title of one with durations; NULL */

void profile_text(FILE *out, const char *name, const char *delays, const struct profile_table *t);

#endif

/*
 * profile.h - profiles by name, and what makes them.
 */
#ifndef GORO_PROFILE_H
#define GORO_PROFILE_H

#include <stdio.h>

#include "bytes.h"
#include "pprof_proto.h"

struct g;

/* All in user code. 0 or -errno; the bytes are for the caller to free. */

/* ---- profile.c */

/* What goro_profile_write writes. */
int profile_encode(const char *name, struct bytes *out);
/* 0 or -errno; frees them. */
int profile_send(struct bytes *bytes, int fd);
/* Samples of all records, trimmed. */
void profile_add_table(struct pprof *b, const struct profile_table *t);
/* A profile of all records: count, and total if the kind has two. */
int profile_of_table(const struct pprof_kind *kind, const struct profile_table *t,
                     struct bytes *out);

/* ---- profile_goroutine.c */

/* Where goroutines are; samples of one type. Each with the world stopped: begin, if any,
 * first; then those of which keep, if any, says true are taken. */
struct profile_choice {
	const char *type;
	void (*begin)(void *arg);
	bool (*keep)(const struct g *gp, void *arg);
	void *arg;
};
int profile_goroutines(const struct profile_choice *choice, struct bytes *out);
int profile_goroutine(struct bytes *out);
/* What they are made of, for the caller to free. */
void profile_goroutines_take(const struct profile_choice *choice, struct profile_table *now);
void profile_threadcreate_take(struct profile_table *now);
int profile_threadcreate(struct bytes *out);

/* ---- profile_block.c */

int profile_block(struct bytes *out);
int profile_mutex(struct bytes *out);
void profile_block_take(struct profile_table *now);
void profile_mutex_take(struct profile_table *now);

/* ---- profile_leak.c */

int profile_goroutineleak(struct bytes *out);
void profile_goroutineleak_take(struct profile_table *now);
/* One by one, as goro_dump; how many there are. out may be NULL. */
size_t profile_goroutineleak_dump(FILE *out);

/* ---- profile_text.c: for people to read */

void profile_text_counts(FILE *out, const char *name, const struct profile_table *t);
void profile_text_delays(FILE *out, const char *title, const struct profile_table *t);

#endif

/*
 * reach_scan.h - memory and threads, as reach.c looks at them. Defined in reach_memory.c
 * and reach_threads.c.
 */
#ifndef GORO_REACH_SCAN_H
#define GORO_REACH_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct m;

/* What is done with words that were found. */
typedef void reach_words(void *arg, const uintptr_t *words, size_t n);

/* ---- reach_memory.c */

struct span {
	uintptr_t lo, hi;	/* [lo, hi) */
};

/* In mapped memory; what finds no room is dropped, and failed says so. */
struct spans {
	struct span *at;
	size_t n, room;
	bool failed;
};

void spans_add(struct spans *s, const void *lo, const void *hi);
void spans_add_self(struct spans *s);	/* the memory of the list itself */
void spans_sort(struct spans *s);	/* by address, joined where they overlap */
void spans_free(struct spans *s);

/* How memory is read: whatever is gone, or not there, is passed over. */
struct memory {
	int pagemap;		/* -1: cannot be had */
	bool scan_works;	/* the kernel lists what is there: Linux 6.7 */
	pid_t pid;
	uintptr_t *buf;
	const struct spans *but;	/* what is not looked at, sorted; or NULL */
};
#define MEMORY_BUF_BYTES (256 << 10)
bool memory_open(struct memory *m);
void memory_close(struct memory *m);
void memory_scan(const struct memory *m, struct span s, reach_words *fn, void *arg);
/* All that the program can write to, without what is in but, which is sorted. */
void memory_scan_all(struct memory *m, const struct spans *but, reach_words *fn, void *arg);

/* ---- reach_threads.c */

/* Of a thread at the moment. */
/* How much of a signal's frame lies above the ucontext, with the registers that are not in
 * it, at most. */
#define REACH_FRAME_BYTES 4096

struct thread_view {
	int tid;
	bool asleep;		/* in the kernel: sp is known, and arguments of the call */
	bool patient;		/* .. which may be interrupted */
	bool ignored;		/* what it does does not matter, or cannot be seen */
	bool held;		/* in our handler: all registers are known */
	uintptr_t sp;		/* 0: not known */
	struct span frame;	/* held: where the registers lie */
	size_t n;
	uintptr_t word[8];	/* asleep: what is known of the registers */
	uint64_t stamp;		/* asleep: the same as long as it has not moved */
};

#define HOLD_MAX 1024

/* Looks at all threads but this one, *count of them and at most HOLD_MAX, and holds those
 * that can be. False: some run on that should not. */
bool threads_hold(struct thread_view *out, size_t *count);
/* True: none of those that slept has moved. */
bool threads_still(const struct thread_view *views, size_t n);
void threads_let_go(void);

#endif

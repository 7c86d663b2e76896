/* reach.h - goroutines that wait for objects which nothing can reach. Defined in reach.c;
 * memory and threads, as it scans them, in reach_memory.c and reach_threads.c. */
#ifndef GORO_REACH_H
#define GORO_REACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "observe/backtrace.h"

struct g;
struct reach;

/* Finds all goroutines that wait for ever. World stopped. NULL: not known. */
struct reach *reach_find(void);
/* Is gp one of them? World still stopped. */
bool reach_is_lost(const struct reach *r, const struct g *gp);
/* Their number. World still stopped. */
size_t reach_lost(const struct reach *r);
void reach_free(struct reach *r);	/* NULL: nothing */

/* ---- for reach.c */

/* Is called with words that were read. */
typedef void reach_words(void *arg, const uintptr_t *words, size_t n);

/* ---- reach_memory.c */

struct span {
	uintptr_t lo, hi;	/* [lo, hi) */
};

/* A list in mapped memory. Of what finds no memory list.failed tells. */
struct spans {
	struct bytes list;
	struct span *at;	/* its spans */
	size_t n;
};

void spans_add(struct spans *s, const void *lo, const void *hi);
void spans_add_self(struct spans *s);	/* adds the memory of the list itself */
void spans_sort(struct spans *s);	/* by address; joins spans that overlap */
void spans_free(struct spans *s);

/* How memory is read. */
struct memory {
	int pagemap;		/* -1: not available */
	bool scan_works;	/* the kernel lists present pages: Linux 6.7 */
	pid_t pid;
	uintptr_t *buf;
	const struct spans *but;	/* sorted spans that are not looked at; or NULL */
};
#define MEMORY_BUF_BYTES (256 << 10)
/* False: memory cannot be read, or there is none for the buffer. */
bool memory_open(struct memory *m);
void memory_close(struct memory *m);
/* Passes the words of the pages in s that are present to fn. */
void memory_scan(const struct memory *m, struct span s, reach_words *fn, void *arg);
/* Passes on all that the program can write to, except but, which is sorted. False: the
 * mappings cannot be listed. */
bool memory_scan_all(struct memory *m, const struct spans *but, reach_words *fn, void *arg);

/* ---- reach_threads.c */

/* A signal's frame has at most this many bytes from its ucontext up. It holds the
 * registers that are not in the ucontext. */
#define REACH_FRAME_BYTES 4096

/* What is known of a thread at the moment. */
struct thread_view {
	int tid;
	bool asleep;		/* in a system call: sp and the arguments are known */
	bool patient;		/* asleep: a signal may interrupt the call */
	bool ignored;		/* what it does does not matter, or cannot be seen */
	bool held;		/* stands in the handler: all registers are known */
	uintptr_t sp;		/* 0: not known */
	struct span frame;	/* held: where the registers lie */
	size_t n;
	uintptr_t word[SYSCALL_WORDS];	/* asleep: the registers that are known */
	uint64_t stamp;		/* asleep: changes when the thread wakes */
};

#define HOLD_MAX 1024

/* Looks at all threads except the caller, *count of them and at most HOLD_MAX, and holds
 * those that it can. False: some thread runs on that must not. */
bool threads_hold(struct thread_view *out, size_t *count);
/* True: no thread that slept has woken since. */
bool threads_still(const struct thread_view *views, size_t n);
void threads_let_go(void);

#endif

/*
 * profile_sample.h - CPU samples: taken in a handler, kept for who collects them. Defined in
 * profile_sample.c.
 */
#ifndef GORO_PROFILE_SAMPLE_H
#define GORO_PROFILE_SAMPLE_H

#include <signal.h>
#include <stdbool.h>

#include "backtrace.h"
#include "types.h"

/* What is kept of a thread, as long as it is sampled. */
struct sampled {
	_Alignas(CACHE_LINE) int tid;	/* 0: free. The collector's; read by the handler */
	int timer;
	uint32_t seen;		/* the collector's: the look at which it was last there */

	/* The ring's ends, as total numbers of words. */
	uint64_t head;		/* the handler's */
	uint64_t tail;		/* the collector's */
	uint64_t lost;		/* the handler's: periods for which there was no room */

	/* The handler's: where the stack of a thread without an M is. */
	uintptr_t stack_lo, stack_hi;
	int stack_looks;
};

/* A sample as the collector gets it. */
struct sample {
	uint32_t times;		/* periods that it stands for */
	uint64_t goroutine;	/* 0: none was on */
	char name[G_NAME_BYTES];
	struct backtrace bt;
};

extern struct sampled *sampled;		/* as many as there are threads */

/* Memory for it, once; false: there is none. */
bool sampled_init(void);

/* The collector's: threads are sampled from now on; or none is any more. */
void sampling_switch(bool on);
/* The next sample of a thread; false: there is none. */
bool sampled_take(struct sampled *s, struct sample *out);
/* What is there is not wanted. */
void sampled_skip(struct sampled *s);
/* Gives the memory of the first n rings back. */
void sampled_give_back(int n);

/* The handler's: true if the signal is of a timer of ours. */
bool sample_on_signal(const siginfo_t *info, const void *uc);
/* .. and if it has come where no sample can be taken. */
bool sample_lose(const siginfo_t *info);

#endif

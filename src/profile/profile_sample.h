/* profile_sample.h - CPU samples: taken in a handler, and counted there. Defined in
 * profile_sample.c. */
#ifndef GORO_PROFILE_SAMPLE_H
#define GORO_PROFILE_SAMPLE_H

#include <signal.h>

#include "profile/profile_table.h"

/* The stacks found, with the periods that they stand for. The caller's of sampling_end
 * until the next sampling_begin. Its address is the value of all timers. */
struct samples {
	struct profile_table table;
	uint64_t lost;		/* periods that could not be counted */
};
extern struct samples samples;

/* Handlers take samples from begin to end. A sample stands for this period. */
void sampling_begin(int64_t period);
void sampling_end(void);

/* In the handler: takes a sample. False: the signal is of none of these timers. */
bool sample_on_signal(const siginfo_t *info, const void *uc);
/* The same where no sample can be taken: counts it as lost. */
bool sample_lose(const siginfo_t *info);

#endif

/*
 * random.h - the same numbers, that look like random ones, in every run.
 */
#ifndef GORO_TEST_RANDOM_H
#define GORO_TEST_RANDOM_H

#include <stdint.h>

/* Not 0 once, never 0 again. */
static inline uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static inline uint64_t random_word(void)
{
	static uint64_t state = 88172645463325252u;

	return random_next(&state);
}

#endif

/*
 * measure.h - what the exercises measure with: work of a known size, samples and their
 * quantiles, and a requester and its answerer at the two ends of a socket.
 *
 * Tables go to stdout in the form that ../report reads: "== NAME", a line of column names
 * with _ for a space, and lines of values.
 */
#ifndef MEASURE_H
#define MEASURE_H

#include <goro.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* ------------------------------------------------------------------- work */

static int64_t rounds_in_ms = 1;

/* Computes without a call. The result depends on every round. */
static inline uint32_t work_rounds(int64_t rounds)
{
	uint32_t x = 1;

	for (int64_t i = 0; i < rounds; i++) {
		x = x * 1664525 + 1013904223;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

/* Computes for ns of CPU time, on a CPU as fast as the one that calibrate ran on. */
static inline void work(int64_t ns)
{
	work_rounds(rounds_in_ms * ns / GORO_MILLISECOND);
}

/* The best of several: what others on the machine take makes it slower, never faster. */
static inline void calibrate(void)
{
	for (int i = 0; i < 20; i++) {
		const int64_t rounds = 1000000;
		int64_t start = goro_now(), ns;

		work_rounds(rounds);
		ns = goro_now() - start;
		if (ns > 0 && rounds * GORO_MILLISECOND / ns > rounds_in_ms)
			rounds_in_ms = rounds * GORO_MILLISECOND / ns;
	}
}

/* ---------------------------------------------------------------- samples */

/* Taken by any number of goroutines. */
struct samples {
	int64_t *at;
	size_t max;
	atomic_size_t n;
};

static inline void *allocate(size_t n, size_t size)
{
	void *block = calloc(n ? n : 1, size);

	if (!block)
		goro_panic("out of memory");
	return block;
}

static inline void samples_init(struct samples *s, size_t max)
{
	s->at = allocate(max, sizeof *s->at);
	s->max = max;
	atomic_init(&s->n, 0);
}

/* Those beyond the last that there is room for are dropped. */
static inline void samples_add(struct samples *s, int64_t value)
{
	size_t i = atomic_fetch_add_explicit(&s->n, 1, memory_order_relaxed);

	if (i < s->max)
		s->at[i] = value;
}

static inline size_t samples_count(struct samples *s)
{
	size_t n = atomic_load(&s->n);

	return n < s->max ? n : s->max;
}

static inline int compare_times(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Once nobody adds any more, and before samples_quantile. */
static inline void samples_sort(struct samples *s)
{
	qsort(s->at, samples_count(s), sizeof *s->at, compare_times);
}

/* The value that a share of all samples, 0 to 1, does not exceed; 0 if there are none. */
static inline int64_t samples_quantile(struct samples *s, double share)
{
	size_t n = samples_count(s), i = (size_t)(share * (double)n);

	return n ? s->at[i < n ? i : n - 1] : 0;
}

static inline void samples_free(struct samples *s)
{
	free(s->at);
}

static inline double us(int64_t ns)
{
	return (double)ns / 1e3;
}

/* ---------------------------------------------------------------- network */

/* The two ends of a connection. */
static inline void connect_pair(int fd[2])
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) < 0)
		goro_panic("socketpair: errno %d", errno);
}

/* A goroutine: answers each byte after some computing, until the other end is closed. */
static inline void answer(int fd, int64_t compute_ns)
{
	char byte;

	while (goro_read(fd, &byte, 1) == 1) {
		work(compute_ns);
		if (goro_write(fd, &byte, 1) != 1)
			break;
	}
	goro_close(fd);
}

/* Sends a byte and waits for the answer. */
static inline void ask(int fd)
{
	char byte = 'x';

	if (goro_write(fd, &byte, 1) != 1 || goro_read(fd, &byte, 1) != 1)
		goro_panic("no answer");
}

#endif

/*
 * share.h - a thread for each processor with its share of the work, in rounds: what is
 * left when nothing is scheduled.
 */
#ifndef SHARE_H
#define SHARE_H

#include "peer.h"

#include <pthread.h>
#include <stdbool.h>

#define SHARES_MAX 64

static struct {
	int n;
	void (*run)(int share);
	bool over;
	pthread_barrier_t begin, end;
	pthread_t thread[SHARES_MAX];
} shares;

/* The first share is the main thread's; the others wait for a round to begin. */
static void *share_thread(void *arg)
{
	for (;;) {
		pthread_barrier_wait(&shares.begin);
		if (shares.over)
			return NULL;
		shares.run((int)(intptr_t)arg);
		pthread_barrier_wait(&shares.end);
	}
}

static void shares_start(int n, void (*run)(int share))
{
	shares.n = n < SHARES_MAX ? n : SHARES_MAX;
	shares.run = run;
	shares.over = false;
	pthread_barrier_init(&shares.begin, NULL, (unsigned)shares.n);
	pthread_barrier_init(&shares.end, NULL, (unsigned)shares.n);
	for (intptr_t i = 1; i < shares.n; i++)
		if (pthread_create(&shares.thread[i], NULL, share_thread, (void *)i) != 0)
			measure_fail("cannot start a thread");
}

static void shares_round(void)
{
	pthread_barrier_wait(&shares.begin);
	shares.run(0);
	pthread_barrier_wait(&shares.end);
}

static void shares_stop(void)
{
	shares.over = true;
	pthread_barrier_wait(&shares.begin);
	for (int i = 1; i < shares.n; i++)
		pthread_join(shares.thread[i], NULL);
	pthread_barrier_destroy(&shares.begin);
	pthread_barrier_destroy(&shares.end);
}

#endif

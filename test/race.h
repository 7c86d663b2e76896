/*
 * race.h - a thing that threads use at once, and whoever is last to need it frees, many
 * times over:
 *
 *	race_begin(2, act);                     two threads
 *	for (int i = 0; i < race.rounds; i++) {
 *		... thing ...
 *		race_start(thing);              each does act(thing, WHO, i), WHO 0 or 1
 *		... what the test's own thread does to it ...
 *		race_finish();                  all are done
 *	}
 *	race_end();
 */
#ifndef GORO_TEST_RACE_H
#define GORO_TEST_RACE_H

#include <pthread.h>
#include <stdint.h>

#include "await.h"
#include "test.h"

#define RACE_THREADS_MAX 4

static struct {
	void (*act)(void *thing, int who, int round);
	void *thing;
	pthread_barrier_t start, end;
	pthread_t thread[RACE_THREADS_MAX];
	int threads, rounds;
} race;

static inline void race_finish(void)
{
	pthread_barrier_wait(&race.end);
}

static inline void race_start(void *thing)
{
	race.thing = thing;
	pthread_barrier_wait(&race.start);
}

static inline void *race_thread(void *who)
{
	for (int i = 0; i < race.rounds; i++) {
		pthread_barrier_wait(&race.start);
		race.act(race.thing, (int)(intptr_t)who, i);
		race_finish();
	}
	return NULL;
}

static inline void race_begin(int threads, void (*act)(void *thing, int who, int round))
{
	race.act = act;
	race.threads = threads;
	race.rounds = SCALED(5000);
	pthread_barrier_init(&race.start, NULL, (unsigned)threads + 1);
	pthread_barrier_init(&race.end, NULL, (unsigned)threads + 1);
	for (int k = 0; k < threads; k++)
		CHECK_EQ(pthread_create(&race.thread[k], NULL, race_thread, (void *)(intptr_t)k), 0);
}

static inline void race_end(void)
{
	for (int k = 0; k < race.threads; k++)
		pthread_join(race.thread[k], NULL);
}

#endif

/* wakeup - how late a sleep of a millisecond ends; the time from a post, by one
 * that goes on computing, until another thread runs on another CPU. */
#include "thread.h"

#include <semaphore.h>
#include <stdatomic.h>

#define SAMPLES        400
#define MILLISECOND_NS 1000000

static int64_t sample[SAMPLES];

static void sleep_ms(void)
{
	struct timespec ts = { .tv_nsec = MILLISECOND_NS };

	nanosleep(&ts, NULL);
}

static void wake_from_sleep(void)
{
	int early = 0;

	for (int i = 0; i < SAMPLES; i++) {
		int64_t end = measure_now() + MILLISECOND_NS;

		sleep_ms();
		sample[i] = measure_now() - end;
		early += sample[i] < 0;
	}
	peer_report_latency("wakeup.sleep", sample, SAMPLES, "%d early", early);
}

static sem_t posted;
static atomic_llong received_at;

static void *receiver(void *arg)
{
	(void)arg;
	for (int i = 0; i < SAMPLES; i++) {
		sem_wait(&posted);
		atomic_store(&received_at, measure_now());
	}
	return NULL;
}

static void wake_another(void)
{
	pthread_t t;

	sem_init(&posted, 0, 0);
	t = thread_start(receiver, NULL);
	for (int i = 0; i < SAMPLES; i++) {
		int64_t sent;

		sleep_ms();
		atomic_store(&received_at, 0);
		sent = measure_now();
		sem_post(&posted);
		while (!atomic_load(&received_at))
			;
		sample[i] = atomic_load(&received_at) - sent;
	}
	thread_join(t);
	peer_report_latency("wakeup.other", sample, SAMPLES, "%d received", SAMPLES);
}

int main(void)
{
	peer_bind_cpus();
	wake_from_sleep();
	if (peer_procs() > 1)
		wake_another();
	return 0;
}

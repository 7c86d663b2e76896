/* crowd - a thread for each that makes blocking calls. See crowd.h. */
#include "thread.h"
#include "../../crowd.h"

#define STACK_BYTES 262144

static crowd_fn *run;

static void *one_of_many(void *i)
{
	run((int)(intptr_t)i);
	return NULL;
}

static void crowd_run(crowd_fn *fn, int n)
{
	pthread_t *t = calloc((size_t)n, sizeof *t);
	pthread_attr_t attr;

	run = fn;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	for (intptr_t i = 0; i < n; i++)
		if (pthread_create(&t[i], &attr, one_of_many, (void *)i) != 0)
			measure_fail("cannot start a thread");
	for (int i = 0; i < n; i++)
		thread_join(t[i]);
	free(t);
}

int main(int argc, char **argv)
{
	crowd_serve_if_asked(argc, argv);
	peer_bind_cpus();
	return crowd_main(peer_procs(), argc, argv, crowd_one) ? 0 : 1;
}

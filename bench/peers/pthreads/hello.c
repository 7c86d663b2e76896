/* hello - the program whose start bench/startup.c measures. */
#include "thread.h"

static void *greeter(void *arg)
{
	*(int *)arg = peer_procs();
	return NULL;
}

int main(void)
{
	int procs;

	thread_join(thread_start(greeter, &procs));
	printf("hello from %d\n", procs);
	return 0;
}

/*
 * 05_gomaxprocs.c - how many goroutines run at once.
 *
 * The setting is the number of processors (Ps). At first it is the number of CPUs that
 * the process may use, or the CPU quota of its container. Setting it returns what it was.
 */
#include <goro.h>

static int start(int argc, char **argv)
{
	(void)argc, (void)argv;
	printf("at first as many as CPUs: %s\n", goro_gomaxprocs(0) == goro_num_cpu() ? "yes" : "no");
	goro_gomaxprocs(3);
	printf("set to 3, it is %d\n", goro_gomaxprocs(0));
	printf("set to 1, it was %d\n", goro_gomaxprocs(1));
	goro_set_default_gomaxprocs();
	printf("follows the machine again: %s\n", goro_gomaxprocs(0) == goro_num_cpu() ? "yes" : "no");
	return 0;
}
GORO_MAIN(start)

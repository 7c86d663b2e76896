/*
 * 14_queues.c - the local queues and the global one, watched.
 *
 * The program runs itself with GORO_DEBUG=schedtrace=1, which prints a line about the
 * scheduler on standard error every millisecond:
 *
 *	SCHED 5ms: gomaxprocs=2 ... runqueue=3 [12 0]
 *
 * runqueue is the length of the global queue, and in the brackets stand those of the
 * processors' own. Goroutines that were just started are in a local queue; those that
 * were preempted go to the global one. The program looks for both.
 */
#include <goro.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void hog(goro_waitgroup *wg)
{
	int64_t until = goro_now() + 60 * GORO_MILLISECOND;

	while (goro_now() < until)
		continue;
	goro_waitgroup_done(wg);
}

static void child(void)
{
	goro_waitgroup wg = { 0 };

	goro_gomaxprocs(2);
	goro_waitgroup_add(&wg, 20);
	for (int i = 0; i < 20; i++)
		go(hog, &wg);
	goro_waitgroup_wait(&wg);
}

static int start(int argc, char **argv)
{
	bool global = false, local = false;
	int length, first, second;
	char command[4200], line[512], *at;
	FILE *trace;

	if (argc > 1) {
		child();
		return 0;
	}
	snprintf(command, sizeof command, "GORO_DEBUG=schedtrace=1 '%s' child 2>&1", argv[0]);
	trace = popen(command, "r");
	while (trace && fgets(line, sizeof line, trace)) {
		if (!(at = strstr(line, "runqueue=")) ||
		    sscanf(at, "runqueue=%d [ %d %d", &length, &first, &second) != 3)
			continue;
		global = global || length > 0;
		local = local || first > 0 || second > 0;
	}
	printf("goroutines seen in a local queue: %s\n", local ? "yes" : "no");
	printf("goroutines seen in the global queue: %s\n", global ? "yes" : "no");
	return trace ? pclose(trace) : 1;
}
GORO_MAIN(start)

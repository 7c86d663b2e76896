/*
 * 12_states.c - the states of goroutines, seen in the program's own dump.
 *
 * Each goroutine below waits in another way. goro_dump prints them all; the lines that
 * begin a goroutine say its state in brackets.
 */
#include <goro.h>
#include <stdlib.h>
#include <string.h>

static goro_chan *never;
static goro_mutex held;
static goro_waitgroup busy;

static void receives(void)
{
	goro_chan_recv(never, NULL);
}

static void sends(void)
{
	goro_chan_send(never, &(int){ 0 });
}

static void selects(goro_chan *other)
{
	goro_select(GORO_RECV(other, NULL), GORO_SEND(NULL, NULL));
}

static void sleeps(void)
{
	goro_sleep(GORO_SECOND * 100);
}

static void locks(void)
{
	goro_mutex_lock(&held);
}

static void waits(void)
{
	goro_waitgroup_wait(&busy);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Prints what stands in brackets in the dump, in order. */
static void print_states(FILE *dump)
{
	char states[64][32], line[256], *from, *to;
	int n = 0;

	rewind(dump);
	while (fgets(line, sizeof line, dump))
		if (strncmp(line, "goroutine ", 10) == 0 && (from = strchr(line, '[')) &&
		    (to = strchr(line, ']')) && n < 64)
			snprintf(states[n++], sizeof *states, "%.*s", (int)(to - from) - 1, from + 1);
	qsort(states, (size_t)n, sizeof *states, by_text);
	for (int i = 0; i < n; i++)
		puts(states[i]);
}

static int start(int argc, char **argv)
{
	FILE *dump = tmpfile();

	(void)argc, (void)argv;
	never = goro_chan_of(int, 0);
	goro_mutex_lock(&held);
	goro_waitgroup_add(&busy, 1);
	go(receives);
	goro_sleep(5 * GORO_MILLISECOND);
	goro_chan_send(never, &(int){ 0 });	/* that one ends */
	go(sends);
	go(selects, goro_chan_of(int, 0));
	go(sleeps);
	go(locks);
	go(waits);
	goro_sleep(20 * GORO_MILLISECOND);
	goro_dump(dump);
	print_states(dump);
	return 0;
}
GORO_MAIN(start)

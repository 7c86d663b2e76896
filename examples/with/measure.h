/*
 * measure.h - many requests at once, in one of three ways, and what that takes.
 *
 *	PROGRAM park|block|thread [CLIENTS [QUICK]]
 *
 *	park	a goroutine for each client, which calls the helper NAME_park.c
 *	block	a goroutine for each client, which calls the library as it is
 *	thread	a pthread for each client, which calls the library as it is; without goro
 *
 * First all clients open their connections. Then, all at once, each makes a request that
 * the server takes its time for. With QUICK each makes that many quick requests instead,
 * one after the other. What is measured is the time from the first request to the last
 * answer:
 *
 *	park     1000 under way   1.031 s   0.062 s CPU     8 threads    31 MB
 *
 * "Under way" and "threads" are the largest numbers that were there at once, and the
 * memory is the process's at its largest. The thread that counts is left out, as is the
 * CPU it uses.
 */
#ifndef MEASURE_H
#define MEASURE_H

struct client {
	void *(*open)(int i);                   /* connects; NULL: nothing to open */
	void (*request)(void *connection, int i);
	void (*quick)(void *connection, int i); /* NULL: there is none */
	void (*close)(void *connection);        /* NULL: nothing to close */
};

/* A main(). block is used by the ways block and thread, park by those that begin with
 * park. */
int measure_main(int argc, char **argv, const struct client *block, const struct client *park);

/* For what has other clients: from begin to end, how many threads there were, and so on.
 * */
void measure_begin(void);
void measure_under_way(int change);
void measure_end(const char *way);

/* Says why, and ends the program. */
_Noreturn void die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The environment variable with where the server is. */
const char *setting(const char *name);

#endif

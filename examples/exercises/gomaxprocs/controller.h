/*
 * controller.h - sets GOMAXPROCS to what the load can use.
 *
 * The controller climbs: now and then it tries one processor more or fewer for an
 * interval, and keeps that if it is worth it. One more has to bring at least GAIN_SHARE
 * of what it would at best; one fewer may cost LOSS_SHARE. What lies between moves
 * neither way, so noise does not make it swing.
 *
 * It goes on in a direction that was worth it, and tries the other one after a try in
 * vain. After two in vain, one in each direction, it waits twice as long, up to WAIT_MAX
 * intervals, which bounds what trying costs. When the rate at one setting changes by
 * CHANGE_SHARE, the load is another one, and it tries at once.
 *
 * Rejected: the length of the run queue. It says that there is work, not that one more
 * processor would do it sooner. And a goroutine that looks at it runs at a moment of the
 * scheduler's choice: with one processor, when the queue is empty.
 */
#ifndef CONTROLLER_H
#define CONTROLLER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define GAIN_SHARE   .25	/* of 1 / processors, the most that one more can bring */
#define LOSS_SHARE   .05
#define CHANGE_SHARE .25
#define WAIT_MAX     32		/* intervals */

struct controller {
	int least, most;	/* the range */
	int procs;		/* settled on */
	int trying;		/* +1, -1; 0: settled */
	int direction;		/* of the next try, if it can be */
	double rate;		/* at procs */
	int wait, backoff;	/* intervals until the next try; the next wait */
	unsigned tries;
};

void controller_init(struct controller *c, int least, int most, int procs);
/* What GOMAXPROCS is to be in the next interval, after one at what it said last. rate:
 * work done in that, a second. */
int controller_next(struct controller *c, double rate);

/* A controller at work: one step an interval, until stop is set. */
struct control {
	struct controller c;
	int64_t interval;	/* ns */
	atomic_ullong *done;	/* work done: the program counts */
	atomic_bool stop;
	/* Called after each step, if not NULL. */
	void (*seen)(void *arg, double rate, int procs);
	void *arg;
	/* What it costs. */
	int64_t spent;		/* ns, in steps */
	unsigned steps, changes;
};

/* A goroutine's function. Returns once stop is set. */
void control_run(struct control *ctl);

#endif

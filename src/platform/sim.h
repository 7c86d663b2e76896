/*
 * sim.h - the seam for simulation: another kernel behind os.h.
 *
 * A simulated process runs the whole runtime on one thread of the kernel. What the
 * runtime takes for threads are fibers of the room sim, and every call of os.h that
 * depends on time, on other threads or on chance is answered by that room, from a seed.
 * See sim/sim.c.
 *
 * sim is NULL in an ordinary process. It is set before the runtime starts, and is never
 * cleared. Only calls that make a system call, or lie on a slow path, ask for it.
 *
 * In builds with GORO_SIM_POINTS (preset sim) each operation of atomic.h is a point as
 * well: there the simulation may go on with another thread. So each order of the atomic
 * operations of all threads can be drawn. Without it the points are the calls below.
 */
#ifndef GORO_SIM_H
#define GORO_SIM_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pollfd;

/* What answers in place of the kernel: as the function of os.h with the same name. */
struct sim_os {
	int64_t (*now)(void);
	void (*sleep)(int64_t ns);
	void (*yield)(void);
	int (*futex_wait)(uint32_t *word, uint32_t value, int64_t timeout_ns);
	int (*futex_wake)(uint32_t *word, int n);
	void (*membarrier)(void);
	int (*poll)(struct pollfd *p, size_t n, int64_t timeout_ns);
	int (*tid)(void);
	int (*cpu)(void);
	int (*threads)(void);
	int64_t (*thread_cpu)(int tid);		/* 0: the caller */
	int64_t (*process_cpu)(void);
	bool (*thread_is_asleep)(int tid);
	void (*signal)(int tid, int sig, const siginfo_t *info);
	int (*thread_make)(void *(*fn)(void *), void *arg);
	/* The stack of the calling thread; false: it is one of the kernel's. */
	bool (*thread_stack)(char **lo, char **hi);
	int (*cpus)(void);
	int (*procs)(void);	/* if the program does not say how many */
	/* An M enters or leaves the runtime: border.c. */
	void (*border)(void);
};
extern const struct sim_os *sim __attribute__((visibility("hidden")));

#ifndef GORO_SIM_POINTS
#define GORO_SIM_POINTS 0
#endif
#if GORO_SIM_POINTS
/* Points until sim_point_due is to be called. */
extern int sim_points_left __attribute__((visibility("hidden")));
extern void (*sim_point_due)(void) __attribute__((visibility("hidden")));
#define SIM_POINT()                                                     \
	do {                                                            \
		if (__builtin_expect(--sim_points_left < 0, 0))         \
			sim_point_due();                                \
	} while (0)
#else
#define SIM_POINT() ((void)0)
#endif

#endif

/*
 * gomaxprocs.c - how many goroutines should run at once, and a controller that finds out.
 *
 *	./gomaxprocs sweep        throughput and latency by GOMAXPROCS, 1 to 2N, N being
 *the CPUs
 *	./gomaxprocs control      the controller, with loads that compute, that wait, that
 *change
 *	./gomaxprocs model        the controller on loads that are formulas: the same on
 *any machine
 */
#define _GNU_SOURCE
#include "controller.h"
#include "measure.h"

#include <string.h>

#define COMPUTERS      8
#define COMPUTE_NS     (200 * GORO_MICROSECOND)
#define CONNECTIONS    64
#define ANSWER_NS      (2 * GORO_MICROSECOND)
#define SAMPLES_MAX    1000000
#define SWEEP_NS       (GORO_SECOND / 2)
#define SLEEP_NS       (4 * GORO_MILLISECOND)
#define INTERVAL_NS    (40 * GORO_MILLISECOND)
#define PHASE_NS       (1600 * GORO_MILLISECOND)

/* -------------------------------------------------------------------- loads */

/* Goroutines that repeat something until stop is set. */
struct load {
	atomic_bool stop;
	goro_waitgroup all;
	struct samples took;	/* ns each time */
};

static atomic_ullong done;	/* by all loads */

static void count(struct load *l, int64_t start)
{
	samples_add(&l->took, goro_now() - start);
	atomic_fetch_add_explicit(&done, 1, memory_order_relaxed);
}

static void computer(struct load *l)
{
	while (!atomic_load_explicit(&l->stop, memory_order_relaxed)) {
		int64_t start = goro_now();

		work(COMPUTE_NS);
		count(l, start);
	}
	goro_waitgroup_done(&l->all);
}

static void client(struct load *l, int fd)
{
	while (!atomic_load_explicit(&l->stop, memory_order_relaxed)) {
		int64_t start = goro_now();

		ask(fd);
		count(l, start);
	}
	goro_close(fd);
	goro_waitgroup_done(&l->all);
}

static void server(struct load *l, int fd)
{
	answer(fd, ANSWER_NS);
	goro_waitgroup_done(&l->all);
}

static void start_compute(struct load *l)
{
	goro_waitgroup_add(&l->all, COMPUTERS);
	for (int i = 0; i < COMPUTERS; i++)
		go(computer, l);
}

static void start_io(struct load *l)
{
	goro_waitgroup_add(&l->all, 2 * CONNECTIONS);
	for (int i = 0; i < CONNECTIONS; i++) {
		int fd[2];

		connect_pair(fd);
		go(server, l, fd[0]);
		go(client, l, fd[1]);
	}
}

static const struct kind {
	const char *name;
	void (*start)(struct load *l);
} kinds[] = { { "compute", start_compute }, { "io", start_io } };

static struct load *load_begin(const struct kind *k)
{
	struct load *l = allocate(1, sizeof *l);

	samples_init(&l->took, SAMPLES_MAX);
	k->start(l);
	return l;
}

static void load_end(struct load *l)
{
	atomic_store(&l->stop, true);
	goro_waitgroup_wait(&l->all);
	samples_sort(&l->took);
}

static void load_free(struct load *l)
{
	samples_free(&l->took);
	free(l);
}

/* -------------------------------------------------------------------- sweep */

/* Beside the load: how late a sleep ends. It is seldom enough not to be a load itself. */
struct sleeper {
	atomic_bool stop;
	goro_waitgroup ended;
	struct samples late;
};

static void sleeper(struct sleeper *s)
{
	while (!atomic_load(&s->stop)) {
		int64_t due = goro_now() + SLEEP_NS;

		goro_sleep(SLEEP_NS);
		samples_add(&s->late, goro_now() - due);
	}
	goro_waitgroup_done(&s->ended);
}

static void sweep_one(const struct kind *k, int procs)
{
	struct sleeper s = { 0 };
	struct load *l;
	int64_t start, ns;

	goro_gomaxprocs(procs);
	samples_init(&s.late, SAMPLES_MAX);
	goro_waitgroup_add(&s.ended, 1);
	l = load_begin(k);
	go(sleeper, &s);
	start = goro_now();
	goro_sleep(SWEEP_NS);
	load_end(l);
	ns = goro_now() - start;
	atomic_store(&s.stop, true);
	goro_waitgroup_wait(&s.ended);
	samples_sort(&s.late);
	printf("%-8s %10d %8.0f %8.0f %8.0f %17.0f\n", k->name, procs,
	       (double)samples_count(&l->took) * 1e9 / (double)ns,
	       us(samples_quantile(&l->took, .5)), us(samples_quantile(&l->took, .99)),
	       us(samples_quantile(&s.late, .99)));
	fflush(stdout);
	samples_free(&s.late);
	load_free(l);
}

static int sweep(int cpus)
{
	printf("== sweep\n%-8s %10s %8s %8s %8s %17s\n", "load", "GOMAXPROCS", "done/s",
	       "half_us", "99_%_us", "sleep_late_99_%_us");
	for (int k = 0; k < 2; k++)
		for (int procs = 1; procs <= 2 * cpus; procs++)
			sweep_one(&kinds[k], procs);
	return 0;
}

/* ------------------------------------------------------------------ control */

#define STEPS_MAX 1000

/* What was seen at each step. */
struct story {
	struct control ctl;
	goro_waitgroup ended;
	int64_t start;
	int n;
	struct {
		double ms, rate;
		int procs;
	} at[STEPS_MAX];
};

static void seen(void *arg, double rate, int procs)
{
	struct story *t = arg;

	if (t->n < STEPS_MAX) {
		t->at[t->n].ms = (double)(goro_now() - t->start) / 1e6;
		t->at[t->n].rate = rate;
		t->at[t->n++].procs = procs;
	}
}

static void controls(struct story *t)
{
	control_run(&t->ctl);
	goro_waitgroup_done(&t->ended);
}

/* The rate over the last third of the steps. */
static double rate_at_end(const struct story *t)
{
	double sum = 0;
	int from = t->n * 2 / 3;

	for (int i = from; i < t->n; i++)
		sum += t->at[i].rate;
	return t->n > from ? sum / (t->n - from) : 0;
}

/* When it came to where it ended, not counting single tries. */
static double settled_ms(const struct story *t)
{
	int i = t->n - 1;

	while (i > 0 &&
	       (t->at[i].procs == t->ctl.c.procs || t->at[i - 1].procs == t->ctl.c.procs))
		i--;
	return t->n ? t->at[i].ms : 0;
}

static struct story *story_begin(int procs, int most)
{
	struct story *t = allocate(1, sizeof *t);

	controller_init(&t->ctl.c, 1, most, procs);
	t->ctl.interval = INTERVAL_NS;
	t->ctl.done = &done;
	t->ctl.seen = seen;
	t->ctl.arg = t;
	t->start = goro_now();
	goro_waitgroup_add(&t->ended, 1);
	go(controls, t);
	return t;
}

static void story_end(struct story *t)
{
	atomic_store(&t->ctl.stop, true);
	goro_waitgroup_wait(&t->ended);
}

static void converge(const struct kind *k, int procs, int most)
{
	struct load *l = load_begin(k);
	struct story *t = story_begin(procs, most);
	double ms;

	goro_sleep(PHASE_NS);
	story_end(t);
	load_end(l);
	ms = (double)(goro_now() - t->start) / 1e6;
	printf("%-8s %5d %5d %10.0f %9.0f %6u %8u %10.1f %8.3f\n", k->name, procs,
	       t->ctl.c.procs, settled_ms(t), rate_at_end(t), t->ctl.c.tries,
	       t->ctl.changes, us(t->ctl.spent) / t->ctl.steps,
	       (double)t->ctl.spent / 1e4 / ms);
	fflush(stdout);
	load_free(l);
	free(t);
}

static void change(int most)
{
	static const int order[] = { 1, 0, 1, 0 };
	struct story *t = story_begin(1, most);

	for (int i = 0; i < 4; i++) {
		struct load *l = load_begin(&kinds[order[i]]);

		goro_sleep(PHASE_NS);
		printf("%-8d %8s %6d\n", i + 1, kinds[order[i]].name, t->ctl.c.procs);
		load_end(l);
		load_free(l);
	}
	story_end(t);
	printf("\n== story\nms GOMAXPROCS done/s\n");
	for (int i = 0; i < t->n; i++)
		printf("%.0f %d %.0f\n", t->at[i].ms, t->at[i].procs, t->at[i].rate);
	free(t);
}

static int control(int cpus)
{
	printf("== control\n%-8s %5s %5s %10s %9s %6s %8s %10s %8s\n", "load", "from",
	       "to", "after_ms", "done/s", "tries", "changes", "us_a_step", "cost_%");
	for (int k = 0; k < 2; k++) {
		converge(&kinds[k], 1, 2 * cpus);
		converge(&kinds[k], 2 * cpus, 2 * cpus);
	}
	printf("\n== change\n%-8s %8s %6s\n", "phase", "load", "ends_at");
	change(2 * cpus);
	return 0;
}

/* -------------------------------------------------------------------- model */

#define MODEL_STEPS 400

static double at_most(double a, double b)
{
	return a < b ? a : b;
}

/* 8 CPUs: each processor helps up to there. */
static double computes(int p, int step)
{
	(void)step;
	return 1000 * at_most(p, 8);
}

/* One goroutine hands work to the next: a second processor brings 5 %. */
static double in_turn(int p, int step)
{
	(void)step;
	return p == 1 ? 1000 : 1050;
}

/* They fight for a lock: beyond 4 processors all of it gets slower. */
static double fights(int p, int step)
{
	(void)step;
	return p <= 4 ? 1000 * p : 4000 - 250 * (p - 4);
}

static double changes(int p, int step)
{
	return step / (MODEL_STEPS / 4) % 2 ? in_turn(p, step) : computes(p, step);
}

static const struct model {
	const char *name;
	double (*at)(int procs, int step);
	int best;
} models[] = {
	{"computes", computes, 8},
	{"in_turn", in_turn, 1},
	{"fights", fights, 4},
	{"changes", changes, 1},
};

/* Up to 2 % more or less, the same in each run. */
static double noise(unsigned *seed)
{
	*seed = *seed * 1103515245 + 12345;
	return 1 + .02 * ((double)(*seed >> 16 & 0xfff) / 2048 - 1);
}

static void model_run(const struct model *m, int from)
{
	struct controller c;
	unsigned seed = 1, late = 0;
	int procs = from, settled = 0;

	controller_init(&c, 1, 16, from);
	for (int i = 0; i < MODEL_STEPS; i++) {
		int was = c.procs;

		procs = controller_next(&c, m->at(procs, i) * noise(&seed));
		if (c.procs != was)
			settled = i;
		if (i >= MODEL_STEPS - 100)
			late += c.trying != 0;
	}
	printf("%-9s %5d %5d %5d %14d %22u\n", m->name, from, c.procs, m->best, settled,
	       late);
}

static int model(void)
{
	printf("== model\n%-9s %5s %5s %5s %14s %22s\n", "load", "from", "to", "best",
	       "after_intervals", "tries_in_the_last_100");
	for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
		model_run(&models[i], 1);
		model_run(&models[i], 16);
	}
	return 0;
}

static int start(int argc, char **argv)
{
	const char *what = argc == 2 ? argv[1] : "";

	calibrate();
	if (strcmp(what, "sweep") == 0)
		return sweep(goro_num_cpu());
	if (strcmp(what, "control") == 0)
		return control(goro_num_cpu());
	if (strcmp(what, "model") == 0)
		return model();
	fprintf(stderr, "usage: gomaxprocs sweep|control|model\n");
	return 2;
}
GORO_MAIN(start)

/*
 * pools.c - eight ways to have tasks done, under three patterns of load.
 *
 *	./pools rate        tasks of 0.1 us, as fast as they are taken: throughput
 *	./pools patterns    tasks that come at given times: latency and backpressure
 *
 * A pattern is a list of tasks, each with the time at which it comes in. Latency counts
 *from that time, also while the submitter is kept waiting: otherwise a pool that keeps it
 *waiting would look quick.
 */
#define _GNU_SOURCE
#include "pools.h"

#include <math.h>
#include <string.h>

#define WORKERS      32
#define QUEUE        64		/* of the pools that are bounded */
#define WORKERS_LOW  4		/* of the one that resizes */
#define WORKERS_HIGH 128
#define RESIZE_NS    (2 * GORO_MILLISECOND)
#define PATIENCE_NS  (5 * GORO_MILLISECOND)

#define RATE_TASKS     50000
#define PATTERN_TASKS  4000
#define PATTERN_NS     (400 * GORO_MILLISECOND)
#define BURST          500

/* ------------------------------------------------------------------ one run */

struct pool {
	goro_pool *goro;
	struct per_p *per_p;
	struct batches *batches;
	goro_sema slots;
	goro_waitgroup all;
	atomic_bool closed;
};

/* What happens in the run that is on. */
static struct {
	struct pool pool;
	struct samples latency;
	atomic_uint started, done;
	unsigned refused;		/* for want of room */
	unsigned queued_most;	/* tasks that came in and were not started */
	atomic_size_t goroutines_most;
	int64_t kept;		/* ns that the submitter was kept waiting */
} run;

static void look_at_goroutines(void)
{
	size_t n = goro_num_goroutine(), most = atomic_load(&run.goroutines_most);

	while (n > most && !atomic_compare_exchange_weak(&run.goroutines_most, &most, n))
		continue;
}

void task_run(void *arg)
{
	struct task *t = arg;

	if (atomic_fetch_add(&run.started, 1) % 16 == 0)
		look_at_goroutines();
	work(t->compute_ns);
	if (t->wait_ns > 0)
		goro_sleep(t->wait_ns);
	samples_add(&run.latency, goro_now() - t->due);
	atomic_fetch_add(&run.done, 1);
}

/* -------------------------------------------------------------------- pools */

/* A goroutine for each task. */
static void spawned(struct task *t)
{
	task_run(t);
	goro_waitgroup_done(&run.pool.all);
}

static bool spawn_submit(struct task *t)
{
	goro_waitgroup_add(&run.pool.all, 1);
	return go(spawned, t) == 0;
}

static void spawn_close(void)
{
	goro_waitgroup_wait(&run.pool.all);
}

/* A goroutine for each task, but at most WORKERS at once. Who ends is used again by the
 * runtime, with its stack. */
static void slots_open(void)
{
	goro_sema_init(&run.pool.slots, WORKERS);
}

static void slotted(struct task *t)
{
	task_run(t);
	goro_sema_release(&run.pool.slots, 1);
	goro_waitgroup_done(&run.pool.all);
}

static bool slots_submit(struct task *t)
{
	goro_sema_acquire(&run.pool.slots, 1, GORO_FOREVER);
	goro_waitgroup_add(&run.pool.all, 1);
	return go(slotted, t) == 0;
}

/* goro_pool: so many workers, with room for everything, or for QUEUE. */
static void open_pool(int workers, size_t queue)
{
	run.pool.goro = goro_pool_make(workers, queue);
	if (!run.pool.goro)
		goro_panic("no pool");
}

static void fixed_open(void)
{
	open_pool(WORKERS, RATE_TASKS);
}

static void bounded_open(void)
{
	open_pool(WORKERS, QUEUE);
}

static bool pool_submit(struct task *t)
{
	return goro_pool_submit(run.pool.goro, task_run, t, GORO_FOREVER) == 0;
}

/* Refuses what finds no room in time. */
static bool shed_submit(struct task *t)
{
	return goro_pool_submit(run.pool.goro, task_run, t,
				goro_deadline_in(PATIENCE_NS)) == 0;
}

static void pool_close(void)
{
	goro_pool_close(run.pool.goro);
}

/* goro_pool, and a goroutine that doubles the workers when all are busy and tasks wait,
 * and takes a quarter away when three quarters are idle. */
static void resizer(void)
{
	int workers = WORKERS_LOW;

	struct goro_pool_stats s = { 0 };

	while (!atomic_load(&run.pool.closed) || s.queued > 0) {
		int wanted = workers;

		goro_sleep(RESIZE_NS);
		goro_pool_stats(run.pool.goro, &s);
		if (s.queued > 0 && s.busy >= workers)
			wanted = 2 * workers < WORKERS_HIGH ? 2 * workers : WORKERS_HIGH;
		else if (s.busy < workers / 4)
			wanted = workers * 3 / 4 > WORKERS_LOW ? workers * 3 / 4
							       : WORKERS_LOW;
		if (wanted != workers && goro_pool_resize(run.pool.goro, wanted) == 0)
			workers = wanted;
	}
	goro_waitgroup_done(&run.pool.all);
}

static void resizing_open(void)
{
	open_pool(WORKERS_LOW, RATE_TASKS);
	goro_waitgroup_add(&run.pool.all, 1);
	go(resizer);
}

static void resizing_close(void)
{
	atomic_store(&run.pool.closed, true);
	goro_waitgroup_wait(&run.pool.all);
	goro_pool_close(run.pool.goro);
}

static void per_p_open(void)
{
	run.pool.per_p = per_p_make(goro_gomaxprocs(0), WORKERS);
}

static bool per_p_send(struct task *t)
{
	per_p_submit(run.pool.per_p, t);
	return true;
}

static void per_p_end(void)
{
	per_p_close(run.pool.per_p);
}

static void batch_open(void)
{
	run.pool.batches = batches_make(WORKERS, QUEUE);
}

static bool batch_send(struct task *t)
{
	batches_submit(run.pool.batches, t);
	return true;
}

static void batch_end(void)
{
	batches_close(run.pool.batches);
}

static void nothing(void)
{
}

static const struct kind {
	const char *name;
	void (*open)(void);
	bool (*submit)(struct task *t);	/* false: refused */
	void (*close)(void);		/* once all is done */
} kinds[] = {
	{ "spawn", nothing, spawn_submit, spawn_close },
	{ "recycle", slots_open, slots_submit, spawn_close },
	{ "fixed", fixed_open, pool_submit, pool_close },
	{ "bounded", bounded_open, pool_submit, pool_close },
	{ "shedding", bounded_open, shed_submit, pool_close },
	{ "resizing", resizing_open, pool_submit, resizing_close },
	{ "per_P", per_p_open, per_p_send, per_p_end },
	{ "batch", batch_open, batch_send, batch_end },
};
#define KINDS (sizeof kinds / sizeof kinds[0])

/* ---------------------------------------------------------------------- runs */

static void look(unsigned submitted)
{
	unsigned queued = submitted - atomic_load(&run.started);

	if (queued > run.queued_most && queued <= submitted)
		run.queued_most = queued;
}

/* Submits each task when it is due; those without a time at once. */
static void submit_all(const struct kind *k, struct task *task, unsigned n, int64_t start)
{
	unsigned submitted = 0;

	for (unsigned i = 0; i < n; i++) {
		int64_t began = goro_now();

		if (start > 0)
			task[i].due += start;
		else
			task[i].due = began;
		if (task[i].due > began) {
			goro_sleep(task[i].due - began);
			began = goro_now();
		}
		if (k->submit(&task[i]))
			look(++submitted);
		else
			run.refused++;
		run.kept += goro_now() - began;
	}
}

/* ns from the first submit until all was done. */
static int64_t run_all(const struct kind *k, struct task *task, unsigned n, bool timed)
{
	int64_t start;

	memset(&run, 0, sizeof run);
	samples_init(&run.latency, n);
	k->open();
	goro_sleep(5 * GORO_MILLISECOND);	/* the workers are there and wait */
	start = goro_now();
	submit_all(k, task, n, timed ? start : 0);
	k->close();
	samples_sort(&run.latency);
	return goro_now() - start;
}

static uint64_t created(void)
{
	struct goro_stats s;

	goro_stats_read(&s);
	return s.goroutines_created;
}

static int rate(void)
{
	struct task *task = allocate(RATE_TASKS, sizeof *task);

	printf("== rate\n%-9s %10s %8s %11s %16s %8s\n", "pool", "tasks/s", "ns_each",
	       "goroutines", "of_them_at_once", "done");
	for (size_t i = 0; i < KINDS; i++) {
		uint64_t before = created();
		int64_t ns;

		for (int j = 0; j < RATE_TASKS; j++)
			task[j] = (struct task){ .compute_ns = 100 };
		ns = run_all(&kinds[i], task, RATE_TASKS, false);
		printf("%-9s %10.0f %8.0f %11d %16d %8u\n", kinds[i].name,
		       RATE_TASKS * 1e9 / (double)ns, (double)ns / RATE_TASKS,
		       (int)(created() - before), (int)atomic_load(&run.goroutines_most),
		       atomic_load(&run.done));
		fflush(stdout);
		samples_free(&run.latency);
	}
	free(task);
	return 0;
}

/* ------------------------------------------------------------------- patterns */

/* In [0, 1), the same in each run. */
static double random_share(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005 + 1442695040888963407;
	return (double)(*seed >> 11) / (double)(UINT64_C(1) << 53);
}

/* One after the other, evenly; each waits a millisecond. */
static void steady(struct task *t, int i, uint64_t *seed)
{
	(void)seed;
	t->due = PATTERN_NS / PATTERN_TASKS * i;
	t->wait_ns = GORO_MILLISECOND;
}

/* As many, but BURST at once. */
static void bursty(struct task *t, int i, uint64_t *seed)
{
	steady(t, i / BURST * BURST, seed);
}

/* Evenly, but how long they wait differs: one in a hundred 45 times as long as the
 * median. */
static void heavy(struct task *t, int i, uint64_t *seed)
{
	double ms = .4 * pow(1 - random_share(seed), -1 / 1.1);

	steady(t, i, seed);
	t->wait_ns = (int64_t)((ms < 100 ? ms : 100) * GORO_MILLISECOND);
}

static const struct pattern {
	const char *name;
	void (*make)(struct task *t, int i, uint64_t *seed);
} patterns[] = { { "steady", steady }, { "bursty", bursty }, { "heavy_tail", heavy } };

static void pattern_run(const struct pattern *p, const struct kind *k, struct task *task)
{
	uint64_t seed = 1;

	for (int i = 0; i < PATTERN_TASKS; i++) {
		task[i] = (struct task){ .compute_ns = 20 * GORO_MICROSECOND };
		p->make(&task[i], i, &seed);
	}
	run_all(k, task, PATTERN_TASKS, true);
	printf("%-10s %-9s %8.2f %8.2f %8.2f %12u %8.0f %8u %8u %16d\n", p->name, k->name,
	       us(samples_quantile(&run.latency, .5)) / 1e3,
	       us(samples_quantile(&run.latency, .99)) / 1e3,
	       us(samples_quantile(&run.latency, 1)) / 1e3, run.queued_most,
	       us(run.kept) / 1e3, run.refused, atomic_load(&run.done),
	       (int)atomic_load(&run.goroutines_most));
	fflush(stdout);
	samples_free(&run.latency);
}

static int all_patterns(void)
{
	struct task *task = allocate(PATTERN_TASKS, sizeof *task);

	printf("== patterns\n%-10s %-9s %8s %8s %8s %12s %8s %8s %8s %16s\n", "pattern",
	       "pool", "half_ms", "99_%_ms", "most_ms", "most_queued", "kept_ms",
	       "refused", "done", "goroutines_most");
	for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++)
		for (size_t k = 0; k < KINDS; k++)
			pattern_run(&patterns[i], &kinds[k], task);
	free(task);
	return 0;
}

static int start(int argc, char **argv)
{
	calibrate();
	if (argc == 2 && strcmp(argv[1], "rate") == 0)
		return rate();
	if (argc == 2 && strcmp(argv[1], "patterns") == 0)
		return all_patterns();
	fprintf(stderr, "usage: pools rate|patterns\n");
	return 2;
}
GORO_MAIN(start)

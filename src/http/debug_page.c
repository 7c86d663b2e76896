/*
 * debug_page.c - the live page of the debug server, and its figures, for Prometheus, too
 *
 * The page is one file (debug_page.html) that fetches the figures every second and
 * computes rates from their differences. As in metrics.c, the figures are read while they
 * change: nothing is stopped for them.
 *
 * The reasons for which goroutines wait are found by looking at each goroutine. That
 * touches a page of memory for each, which may be in no cache or swapped out. So they are
 * left out with more than REASONS_MAX goroutines, unless the query has reasons=1.
 */
#include "http/debug_http.h"

#include <goro.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hook.h"
#include "platform/os.h"
#include "profile/profile.h"
#include "sched/runq.h"
#include "sched/runtime.h"
#include "stack/stack.h"

#define REASONS_MAX 50000

extern const char page_html[], page_html_end[];
__asm__(".pushsection .rodata\n"
        ".hidden page_html\n"
        ".globl page_html\n"
        "page_html:\n"
        ".incbin \"" GORO_SOURCE_DIR "/http/debug_page.html\"\n"
        ".hidden page_html_end\n"
        ".globl page_html_end\n"
        "page_html_end:\n"
        ".byte 0\n"
        ".popsection");

void page_live(const struct http_request *rq, struct reply *rp)
{
	(void)rq;
	rp->type = "text/html; charset=utf-8";
	fwrite(page_html, 1, (size_t)(page_html_end - page_html), rp->out);
}

/* ----------------------------------------------------------------- the process */

struct process {
	double cpu_user_s, cpu_system_s;
	double start_s;			/* since 1970 */
	uint64_t resident_bytes, virtual_bytes;
	uint64_t fds, fds_max;
	char name[256];
};

static void read_memory(struct process *p)
{
	unsigned long long pages = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (!f)
		return;
	if (fscanf(f, "%llu %llu", &pages, &resident) == 2) {
		p->virtual_bytes = pages * os_page_bytes;
		p->resident_bytes = resident * os_page_bytes;
	}
	fclose(f);
}

/* Since Linux 6.2 the size of the directory is the number of descriptors; before, 0. */
static uint64_t count_fds(void)
{
	struct stat st;

	return stat("/proc/self/fd", &st) == 0 ? (uint64_t)st.st_size : 0;
}

static int64_t loaded_at;	/* when the library was, in ns since 1970 */

static void note_load(void)
{
	loaded_at = profile_wall_now();
}
AT_LOAD(note_load);

static double seconds_of(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static void read_process(struct process *p)
{
	struct rusage use;
	struct rlimit limit;
	ssize_t n;

	*p = (struct process){ .start_s = (double)loaded_at / 1e9, .fds = count_fds() };
	read_memory(p);
	if (getrusage(RUSAGE_SELF, &use) == 0) {
		p->cpu_user_s = seconds_of(use.ru_utime);
		p->cpu_system_s = seconds_of(use.ru_stime);
	}
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		p->fds_max = limit.rlim_cur;
	n = readlink("/proc/self/exe", p->name, sizeof p->name - 1);
	p->name[n > 0 ? n : 0] = '\0';
}

/* ------------------------------------------------------------------ the runtime */

/* reasons: a number for each enum wait_reason. */
static TOOL_RACY void count_reason(struct g *gp, void *reasons)
{
	uint64_t *n = reasons;
	uint8_t why = peek(&gp->wait_reason);

	if (peek(&gp->status) == G_WAITING && why < WAIT_REASON_COUNT)
		n[why]++;
}

struct histogram {
	uint64_t count[LATENCY_BUCKETS];
	double upper[LATENCY_BUCKETS];
};

/* -------------------------------------------------------------------- the figures */

/* Writes a string in quotes, as both JSON and Prometheus have it. */
static void put_string(FILE *out, const char *s)
{
	putc('"', out);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			putc('\\', out);
		if ((unsigned char)*s >= ' ')
			putc(*s, out);
	}
	putc('"', out);
}

static void put_number(FILE *out, const char *name, uint64_t v)
{
	fprintf(out, "\"%s\":%llu,", name, (unsigned long long)v);
}

#define STATS_LIST(X)                                                                      \
	X(goroutines_created) X(goroutines_live) X(runnable) X(running) X(waiting)         \
	X(in_syscall) X(threads) X(idle_threads) X(gomaxprocs) X(idle_procs)               \
	X(spinning_threads) X(context_switches) X(steals) X(stolen) X(preemptions)         \
	X(syscall_handoffs) X(netpoll_wakeups) X(timers) X(parks) X(thread_wakeups)        \
	X(stack_bytes_reserved) X(stack_bytes_cached)

static TOOL_RACY void put_proc(FILE *out, const struct p *pp)
{
	static const char *const status[] = { "idle", "running", "syscall", "stopped", "dead" };
	uint32_t s = P_STATUS_OF(load_relaxed(&pp->status));
	const struct m *mp = peek(&pp->mp);
	const struct g *gp = mp ? peek(&mp->curg) : NULL;

	fprintf(out, "{\"id\":%d,\"status\":\"%s\",\"queue\":%zu,\"timers\":%u,\"switches\":%llu,"
	        "\"thread\":%d,\"goroutine\":%llu}",
	        pp->id, s < 5 ? status[s] : "?", (size_t)runq_length(pp), timers_count(&pp->timers),
	        (unsigned long long)load_relaxed(&pp->count.switches), mp ? peek(&mp->tid) : 0,
	        gp ? (unsigned long long)peek(&gp->id) : 0);
}

static void put_procs(FILE *out)
{
	fputs("\"procs\":[", out);
	for (int i = 0, n = load_acquire(&sched.gomaxprocs); i < n; i++) {
		if (i > 0)
			putc(',', out);
		put_proc(out, p_at(i));
	}
	fputs("],", out);
}

static void put_reasons(FILE *out, const uint64_t *n)
{
	bool any = false;

	fputs("\"reasons\":{", out);
	for (int i = 1; i < WAIT_REASON_COUNT; i++)
		if (n[i] > 0) {
			fprintf(out, "%s\"%s\":%llu", any ? "," : "",
			        wait_reason_text((enum wait_reason)i), (unsigned long long)n[i]);
			any = true;
		}
	fputs("},", out);
}

/* A bucket's end; the last bucket has none, and counts as one of no width. */
static double upper_end(const struct histogram *h, size_t i)
{
	return h->upper[i + 1 < LATENCY_BUCKETS ? i : i - 1];
}

/* Writes the end and the count of each bucket that is not empty. */
static void put_latency(FILE *out, const struct histogram *h)
{
	bool any = false;

	fputs("\"latency\":[", out);
	for (size_t i = 0; i < LATENCY_BUCKETS; i++)
		if (h->count[i] > 0) {
			fprintf(out, "%s[%.9g,%llu]", any ? "," : "",
			        upper_end(h, i),
			        (unsigned long long)h->count[i]);
			any = true;
		}
	fputs("],", out);
}

static void put_process(FILE *out, const struct process *p)
{
	fputs("\"program\":", out);
	put_string(out, p->name);
	fprintf(out, ",\"pid\":%d,\"start\":%.3f,\"cpu\":%.3f,", (int)getpid(), p->start_s,
	        p->cpu_user_s + p->cpu_system_s);
	put_number(out, "resident_bytes", p->resident_bytes);
	put_number(out, "virtual_bytes", p->virtual_bytes);
	put_number(out, "fds", p->fds);
}

/* What both pages show. */
struct figures {
	struct goro_stats stats;
	struct process process;
	struct histogram latency;
	uint64_t reasons[WAIT_REASON_COUNT];
	bool has_reasons;	/* false: there are too many goroutines to look at */
};

static void read_figures(const struct http_request *rq, struct figures *f)
{
	char asked[2];

	*f = (struct figures){ .has_reasons = false };
	goro_stats_read(&f->stats);
	read_process(&f->process);
	goro_sched_latency(f->latency.count, f->latency.upper, LATENCY_BUCKETS);
	f->has_reasons = f->stats.goroutines_live <= REASONS_MAX ||
	                 http_query(rq, "reasons", asked, sizeof asked);
	if (f->has_reasons)
		stack_each(count_reason, f->reasons);
}

void page_stats(const struct http_request *rq, struct reply *rp)
{
	struct figures f;

	read_figures(rq, &f);
	rp->type = "application/json";
	putc('{', rp->out);
#define X(name) put_number(rp->out, #name, f.stats.name);
	STATS_LIST(X)
#undef X
	put_number(rp->out, "global_queue", globq_length());
	if (f.has_reasons)
		put_reasons(rp->out, f.reasons);
	put_procs(rp->out);
	put_latency(rp->out, &f.latency);
	put_process(rp->out, &f.process);
	fprintf(rp->out, "\"version\":\"%s\",\"now\":%lld}\n", GORO_VERSION, (long long)goro_now());
}

/* --------------------------------------------------------------------- Prometheus */

static void metric(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void metric_one(FILE *out, const char *name, const char *type, const char *help, double v)
{
	metric(out, name, type, help);
	fprintf(out, "%s %.17g\n", name, v);
}

static void metric_states(FILE *out, const struct goro_stats *s)
{
	metric(out, "goro_goroutines", "gauge", "Goroutines that have not ended, by state.");
	fprintf(out, "goro_goroutines{state=\"runnable\"} %llu\n"
	        "goro_goroutines{state=\"running\"} %llu\n"
	        "goro_goroutines{state=\"waiting\"} %llu\n"
	        "goro_goroutines{state=\"syscall\"} %llu\n",
	        (unsigned long long)s->runnable, (unsigned long long)s->running,
	        (unsigned long long)s->waiting, (unsigned long long)s->in_syscall);
	metric(out, "goro_threads", "gauge", "OS threads of the runtime, by state.");
	fprintf(out, "goro_threads{state=\"idle\"} %llu\ngoro_threads{state=\"spinning\"} %llu\n"
	        "goro_threads{state=\"busy\"} %lld\n",
	        (unsigned long long)s->idle_threads, (unsigned long long)s->spinning_threads,
	        (long long)(s->threads - s->idle_threads - s->spinning_threads));
}

static void metric_reasons(FILE *out, const uint64_t *n)
{
	metric(out, "goro_goroutines_waiting", "gauge", "Waiting goroutines, by what they wait for.");
	for (int i = 1; i < WAIT_REASON_COUNT; i++)
		fprintf(out, "goro_goroutines_waiting{reason=\"%s\"} %llu\n",
		        wait_reason_text((enum wait_reason)i), (unsigned long long)n[i]);
}

/* Prometheus gets each fourth bucket. The sum takes a bucket's middle for its times. */
#define METRIC_BUCKETS_EACH 4

static void metric_latency(FILE *out, const struct histogram *h)
{
	const char *name = "goro_sched_latency_seconds";
	unsigned long long below = 0;
	double sum = 0;

	metric(out, name, "histogram", "Time from ready to running, of a sample of goroutines.");
	for (size_t i = 0; i < LATENCY_BUCKETS; i++) {
		double lower = i > 0 ? h->upper[i - 1] : 0, upper = upper_end(h, i);

		below += h->count[i];
		if (h->count[i])
			sum += (double)h->count[i] * (lower + upper) / 2;
		if (i + 1 < LATENCY_BUCKETS && i % METRIC_BUCKETS_EACH == 0 && upper > 0)
			fprintf(out, "%s_bucket{le=\"%.9g\"} %llu\n", name, upper, below);
	}
	fprintf(out, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %.9g\n%s_count %llu\n", name, below, name,
	        sum, name, below);
}

/* name, field, help */
#define COUNTER_LIST(X)                                                                         \
	X(goroutines_created, "Goroutines started.")                                            \
	X(context_switches, "Goroutines that were given a processor.")                          \
	X(parks, "Goroutines that began to wait.")                                              \
	X(steals, "Times a processor took goroutines from another.")                            \
	X(stolen, "Goroutines taken by one processor from another.")                            \
	X(preemptions, "Goroutines that had to give way.")                                      \
	X(syscall_handoffs, "Processors taken from goroutines in blocking calls.")              \
	X(netpoll_wakeups, "Goroutines that the poller woke.")                                  \
	X(thread_wakeups, "Threads that were woken or made.")
#define GAUGE_LIST(X)                                                                           \
	X(gomaxprocs, "Goroutines that may run at once.")                                       \
	X(idle_procs, "Processors without work.")                                               \
	X(timers, "Timers that are set.")                                                       \
	X(stack_bytes_reserved, "Address space taken for stacks.")                              \
	X(stack_bytes_cached, "Stacks kept for reuse.")

void page_metrics(const struct http_request *rq, struct reply *rp)
{
	FILE *out = rp->out;
	struct figures f;
	const struct process *p = &f.process;

	read_figures(rq, &f);
	rp->type = "text/plain; version=0.0.4; charset=utf-8";
	metric_states(out, &f.stats);
	if (f.has_reasons)
		metric_reasons(out, f.reasons);
#define X(name, help) metric_one(out, "goro_" #name "_total", "counter", help, (double)f.stats.name);
	COUNTER_LIST(X)
#undef X
#define X(name, help) metric_one(out, "goro_" #name, "gauge", help, (double)f.stats.name);
	GAUGE_LIST(X)
#undef X
	metric_latency(out, &f.latency);
	metric_one(out, "process_cpu_seconds_total", "counter", "CPU time used.",
	           p->cpu_user_s + p->cpu_system_s);
	metric_one(out, "process_resident_memory_bytes", "gauge", "Memory in use.",
	           (double)p->resident_bytes);
	metric_one(out, "process_virtual_memory_bytes", "gauge", "Address space in use.",
	           (double)p->virtual_bytes);
	metric_one(out, "process_start_time_seconds", "gauge", "When the process started.", p->start_s);
	if (p->fds > 0)
		metric_one(out, "process_open_fds", "gauge", "Open file descriptors.", (double)p->fds);
	metric_one(out, "process_max_fds", "gauge", "The limit on these.", (double)p->fds_max);
}

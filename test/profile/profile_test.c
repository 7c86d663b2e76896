/* Profiles by name: what they hold, and how they get to a descriptor. */
/* test: procs */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <goro.h>
#include <sys/socket.h>

#include "await.h"
#include "pprof.h"
#include "tail_call.h"

static goro_chan *forever;
static int waiting;

enum { WAIT_HERE_LINE = __LINE__ };
__attribute__((noinline)) static void wait_here(void)
{
	__atomic_fetch_add(&waiting, 1, __ATOMIC_SEQ_CST);
	goro_chan_recv(forever, NULL);
	__asm__ volatile("");	/* not a jump to it */
}

__attribute__((noinline)) static void waiter(void)
{
	wait_here();
	__asm__ volatile("");
}

static int waits_in_chan(void)
{
	struct goro_stats s;

	goro_stats_read(&s);
	return (int)s.waiting;
}

/* Waits until all wait by two counts: goro_stats_read's may be out for a moment. */
static void start_waiters(int n)
{
	int all = __atomic_load_n(&waiting, __ATOMIC_SEQ_CST) + n;

	if (!forever)
		forever = goro_chan_make(0, 0);
	for (int i = 0; i < n; i++)
		CHECK_EQ(go(waiter), 0);
	AWAIT(__atomic_load_n(&waiting, __ATOMIC_SEQ_CST) == all && waits_in_chan() >= all);
}

/* A profile in which n goroutines wait. */
static struct pprof_file *take_when_waiting(int n)
{
	struct pprof_file *p;

	while (p = pprof_take("goroutine"), pprof_sum_leaf(p, 0, "goro_chan_recv") < n)
		pprof_free(p);
	return p;
}

static bool same_stack(struct pprof_file *p, const struct pprof_sample *a,
                       const struct pprof_sample *b)
{
	for (int i = 0; i < a->n && i < b->n; i++)
		if (pprof_location_of(p, a->location[i])->address !=
		    pprof_location_of(p, b->location[i])->address)
			return false;
	return a->n == b->n;
}

GO_TEST(goroutines_are_counted_by_stack_with_names_files_and_lines)
{
	start_waiters(50);
	struct pprof_file *p = take_when_waiting(50);

	CHECK_EQ(p->types, 1);
	CHECK_STR(pprof_string(p, p->type[0].what), "goroutine");
	CHECK_STR(pprof_string(p, p->type[0].unit), "count");
	CHECK_STR(pprof_string(p, p->period_type.what), "goroutine");
	CHECK_EQ(p->period, 1);
	CHECK(p->time > INT64_C(1500000000) * 1000000000);
	CHECK_EQ(pprof_sum(p, 0, NULL), 51);
	CHECK_EQ(pprof_sum(p, 0, "waiter"), 50);
	CHECK_EQ(pprof_sum_leaf(p, 0, "goro_chan_recv"), 50);
	for (int i = 0; i < p->samples; i++) {
		const struct pprof_sample *s = &p->sample[i];
		if (!pprof_has(p, s, "waiter"))
			continue;
		/* One record a stack. A goroutine that found the channel locked, or was
		 * to be preempted, waits in another line of goro_chan_recv. */
		for (int j = 0; j < i; j++)
			CHECK(!same_stack(p, s, &p->sample[j]));
		CHECK_EQ(s->n, 3);
		CHECK_STR(pprof_frame(p, s, 0), "goro_chan_recv");
		CHECK_STR(pprof_frame(p, s, 1), "wait_here");
		CHECK_STR(pprof_frame(p, s, 2), "waiter");
		const struct pprof_location *l = pprof_location_of(p, s->location[1]);
		CHECK_CONTAINS(pprof_function_of(p, l->function)->file, "profile_test.c");
		CHECK(l->line > WAIT_HERE_LINE + 2 && l->line < WAIT_HERE_LINE + 6);
		const struct pprof_mapping *m = pprof_mapping_of(p, l->mapping);
		CHECK_CONTAINS(m->file, "profile_test");
		CHECK(m->has_functions);
		CHECK(l->address >= m->start && l->address < m->limit);
	}
	pprof_free(p);
}

GO_TEST(a_function_that_left_by_a_tail_call_is_there)
{
	goro_chan *c = goro_chan_make(0, 0);
	struct pprof_file *p;

	for (int i = 0; i < 10; i++)
		go(leaves_for_good, c);
	p = take_when_waiting(10);
	CHECK_EQ(pprof_sum(p, 0, "leaves_for_good"), 10);
	pprof_free(p);
}

GO_TEST(the_caller_is_there_too)
{
	struct pprof_file *p = pprof_take("goroutine");

	CHECK_EQ(pprof_sum(p, 0, NULL), 1);
	CHECK_EQ(pprof_sum_leaf(p, 0, "goro_profile_write"), 1);
	CHECK_EQ(pprof_sum(p, 0, "pprof_take"), 1);
	pprof_free(p);
}

static volatile bool stop, spinning;

/* Uninstrumented: a thread inside a sanitizer's function does not answer. */
TOOL_RACY __attribute__((noinline)) static void spin_in_user_code(void)
{
	spinning = true;
	while (!stop)
		;
}

static void spin_in_once(void *arg)
{
	(void)arg;
	spin_in_user_code();
	__asm__ volatile("");
}

static void burner(void)
{
	static goro_once once;

	goro_once_do(&once, spin_in_once, NULL);
}

GO_TEST(one_that_runs_is_shown_where_it_is)
{
	go(burner);
	AWAIT(__atomic_load_n(&spinning, __ATOMIC_RELAXED));
	goro_sleep(20 * GORO_MILLISECOND);
	struct pprof_file *p = pprof_take("goroutine");
	CHECK_EQ(pprof_sum(p, 0, NULL), 2);
	/* With one P it was preempted, in user code. */
	CHECK_EQ(pprof_sum(p, 0, "spin_in_user_code"), 1);
	CHECK_EQ(pprof_sum_leaf(p, 0, "spin_in_user_code"), 1);
	pprof_free(p);
	__atomic_store_n(&stop, true, __ATOMIC_SEQ_CST);
}

static void named(void)
{
	goro_set_name("reader");
	wait_here();
	__asm__ volatile("");
}

GO_TEST(names_are_labels)
{
	forever = goro_chan_make(0, 0);
	for (int i = 0; i < 3; i++)
		go(named);
	go(waiter);
	struct pprof_file *p = take_when_waiting(4);
	CHECK_EQ(pprof_sum_label(p, 0, "goroutine", "reader"), 3);
	CHECK_EQ(pprof_sum(p, 0, "wait_here"), 4);
	pprof_free(p);
}

GO_TEST(the_program_is_a_mapping_with_its_build_id)
{
	struct pprof_file *p = pprof_take("goroutine");
	int with_id = 0;

	GLIBC_ONLY("musl-gcc gives no build ids");
	CHECK(p->mappings > 0);
	CHECK_CONTAINS(p->mapping[0].file, "profile_test");
	for (int i = 0; i < p->mappings; i++)
		with_id += p->mapping[i].build_id[0] != 0;
	CHECK(with_id > 0);
	pprof_free(p);
}

static int threads_seen(void)
{
	struct pprof_file *p = pprof_take("threadcreate");
	int n = (int)pprof_sum(p, 0, NULL);

	CHECK_STR(pprof_string(p, p->type[0].what), "threadcreate");
	CHECK(pprof_sum(p, 0, "m_make") > 0);
	pprof_free(p);
	return n;
}

GO_TEST(threads_are_counted)
{
	struct goro_stats before, after;
	int seen;

	AWAIT(runtime_is_whole());
	do {	/* until no thread begins or ends meanwhile, and all have begun */
		goro_stats_read(&before);
		seen = threads_seen();
		goro_stats_read(&after);
	} while (before.threads != after.threads || seen < 4);
	dprintf(1, "%d seen, %d threads\n", seen, (int)after.threads);
	/* Beside them sysmon, the spawner and the thread that called goro_run. */
	CHECK(seen <= (int)after.threads + 3);
}

GO_TEST(there_are_no_other_profiles)
{
	int fd = memfd_create("none", MFD_CLOEXEC);

	CHECK_EQ(goro_profile_write("heap", fd), -EINVAL);
	CHECK_EQ(goro_profile_write("", fd), -EINVAL);
	CHECK_EQ(goro_profile_write("goroutines", fd), -EINVAL);
	CHECK_EQ(goro_profile_write(NULL, fd), -EINVAL);
	CHECK_EQ(lseek(fd, 0, SEEK_END), 0);
	CHECK_EQ(goro_profile_write("goroutine", -1), -EBADF);
	CHECK_EQ(goro_profile_write("goroutine", 9999), -EBADF);
	close(fd);
}

/* ------------------------------------------------------------- descriptors */

struct reading {
	int fd;
	uint8_t *bytes;
	size_t n;
	goro_waitgroup done;
};

static void read_slowly(struct reading *r)
{
	ssize_t n;

	for (r->bytes = malloc(1 << 20); (n = goro_read(r->fd, r->bytes + r->n, 999)) > 0; r->n += (size_t)n)
		goro_gosched();
	CHECK_EQ(n, 0);
	goro_waitgroup_done(&r->done);
}

#define PROFILES 200	/* more than fit in a pipe */

static void through(int to, int from)
{
	struct reading r = { .fd = from };
	goro_waitgroup_add(&r.done, 1);
	go(read_slowly, &r);
	for (int i = 0; i < PROFILES; i++)
		CHECK_EQ(goro_profile_write("goroutine", to), 0);
	goro_close(to);
	goro_waitgroup_wait(&r.done);
	CHECK(r.n > 65536);
	/* All of them, one after the other; the first ends where the second begins. */
	size_t n = 18;
	while (memcmp(r.bytes + n, "\x1f\x8b\x08\0\0\0\0\0\0\xff", 10) != 0)
		n++;
	struct pprof_file *p = pprof_parse(r.bytes, n);
	CHECK(pprof_sum(p, 0, NULL) >= 2);
	pprof_free(p);
	free(r.bytes);
	goro_close(from);
}

GO_TEST(a_pipe_that_is_read_slowly_gets_all_of_it)
{
	int fd[2];

	CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
	through(fd[1], fd[0]);
}

GO_TEST(a_socket_that_does_not_block_gets_all_of_it)
{
	int fd[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
	through(fd[1], fd[0]);
}

GO_TEST(nobody_reads)
{
	int fd[2];

	CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
	goro_close(fd[0]);
	/* and no signal */
	CHECK_EQ(goro_profile_write("goroutine", fd[1]), -EPIPE);
	goro_close(fd[1]);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	goro_close(fd[0]);
	CHECK_EQ(goro_profile_write("goroutine", fd[1]), -EPIPE);
	goro_close(fd[1]);
	fd[0] = open("/dev/full", O_WRONLY | O_CLOEXEC);
	CHECK_EQ(goro_profile_write("goroutine", fd[0]), -ENOSPC);
	close(fd[0]);
}

/* ------------------------------------------------------------ plain threads */

TEST(a_plain_thread_may_write_one_before_anything_else)
{
	struct pprof_file *p = pprof_take("goroutine");

	CHECK_EQ(pprof_sum(p, 0, NULL), 0);
	pprof_free(p);
	for (int sysmons = 0; sysmons == 0;) {	/* sysmon may not have begun */
		p = pprof_take("threadcreate");
		sysmons = (int)pprof_sum(p, 0, "sysmon_thread");
		CHECK_EQ(pprof_sum(p, 0, "foreign_attach"), 1 + sysmons);
		pprof_free(p);
	}
}

/* --------------------------------------------------------------- under load */

static goro_waitgroup writers;
static int profiles_written;

static void churn(goro_chan *c)
{
	while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST)) {
		goro_chan_send(c, NULL);
		goro_chan_recv(c, NULL);
	}
}

static void child(void)
{
	goro_gosched();
}

static void spawner(void)
{
	while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST)) {
		for (int i = 0; i < 20; i++)
			go(child);
		goro_gosched();
	}
}

static void writer(int n)
{
	for (int i = 0; i < n; i++) {
		struct pprof_file *p = pprof_take(i % 8 == 7 ? "threadcreate" : "goroutine");
		CHECK(pprof_sum(p, 0, NULL) > 0);
		pprof_free(p);
		__atomic_fetch_add(&profiles_written, 1, __ATOMIC_SEQ_CST);
	}
	goro_waitgroup_done(&writers);
}

GO_TEST(profiles_at_once_under_load)
{
	goro_chan *c = goro_chan_make(0, 2);

	for (int i = 0; i < 4; i++)
		go(churn, c);
	go(spawner);
	goro_waitgroup_add(&writers, 3);
	for (int i = 0; i < 3; i++)
		go(writer, 20);
	goro_waitgroup_wait(&writers);
	CHECK_EQ(profiles_written, 60);
	__atomic_store_n(&stop, true, __ATOMIC_SEQ_CST);
}

GO_TEST(a_hundred_thousand_goroutines)
{
	start_waiters(SCALED(100000));
	int64_t began = goro_now();
	struct pprof_file *p = pprof_take("goroutine");
	dprintf(1, "%lld us\n", (long long)(goro_now() - began) / 1000);
	/* The last goroutine of each P may not be parked yet. */
	CHECK(pprof_sum(p, 0, "waiter") <= SCALED(100000));
	CHECK(pprof_sum(p, 0, "waiter") >= SCALED(100000) - goro_gomaxprocs(0));
	pprof_free(p);
}

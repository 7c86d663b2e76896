/* CPU profiles. */
#include "test.h"

#include <errno.h>
#include <goro.h>
#include <pthread.h>
#include <sys/time.h>
#include <time.h>

#include "await.h"
#include "pprof.h"

#define MS GORO_MILLISECOND

static int file(void)
{
	return memfd_create("profile", MFD_CLOEXEC);
}

static struct pprof_file *read_and_close(int fd)
{
	struct pprof_file *p = pprof_read(fd);

	close(fd);
	return p;
}

static int64_t thread_cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * GORO_SECOND + t.tv_nsec;
}

static int64_t process_cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * GORO_SECOND + t.tv_nsec;
}

__attribute__((noinline)) static void spin(int n)
{
	volatile uint64_t sum = 0;

	for (int i = 0; i < n; i++)
		sum += (uint64_t)i;
	(void)sum;
}

/* Burns this much of the thread's CPU time. The names are in the code, so that no
 * compiler merges two of the functions. */
#define BURNER(name)                                            \
	__attribute__((noinline)) static void name(int64_t ns)  \
	{                                                       \
		int64_t end = thread_cpu() + ns;                \
		while (thread_cpu() < end)                      \
			spin(20000);                            \
		__asm__ volatile("# " #name);                   \
	}

BURNER(burns_three)
BURNER(burns_one)

static goro_waitgroup wg;

/* In turn, in small pieces, so that a disturbance affects both. */
__attribute__((noinline)) static void burner(int rounds)
{
	goro_lock_os_thread();	/* its CPU time is the thread's */
	for (int i = 0; i < rounds; i++) {
		burns_three(30 * MS);
		burns_one(10 * MS);
	}
	goro_waitgroup_done(&wg);
}

static void skip_where_it_cannot_be_told(void)
{
	if (test_emulated())
		SKIP("an emulator's CPU time is not the program's");
}

/* ------------------------------------------------------------------- shares */

GO_TEST(functions_have_their_shares)
{
	int fd = file();
	int64_t began;

	skip_where_it_cannot_be_told();
	CHECK_EQ(goro_profile_cpu_start(fd, 0), 0);
	began = process_cpu();
	goro_waitgroup_add(&wg, 2);
	go(burner, 25);
	go(burner, 25);
	goro_waitgroup_wait(&wg);
	int64_t used = process_cpu() - began;
	goro_profile_cpu_stop();
	struct pprof_file *p = read_and_close(fd);
	CHECK_EQ(p->types, 2);
	CHECK_STR(pprof_string(p, p->type[0].what), "samples");
	CHECK_STR(pprof_string(p, p->type[0].unit), "count");
	CHECK_STR(pprof_string(p, p->type[1].what), "cpu");
	CHECK_STR(pprof_string(p, p->type[1].unit), "nanoseconds");
	CHECK_STR(pprof_string(p, p->period_type.what), "cpu");
	CHECK_EQ(p->period, 10 * MS);
	CHECK(p->time > INT64_C(1500000000) * GORO_SECOND);
	CHECK(p->duration > GORO_SECOND / 2);
	int64_t three = pprof_sum(p, 1, "burns_three"), one = pprof_sum(p, 1, "burns_one");
	int64_t all = pprof_sum(p, 1, NULL), lost = pprof_sum(p, 1, "lost_samples");
	dprintf(1, "%lld ms of %lld: %lld and %lld, lost %lld\n", (long long)(all / MS),
	        (long long)(used / MS), (long long)(three / MS), (long long)(one / MS),
	        (long long)(lost / MS));
	CHECK_EQ(all, pprof_sum(p, 0, NULL) * 10 * MS);
	CHECK_EQ(pprof_sum(p, 1, "burner"), three + one);
	if (TOOL_TSAN)
		return;		/* samples inside TSan are lost */
	/* Two seconds: 150 and 50 samples, in random phase. */
	CHECK(all > used * 8 / 10 && all < used * 12 / 10);
	CHECK(three > one * 2 && three < one * 9 / 2);
	CHECK(three + one > all * 8 / 10);
	CHECK(pprof_sum_leaf(p, 1, "spin") > all * 6 / 10);
	pprof_free(p);
}

static void named_burner(void)
{
	goro_set_name("crunch");
	burner(3);
	__asm__ volatile("");	/* no tail call */
}

/* Counts samples inside burner only: the goroutine has its name before burner begins, and
 * for a while after it has returned. */
GO_TEST(goroutines_are_labels)
{
	int fd = file();

	skip_where_it_cannot_be_told();
	CHECK_EQ(goro_profile_cpu_start(fd, 500), 0);
	goro_waitgroup_add(&wg, 2);
	go(named_burner);
	go(burner, 3);
	goro_waitgroup_wait(&wg);
	goro_profile_cpu_stop();
	struct pprof_file *p = read_and_close(fd);
	int64_t named = 0, framed = 0, with_id = 0;
	for (int i = 0; i < p->samples; i++) {
		const struct pprof_sample *x = &p->sample[i];
		if (!pprof_has(p, x, "burner"))
			continue;
		named += x->value[1] * pprof_has_label(p, x, "goroutine", "crunch");
		framed += x->value[1] * pprof_has(p, x, "named_burner");
		for (int k = 0; k < x->labels; k++)
			if (!strcmp(pprof_string(p, x->label[k].key), "goroutine_id")) {
				CHECK(x->label[k].number > 0);
				with_id += x->value[1];
			}
	}
	CHECK_EQ(p->period, 2 * MS);
	CHECK(named > 0 || TOOL_TSAN);	/* samples inside TSan are lost */
	CHECK_EQ(named, framed);
	CHECK_EQ(with_id, pprof_sum(p, 1, "burner"));
	pprof_free(p);
}

/* ------------------------------------------------------------------ threads */

__attribute__((noinline)) static void *plain_burner(void *arg)
{
	burns_one(300 * MS);
	return arg;
}

static void *caller(void *arg)
{
	goro_gosched();		/* makes the thread an M */
	plain_burner(arg);
	__asm__ volatile("");
	return arg;
}

GO_TEST(plain_threads_are_sampled_whether_we_know_them_or_not)
{
	pthread_t before, after, known;
	int fd = file();

	skip_where_it_cannot_be_told();
	CHECK_EQ(pthread_create(&before, NULL, plain_burner, NULL), 0);
	CHECK_EQ(goro_profile_cpu_start(fd, 0), 0);
	CHECK_EQ(pthread_create(&after, NULL, plain_burner, NULL), 0);
	CHECK_EQ(pthread_create(&known, NULL, caller, NULL), 0);
	pthread_join(before, NULL);
	pthread_join(after, NULL);
	pthread_join(known, NULL);
	goro_profile_cpu_stop();
	struct pprof_file *p = read_and_close(fd);
	int64_t all = pprof_sum(p, 1, "burns_one");
	/* The collector finds a new plain thread a tenth of a second later. */
	dprintf(1, "%lld of 900 ms, with the thread's beginning %lld\n", (long long)(all / MS),
	        (long long)(pprof_sum(p, 1, "plain_burner") / MS));
	CHECK(pprof_sum(p, 1, "plain_burner") == all);
	if (!TOOL_TSAN) {
		CHECK(pprof_sum(p, 1, "caller") > 0);
		CHECK(all > 350 * MS && all < 1000 * MS);
	}
	pprof_free(p);
}

/* A sleeper uses no CPU time, so no signal comes. */
static void *sleeper(void *arg)
{
	struct timespec t = { .tv_nsec = 100000000 };
	int *failed = arg;

	for (int i = 0; i < 5; i++)
		*failed += nanosleep(&t, NULL) != 0 || poll(NULL, 0, 100) != 0;
	return NULL;
}

static void sleeping_goroutine(int *failed)
{
	sleeper(failed);
	goro_waitgroup_done(&wg);
}

GO_TEST(who_sleeps_is_not_woken)
{
	pthread_t t;
	int fd = file(), failed[3] = { 0 };

	skip_where_it_cannot_be_told();
	CHECK_EQ(goro_profile_cpu_start(fd, 1000), 0);
	CHECK_EQ(pthread_create(&t, NULL, sleeper, &failed[0]), 0);
	goro_waitgroup_add(&wg, 3);
	go(sleeping_goroutine, &failed[1]);
	go(sleeping_goroutine, &failed[2]);
	go(burner, 10);
	goro_waitgroup_wait(&wg);
	pthread_join(t, NULL);
	goro_profile_cpu_stop();
	CHECK_EQ(failed[0] + failed[1] + failed[2], 0);
	struct pprof_file *p = read_and_close(fd);
	int64_t asleep = pprof_sum(p, 1, "sleeper"), awake = pprof_sum(p, 1, "burner");
	CHECK(awake > 20 * asleep || TOOL_TSAN);
	pprof_free(p);
}

/* Calls that the kernel does not restart, made so often that the signal hits some on
 * their way to sleep. */
GO_TEST(calls_are_not_interrupted)
{
	int fd = file(), failed = 0;
	struct timespec t = { .tv_nsec = 1000 };
	int64_t end;

	skip_where_it_cannot_be_told();
#ifndef __x86_64__
	SKIP("not restarted here");
#endif
	CHECK_EQ(goro_profile_cpu_start(fd, 1000), 0);
	for (end = process_cpu() + 300 * MS; process_cpu() < end;) {
		for (int i = 0; i < 100; i++) {
			spin(500);
			failed += nanosleep(&t, NULL) != 0;
			failed += poll(NULL, 0, 0) != 0;
		}
	}
	goro_profile_cpu_stop();
	CHECK_EQ(failed, 0);
	close(fd);
}

/* ------------------------------------------------------------ start and stop */

GO_TEST(misuse_is_told)
{
	int fd = file();

	CHECK_EQ(goro_profile_cpu_start(fd, -1), -EINVAL);
	CHECK_EQ(goro_profile_cpu_start(fd, 10000000), -EINVAL);
	CHECK_EQ(goro_profile_cpu_start(-1, 0), -EBADF);
	CHECK_EQ(goro_profile_cpu_start(9999, 0), -EBADF);
	goro_profile_cpu_stop();	/* no profile is on */
	CHECK_EQ(lseek(fd, 0, SEEK_END), 0);
	CHECK_EQ(goro_profile_cpu_start(fd, 100), 0);
	CHECK_EQ(goro_profile_cpu_start(fd, 100), -EBUSY);
	CHECK_EQ(lseek(fd, 0, SEEK_END), 0);
	goro_profile_cpu_stop();
	CHECK(lseek(fd, 0, SEEK_END) > 0);
	goro_profile_cpu_stop();
	pprof_free(read_and_close(fd));
}

static bool stop;

static void load(void)
{
	goro_chan *c = goro_chan_make(0, 1);

	while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST)) {
		goro_chan_send(c, NULL);
		goro_gosched();
		goro_chan_recv(c, NULL);
		spin(100);
	}
}

static void blocks(void)
{
	while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST))
		usleep(50);	/* other threads take over */
}

static int started, refused;

static void start_and_stop(int rounds)
{
	for (int i = 0; i < rounds; i++) {
		int fd = file(), error;

		while ((error = goro_profile_cpu_start(fd, 1000 + i)) == -EBUSY) {
			__atomic_fetch_add(&refused, 1, __ATOMIC_SEQ_CST);
			goro_sleep(100 * GORO_MICROSECOND);
		}
		CHECK_EQ(error, 0);
		__atomic_fetch_add(&started, 1, __ATOMIC_SEQ_CST);
		if (i % 3 == 0)
			goro_gosched();
		if (i % 16 == 0)
			goro_sleep(5 * MS);
		goro_profile_cpu_stop();
		pprof_free(pprof_read(fd));
		if (i % 8 == 0)
			goro_profile_write("goroutine", fd);
		close(fd);
	}
	goro_waitgroup_done(&wg);
}

static void *thread_of_a_moment(void *arg)
{
	(void)arg;
	spin(10000);
	return NULL;
}

static void threads_come_and_go(void)
{
	pthread_t t;

	while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST)) {
		if (pthread_create(&t, NULL, thread_of_a_moment, NULL) == 0)
			pthread_join(t, NULL);
		goro_sleep(300 * GORO_MICROSECOND);
	}
}

GO_TEST_TIMEOUT(started_and_stopped_hundreds_of_times_under_load, 120)
{
	for (int i = 0; i < 3; i++)
		go(load);
	go(blocks);
	go(threads_come_and_go);
	goro_waitgroup_add(&wg, 3);
	for (int i = 0; i < 3; i++)
		go(start_and_stop, 100);
	goro_waitgroup_wait(&wg);
	__atomic_store_n(&stop, true, __ATOMIC_SEQ_CST);
	dprintf(1, "%d started, %d refused\n", started, refused);
	CHECK_EQ(started, 300);
}

/* ------------------------------------------------------ the program's SIGPROF */

static int program_saw;

static void on_program_prof(int sig)
{
	(void)sig;
	__atomic_fetch_add(&program_saw, 1, __ATOMIC_SEQ_CST);
}

static void program_profiles(bool first)
{
	struct sigaction sa = { .sa_handler = on_program_prof, .sa_flags = SA_RESTART };
	struct itimerval every = { { 0, 5000 }, { 0, 5000 } }, never = { { 0, 0 }, { 0, 0 } };
	int fd = file();

	skip_where_it_cannot_be_told();
	if (first)
		CHECK_EQ(sigaction(SIGPROF, &sa, NULL), 0);
	CHECK_EQ(goro_profile_cpu_start(fd, 0), 0);
	if (!first)
		CHECK_EQ(sigaction(SIGPROF, &sa, NULL), 0);
	setitimer(ITIMER_PROF, &every, NULL);
	goro_waitgroup_add(&wg, 1);
	go(burner, 15);
	goro_waitgroup_wait(&wg);
	setitimer(ITIMER_PROF, &never, NULL);
	goro_profile_cpu_stop();
	struct pprof_file *p = read_and_close(fd);
	int ours = (int)pprof_sum(p, 0, "burner"), saw = __atomic_load_n(&program_saw, __ATOMIC_SEQ_CST);
	dprintf(1, "the program saw %d, we %d\n", saw, ours);
	if (!TOOL_TSAN) {
		CHECK(saw >= 30);	/* of 600 ms */
		CHECK(ours >= 20);
	}
	/* The program's handler gets none of the runtime's signals. */
	CHECK(saw <= 600 / 4 + (first ? 0 : 15) + 60);
	raise(SIGPROF);
	AWAIT(__atomic_load_n(&program_saw, __ATOMIC_SEQ_CST) > 0);
	pprof_free(p);
}

GO_TEST(a_handler_of_the_programs_stays_in_use)
{
	program_profiles(true);
}

GO_TEST(a_handler_that_the_program_installs_later_is_found)
{
	program_profiles(false);
}

GO_TEST(subscribers_get_the_programs_signals_and_not_ours)
{
	int fd = file(), sig = 0;

	skip_where_it_cannot_be_told();
	goro_chan *before = goro_signal_notify(&(int){ SIGPROF }, 1);
	CHECK_EQ(goro_profile_cpu_start(fd, 0), 0);
	goro_chan *after = goro_signal_notify(&(int){ SIGPROF }, 1);
	goro_waitgroup_add(&wg, 1);
	go(burner, 3);
	goro_waitgroup_wait(&wg);
	CHECK_EQ(goro_chan_try_recv(before, &sig), GORO_RECV_EMPTY);
	CHECK_EQ(goro_chan_try_recv(after, &sig), GORO_RECV_EMPTY);
	kill(getpid(), SIGPROF);
	CHECK(goro_chan_recv(before, &sig) && sig == SIGPROF);
	CHECK(goro_chan_recv(after, &sig) && sig == SIGPROF);
	goro_signal_stop(before);
	goro_signal_stop(after);
	goro_waitgroup_add(&wg, 1);
	go(burner, 3);
	goro_waitgroup_wait(&wg);
	goro_profile_cpu_stop();
	struct pprof_file *p = read_and_close(fd);
	if (!TOOL_TSAN)
		CHECK(pprof_sum(p, 1, "burner") > 100 * MS);
	pprof_free(p);
}

static int main_that_raises(int argc, char **argv)
{
	int fd = file();

	(void)argc; (void)argv;
	goro_profile_cpu_start(fd, 0);
	goro_profile_cpu_stop();
	raise(SIGPROF);
	usleep(100000);
	return 0;
}

static void raises(void)
{
	_exit(goro_run(main_that_raises, 0, NULL));
}

TEST(by_default_the_programs_own_still_ends_it)
{
	struct test_output o;

	test_run_child(raises, &o);
	CHECK_EQ(o.signal, SIGPROF);
}

/* ------------------------------------------------------------------- fork, exec */

GO_TEST(children_are_not_bothered)
{
	int fd = file(), status;

	CHECK_EQ(goro_profile_cpu_start(fd, 1000), 0);
	for (int i = 0; i < 5; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			spin(20000000);
			_exit(0);
		}
		while (waitpid(pid, &status, 0) < 0)
			;
		CHECK_EQ(status, 0);
		CHECK_EQ(system("i=0; while [ $i -lt 1000 ]; do i=$((i + 1)); done"), 0);
	}
	goro_profile_cpu_stop();
	pprof_free(read_and_close(fd));
}

/* ------------------------------------------------------------ GORO_CPUPROFILE */

static int main_of_the_run(int argc, char **argv)
{
	(void)argc; (void)argv;
	CHECK_EQ(goro_profile_cpu_start(1, 0), -EBUSY);
	goro_waitgroup_add(&wg, 1);
	go(burner, 10);
	goro_waitgroup_wait(&wg);
	if (fork() == 0)
		exit(0);	/* leaves the file alone */
	return 0;
}

static void whole_run(void (*unused)(void))
{
	(void)unused;
	exit(goro_run(main_of_the_run, 0, NULL));
}

TEST(the_environment_asks_for_a_profile_of_the_whole_run)
{
	char path[] = "/tmp/goro_cpuprofile_XXXXXX";
	int fd = mkstemp(path);
	struct test_output o;

	skip_where_it_cannot_be_told();
	setenv("GORO_CPUPROFILE", path, 1);
	test_run_anew(whole_run, NULL, &o);
	unsetenv("GORO_CPUPROFILE");
	unlink(path);
	CHECK_EQ(o.status, 0);
	struct pprof_file *p = read_and_close(fd);
	CHECK(pprof_sum(p, 1, "burner") > (TOOL_TSAN ? 0 : 200 * MS));
	pprof_free(p);
}

TEST(a_file_that_cannot_be_opened_is_no_more_than_a_complaint)
{
	struct test_output o;

	setenv("GORO_CPUPROFILE", "/nonexistent/dir/file", 1);
	test_run_anew(whole_run, NULL, &o);
	unsetenv("GORO_CPUPROFILE");
	CHECK_CONTAINS(o.err, "GORO_CPUPROFILE=/nonexistent/dir/file");
}

/* ------------------------------------------------------------------ deadlock */

static int main_that_hangs(int argc, char **argv)
{
	int fd = file();

	(void)argc; (void)argv;
	goro_profile_cpu_start(fd, 0);
	goro_profile_cpu_stop();
	goro_profile_cpu_start(fd, 0);
	goro_chan_recv(NULL, NULL);
	return 0;
}

static void hangs(void (*unused)(void))
{
	(void)unused;
	goro_run(main_that_hangs, 0, NULL);
}

TEST(a_deadlock_is_still_one)
{
	struct test_output o;

	test_needs_deadlocks();
	test_run_anew(hangs, NULL, &o);
	CHECK_EQ(o.status, 2);
	CHECK_CONTAINS(o.err, "deadlock");
}

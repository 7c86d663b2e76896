/* Simulated runs: the same seed is the same run; time is virtual; faults are found. */
#include <goro.h>

#include <fcntl.h>
#include <sys/stat.h>

#include "test.h"

static void nothing(void *arg)
{
	(void)arg;
}

/* First thing in a test that simulates. */
static void needs_simulation(void)
{
	if (goro_sim_run(0, nothing, NULL) == -ENOTSUP)
		SKIP("not under this tool");
}

static void ping(goro_chan *in, goro_chan *out, int n)
{
	int x;

	for (int i = 0; i < n; i++) {
		CHECK(goro_chan_recv(in, &x));
		x++;
		goro_chan_send(out, &x);
	}
}

static void pingpong(void *arg)
{
	goro_chan *a = goro_chan_of(int, 0), *b = goro_chan_of(int, 1);
	int x = 0;

	(void)arg;
	go(ping, a, b, 50);
	for (int i = 0; i < 50; i++) {
		goro_chan_send(a, &x);
		CHECK(goro_chan_recv(b, &x));
	}
	CHECK_EQ(x, 50);
}

TEST(runs)
{
	needs_simulation();
	for (uint64_t seed = 0; seed < 50; seed++)
		CHECK_EQ(goro_sim_run(seed, pingpong, NULL), 0);
}

static void sleeps(void *arg)
{
	int64_t began = goro_now();

	(void)arg;
	goro_sleep(3600 * GORO_SECOND);
	CHECK(goro_now() - began >= 3600 * GORO_SECOND);
	CHECK(goro_now() - began < 3601 * GORO_SECOND);
}

/* The log of a run, as text. */
static char *log_of(uint64_t seed, void (*fn)(void *))
{
	struct stat st;
	char *text;
	int fd;

	CHECK_EQ(goro_sim_run(seed, fn, NULL), 0);
	fd = open(getenv("GORO_SIM_LOG"), O_RDONLY);
	CHECK(fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0);
	text = malloc((size_t)st.st_size + 1);
	CHECK_EQ(read(fd, text, (size_t)st.st_size), st.st_size);
	text[st.st_size] = 0;
	close(fd);
	return text;
}

TEST(a_seed_replays_byte_for_byte)
{
	char path[] = "/tmp/goro-sim-XXXXXX";
	char *first, *other;

	needs_simulation();
	close(mkstemp(path));
	setenv("GORO_SIM_LOG", path, 1);
	first = log_of(7, pingpong);
	for (int i = 1; i < 100; i++) {
		char *again = log_of(7, pingpong);

		CHECK(strcmp(first, again) == 0);
		free(again);
	}
	other = log_of(8, pingpong);
	CHECK(strcmp(first, other) != 0);
	unlink(path);
}

static int balance;

static void deposit(goro_waitgroup *done)
{
	int before = balance;

	goro_gosched();
	balance = before + 1;
	goro_waitgroup_done(done);
}

static void two_deposits(void *arg)
{
	goro_waitgroup done = { 0 };

	(void)arg;
	goro_waitgroup_add(&done, 2);
	go(deposit, &done);
	go(deposit, &done);
	goro_waitgroup_wait(&done);
	if (balance != 2)
		_exit(1);
}

TEST(a_lost_update_is_found_and_found_again)
{
	uint64_t seed = 0;

	needs_simulation();
	while (seed < 200 && goro_sim_run(seed, two_deposits, NULL) == 0)
		seed++;
	CHECK(seed < 200);
	for (int i = 0; i < 10; i++)
		CHECK_EQ(goro_sim_run(seed, two_deposits, NULL), 1);
}

static void waits_for_ever(void *arg)
{
	(void)arg;
	goro_chan_recv(goro_chan_of(int, 0), NULL);
}

TEST(a_deadlock_is_a_result)
{
	needs_simulation();
	CHECK_EQ(goro_sim_run(1, waits_for_ever, NULL), 2);
}

static void simulates(void *arg)
{
	CHECK_EQ(goro_sim_run(1, waits_for_ever, arg), -EBUSY);
}

TEST(not_within_the_runtime)
{
	needs_simulation();
	CHECK_EQ(goro_sim_run(1, simulates, NULL), 0);
}

GO_TEST(not_once_it_has_started)
{
	int result = goro_sim_run(1, waits_for_ever, NULL);

	CHECK(result == -EBUSY || result == -ENOTSUP);
}

TEST(time_is_virtual)
{
	needs_simulation();
	for (uint64_t seed = 0; seed < 10; seed++)
		CHECK_EQ(goro_sim_run(seed, sleeps, NULL), 0);
}

/*
 * beat_test.c - sleeps of one length, for which the clock is set ahead.
 *
 * In a time of its own, an hour from now, where nothing depends on how long a call takes.
 */
#include <dirent.h>
#include <goro.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "beat.h"
#include "config.h"
#include "os.h"
#include "random.h"
#include "test.h"

#define SLACK   GORO_SECOND
#define NEAR_NS (50 * GORO_MILLISECOND)	/* a call may take so long */

static int64_t time_now;	/* when the last sleep ended */
static int64_t latest;		/* .. and the next is to, */
static int alarms[2], alarm_n;

static void begin(void)
{
	time_now = os_now() + 3600 * GORO_SECOND;
}

static void find_alarms(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *e;

	alarm_n = 0;
	while ((e = readdir(dir))) {
		char text[64] = "";

		if (readlinkat(dirfd(dir), e->d_name, text, sizeof text - 1) > 0 &&
		    strcmp(text, "anon_inode:[timerfd]") == 0) {
			CHECK(alarm_n < 2);
			alarms[alarm_n++] = atoi(e->d_name);
		}
	}
	closedir(dir);
}

static bool is_set_to(int64_t from, int64_t to)
{
	int64_t now = os_now();

	for (int i = 0; i < alarm_n; i++) {
		struct itimerspec t;
		int64_t at;

		CHECK_EQ(timerfd_gettime(alarms[i], &t), 0);
		at = now + t.it_value.tv_sec * GORO_SECOND + t.it_value.tv_nsec;
		if (at >= from - NEAR_NS && at <= to + NEAR_NS)
			return true;
	}
	return false;
}

/* The first timer comes lead after the last sleep's end. When this one's is. */
static int64_t sleep_once(int64_t lead)
{
	int64_t until;

	latest = time_now + lead + SLACK;
	until = beat_sleep_until(latest, SLACK);
	CHECK(until <= latest);
	CHECK(until >= latest - SLACK / 4);
	return time_now = until;
}

static void sleep_until_alarms(void)
{
	for (int i = 0; i < BEAT_STEADY; i++)
		sleep_once(SLACK / 8);
	find_alarms();
	CHECK_EQ(alarm_n, 0);
	for (int i = 0; i < 4; i++)
		sleep_once(SLACK / 8);
	find_alarms();
	CHECK_EQ(alarm_n, 2);
}

TEST(without_slack_it_is_the_latest)
{
	begin();
	for (int i = 0; i < 100; i++) {
		time_now += SLACK;
		CHECK_EQ(beat_sleep_until(time_now, 0), time_now);
	}
	find_alarms();
	CHECK_EQ(alarm_n, 0);
}

TEST(a_few_dense_ones_make_no_alarms)
{
	begin();
	for (int i = 0; i < 100; i++)
		if (i % BEAT_STEADY == 0)
			beat_sleep_until(time_now, 0);
		else
			sleep_once(0);
	find_alarms();
	CHECK_EQ(alarm_n, 0);
}

TEST(without_a_beat_there_are_no_alarms)
{
	begin();
	for (int i = 0; i < 1000; i++)
		sleep_once((int64_t)(random_word() % (3 * SLACK)));
	find_alarms();
	CHECK_EQ(alarm_n, 0);
}

/* That is, an alarm was set for its end before the sleep before began, and that is all there is
 * to gain. Leads vary somewhat. */
TEST(the_clock_is_set_a_beat_ahead)
{
	int kept = 0;

	begin();
	sleep_until_alarms();
	for (int i = 0; i < 250; i++) {
		int64_t lead = SLACK / 8 + (int64_t)(random_word() % (SLACK / 20)), until;
		int64_t before = time_now;
		bool next = is_set_to(before + SLACK / 2, before + SLACK + SLACK / 4);

		until = sleep_once(lead);
		kept += next && until != latest - SLACK / 16;
		CHECK(is_set_to(until + SLACK / 2, until + SLACK + SLACK / 2));
	}
	CHECK(kept > 200);
}

TEST(a_beat_that_comes_too_late_is_not_kept)
{
	begin();
	sleep_until_alarms();
	for (int i = 0; i < 50; i++) {
		for (int k = 0; k < 4; k++)
			sleep_once(SLACK / 8);
		latest = time_now + SLACK / 3;
		CHECK(beat_sleep_until(latest, SLACK) <= latest);
		time_now = latest;
	}
}

TEST(alarms_that_the_program_closed_are_made_anew)
{
	static const struct itimerspec hourly = { { 7200, 0 }, { 7200, 0 } };
	struct itimerspec now;
	int ours;

	begin();
	sleep_until_alarms();
	ours = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	close(alarms[1]);
	CHECK_EQ(dup2(ours, alarms[0]), alarms[0]);	/* the number of one of them */
	close(ours);
	ours = alarms[0];
	CHECK_EQ(timerfd_settime(ours, 0, &hourly, NULL), 0);
	for (int i = 0; i < 4; i++)
		sleep_once(SLACK / 8);
	CHECK_EQ(timerfd_gettime(ours, &now), 0);
	CHECK_EQ(now.it_interval.tv_sec, 7200);
	CHECK(now.it_value.tv_sec > 3600);
	close(ours);
	for (int i = 0; i < 8 * BEAT_STEADY; i++)
		sleep_once(SLACK / 8);
	find_alarms();
	CHECK_EQ(alarm_n, 2);
	CHECK(is_set_to(time_now + SLACK / 2, time_now + SLACK + SLACK / 2));
}

TEST(without_descriptors_it_does_without)
{
	struct rlimit limit, none;

	begin();
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 3;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
	for (int i = 0; i < 100; i++)
		sleep_once(SLACK / 8);
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	for (int i = 0; i < 4 * BEAT_STEADY; i++)
		sleep_once(SLACK / 8);
	find_alarms();
	CHECK_EQ(alarm_n, 2);
}

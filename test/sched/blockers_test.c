/*
 * blockers_test.c - goroutines that block unannounced, again and again, hand their P over
 * before they do; those that do not block, or no longer, keep it.
 */
#include <goro.h>
#include <sys/resource.h>
#include <unistd.h>

#include "platform/atomic.h"
#include "await.h"
#include "sched/blockers.h"
#include "test.h"

enum { LESSONS = 10, VAIN = 50, MOST_ROUNDS = 1000 };

static int ends[2];
static int done;

static uint64_t foreseen(void)
{
	return load_relaxed(&blockers_foreseen);
}

static void block(void)
{
	char c;

	while (read(ends[0], &c, 1) < 0)
		;
	fetch_add_relaxed(&done, 1);
}

/* On one P: this goroutine goes on only when the one that blocks has lost its P. */
static void let_one_block(void)
{
	go(block);
	goro_gosched();
}

/* sysmon may find a goroutine asleep only when this one has had the P again, on another
 * thread. */
static void teach(void)
{
	for (int i = 0; i < LESSONS; i++)
		let_one_block();
}

static void let_all_end(int n)
{
	close(ends[1]);
	AWAIT(load_relaxed(&done) == n);
}

GO_TEST(goroutines_that_are_known_to_block_hand_over_first)
{
	uint64_t before;

	goro_gomaxprocs(1);
	CHECK_EQ(pipe(ends), 0);
	teach();
	before = foreseen();
	let_one_block();
	CHECK_EQ(foreseen(), before + 1);
	let_all_end(LESSONS + 1);
}

GO_TEST(nobody_hands_over_where_no_goroutine_waits)
{
	uint64_t before;

	goro_gomaxprocs(1);
	CHECK_EQ(pipe(ends), 0);
	teach();
	before = foreseen();
	go(block);
	goro_sleep(GORO_MILLISECOND);
	CHECK_EQ(foreseen(), before);
	let_all_end(LESSONS + 1);
}

static void block_or_not(bool blocks)
{
	if (blocks)
		block();
	else
		fetch_add_relaxed(&done, 1);
}

static long sleeps(void)
{
	struct rusage u;

	CHECK_EQ(getrusage(RUSAGE_SELF, &u), 0);
	return u.ru_nvcsw;
}

/* What does not sleep hands over in vain a few times at most. Counted by the points: a
 * thread may sleep for another reason, as on a lock of the runtime's. */
GO_TEST(goroutines_that_no_longer_block_keep_their_p)
{
	uint64_t before;

	goro_gomaxprocs(1);
	CHECK_EQ(pipe(ends), 0);
	for (int i = 0; i < LESSONS; i++) {
		go(block_or_not, true);
		goro_gosched();
	}
	before = foreseen();
	for (int i = 0; i < VAIN; i++) {
		go(block_or_not, false);
		AWAIT(load_relaxed(&done) == i + 1);
	}
	printf("%d of %d in vain, %ld sleeps\n", (int)(foreseen() - before), VAIN, sleeps());
	CHECK(foreseen() - before < VAIN / 2);
	let_all_end(LESSONS + VAIN);
}

static goro_chan *jobs;

/* Comes back to the runtime between two calls that block. */
static void block_by_and_by(void)
{
	int fd;

	while (goro_chan_recv(jobs, &fd)) {
		char c;

		while (read(fd, &c, 1) < 0)
			;
		fetch_add_relaxed(&done, 1);
	}
}

/* Where the byte is there before the thread sleeps, the hand-over was in vain: so it may
 * take more rounds. */
GO_TEST(goroutines_that_go_on_hand_over_too)
{
	int rounds = 0;

	goro_gomaxprocs(1);
	CHECK_EQ(pipe(ends), 0);
	jobs = goro_chan_of(int, 0);
	go(block_by_and_by);
	while (foreseen() == 0) {
		goro_chan_send(jobs, &ends[0]);
		goro_gosched();
		usleep(1000);
		CHECK_EQ(write(ends[1], "", 1), 1);
		AWAIT(load_relaxed(&done) == rounds + 1);
		CHECK(++rounds < MOST_ROUNDS);
	}
	goro_chan_close(jobs);
}

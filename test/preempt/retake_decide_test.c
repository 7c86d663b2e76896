/*
 * retake_decide_test.c - every case of the decision about a P in a long slice, as a
 * table: what sysmon sees, and what it does about it.
 */
#include "preempt/retake_decide.h"

#include "base/config.h"
#include "test.h"
#include "timer/timer.h"

/* A row begins with what is usual, and overrides some of it. */
#pragma GCC diagnostic ignored "-Woverride-init"

enum { US = 1000, MS = 1000 * US };

struct row {
	const char *name;
	struct retake_view view;
	enum retake_what what;
	int64_t next;		/* 0: whatever, the decision is made again */
};

/* A goroutine computes in user code; others wait, so that it may go on for the whole
 * slice. */
#define COMPUTES(age_ns) .age = (age_ns), .allowed = SLICE_NS, .user = true, .look = LOOK_NS
#define AWAKE .clock_stands = FACT_NO, .asleep = FACT_NO
#define OVER  COMPUTES(SLICE_NS)
#define NO_CPUS .cpus_short = true, .single = true, .used_known = FACT_YES

static const struct row rows[] = {
	/* Nobody waits. */
	{ "nobody waits: it is left", { COMPUTES(MS), .allowed = TIMER_NEVER }, RETAKE_LEAVE, TIMER_NEVER },
	{ "nobody waits, but a lock is fought for: looked at soon",
	  { COMPUTES(MS), .allowed = TIMER_NEVER, .convoy = true }, RETAKE_LEAVE, LOOK_SOON_NS },
	{ "nobody waits: an announced call keeps its P",
	  { .announced = true, .age = 100 * MS, .allowed = TIMER_NEVER }, RETAKE_LEAVE, TIMER_NEVER },

	/* Announced calls. */
	{ "an announced call has a moment to return",
	  { .announced = true, .age = SYSCALL_GRACE_NS - 1, .allowed = SLICE_NS }, RETAKE_LEAVE, LOOK_SOON_NS },
	{ "an announced call loses its P",
	  { .announced = true, .age = SYSCALL_GRACE_NS, .allowed = SLICE_NS }, RETAKE_TAKE, LOOK_SOON_NS },
	{ "nobody runs the P of an announced call: looked at soon",
	  { .announced = true, .age = MS, .allowed = SLICE_NS, .take_failed = true }, RETAKE_LEAVE, LOOK_SOON_NS },

	/* Early in the slice. */
	{ "just woken: it has a moment to begin",
	  { COMPUTES(5 * US), .resumed = true }, RETAKE_LEAVE, LOOK_EARLY_NS - 5 * US },
	{ "just woken, and never asleep of late: it is not looked at early",
	  { COMPUTES(5 * US), .resumed = true, .steady = true, AWAKE }, RETAKE_LEAVE, LOOK_NS },
	{ "woken a while ago: its clock is looked at",
	  { COMPUTES(LOOK_EARLY_NS), .resumed = true }, RETAKE_SEE_CLOCK, 0 },
	{ "not woken for it: its slice may have begun at any time",
	  { COMPUTES(LOOK_SOON_NS - 1) }, RETAKE_LEAVE, LOOK_NS },
	{ "seen for a while: its clock is looked at", { COMPUTES(LOOK_SOON_NS) }, RETAKE_SEE_CLOCK, 0 },
	{ "its clock moves: it computes", { COMPUTES(MS), .clock_stands = FACT_NO }, RETAKE_LEAVE, LOOK_NS },
	{ "its clock stands: the thread is looked at",
	  { COMPUTES(MS), .clock_stands = FACT_YES }, RETAKE_SEE_ASLEEP, 0 },
	{ "a lock is fought for: the clock tells nothing",
	  { COMPUTES(MS), .convoy = true }, RETAKE_SEE_ASLEEP, 0 },
	{ "asleep: it loses its P",
	  { COMPUTES(MS), .clock_stands = FACT_YES, .asleep = FACT_YES }, RETAKE_TAKE, LOOK_SOON_NS },
	{ "its clock stands and it is awake: it waits for a CPU",
	  { COMPUTES(MS), .clock_stands = FACT_YES, .asleep = FACT_NO }, RETAKE_LEAVE, LOOK_NS },
	{ "asleep, and nobody runs its P: the slice goes on",
	  { COMPUTES(MS), .clock_stands = FACT_YES, .asleep = FACT_YES, .take_failed = true },
	  RETAKE_LEAVE, LOOK_NS },
	{ "in the runtime: it is not looked at", { COMPUTES(MS), .user = false }, RETAKE_LEAVE, LOOK_NS },

	/* Until the slice is over. */
	{ "the next look comes no later than the end of the slice",
	  { COMPUTES(SLICE_NS - SLICE_NEARLY_NS - 300 * US), AWAKE }, RETAKE_LEAVE, 300 * US },
	{ "the next look comes as soon as others do", { COMPUTES(MS), AWAKE, .look = 70 * US }, RETAKE_LEAVE, 70 * US },
	{ "a lock is fought for: the next look comes soon",
	  { COMPUTES(MS), .convoy = true, AWAKE }, RETAKE_LEAVE, LOOK_SOON_NS },
	{ "a look that comes a little early ends the slice",
	  { COMPUTES(SLICE_NS - SLICE_NEARLY_NS), AWAKE }, RETAKE_YIELD, LOOK_AFTER_NS },
	{ "a short slice is shortened by a tenth at most",
	  { COMPUTES(500 * US), .allowed = 500 * US, AWAKE }, RETAKE_YIELD, LOOK_AFTER_NS },
	{ "nine tenths of a short slice are enough",
	  { COMPUTES(449 * US), .allowed = 500 * US, AWAKE }, RETAKE_LEAVE, US },

	/* The slice is over: asleep, or without a CPU. */
	{ "over, its clock moves: is it asleep by now?",
	  { OVER, .clock_stands = FACT_NO }, RETAKE_SEE_ASLEEP, 0 },
	{ "over, asleep: it loses its P", { OVER, .clock_stands = FACT_NO, .asleep = FACT_YES }, RETAKE_TAKE, LOOK_SOON_NS },
	{ "over, no answer to the signal: it loses its P", { OVER, AWAKE, .unanswered = true }, RETAKE_TAKE, LOOK_SOON_NS },
	{ "over, and nobody runs its P: looked at soon",
	  { OVER, .clock_stands = FACT_NO, .asleep = FACT_YES, .take_failed = true }, RETAKE_LEAVE, LOOK_SOON_NS },
	{ "over, in the runtime: it is asked without a look at its thread",
	  { OVER, .user = false, .unanswered = true }, RETAKE_YIELD, LOOK_AFTER_NS },

	/* The slice is over, and CPUs are short. */
	{ "others are quick: had it a CPU?",
	  { COMPUTES(SLICE_SHORT_NS), .allowed = SLICE_SHORT_NS, AWAKE, .brisk = true, .cpus_short = true },
	  RETAKE_SEE_USED, 0 },
	{ "others are quick, and it had no CPU: it is left",
	  { COMPUTES(2 * MS), .allowed = SLICE_SHORT_NS, AWAKE, .brisk = true, NO_CPUS, .used = MS / 2 - 1 },
	  RETAKE_LEAVE, LOOK_NS / 2 },
	{ "others are quick, and it had a CPU: another P",
	  { COMPUTES(MS), .allowed = SLICE_SHORT_NS, AWAKE, .brisk = true, NO_CPUS, .used = MS / 2 },
	  RETAKE_ANOTHER_P, LOOK_NS },
	{ "it had no CPU for some slices: it is preempted after all",
	  { COMPUTES(LACKS_CPU_SLICES * SLICE_SHORT_NS), .allowed = SLICE_SHORT_NS, AWAKE, .brisk = true, NO_CPUS },
	  RETAKE_YIELD, LOOK_AFTER_NS },
	{ "a P is idle: had it a CPU?",
	  { OVER, AWAKE, .cpus_short = true, .single = true }, RETAKE_SEE_USED, 0 },
	{ "a P is idle, and it had a CPU: another P", { OVER, AWAKE, NO_CPUS, .used = SLICE_NS / 2 }, RETAKE_ANOTHER_P, LOOK_NS },
	{ "a P is idle, and it shared its CPU: it is preempted",
	  { OVER, AWAKE, NO_CPUS, .used = SLICE_NS / 2 - 1 }, RETAKE_YIELD, LOOK_AFTER_NS },
	{ "a P is idle, and its time is not known: it is preempted",
	  { OVER, AWAKE, .cpus_short = true, .single = true, .used_known = FACT_NO }, RETAKE_YIELD, LOOK_AFTER_NS },
	{ "several goroutines shared the slice: no other P",
	  { OVER, AWAKE, NO_CPUS, .single = false, .used = SLICE_NS }, RETAKE_YIELD, LOOK_AFTER_NS },
	{ "another P was tried already: it is preempted",
	  { COMPUTES(2 * SLICE_NS), AWAKE, NO_CPUS, .used = 2 * SLICE_NS }, RETAKE_YIELD, LOOK_AFTER_NS },

	/* The slice is over, and many are stopped. */
#define MANY .many_stopped = true, .allowed = SLICE_SHORT_NS, AWAKE
	{ "many are stopped: had it a CPU?", { COMPUTES(MS), MANY }, RETAKE_SEE_USED, 0 },
	{ "many are stopped, and it had no CPU for its slice: it is left, though it does not answer",
	  { COMPUTES(5 * MS), MANY, .used_known = FACT_YES, .used = MS / 2, .unanswered = true },
	  RETAKE_LEAVE, LOOK_NS / 2 },
	{ "many are stopped, and it had its slice: it is preempted",
	  { COMPUTES(2 * MS), MANY, .used_known = FACT_YES, .used = MS }, RETAKE_YIELD, LOOK_AFTER_NS },
	{ "many are stopped, and its time is not known: it is preempted",
	  { COMPUTES(2 * MS), MANY, .used_known = FACT_NO }, RETAKE_YIELD, LOOK_AFTER_NS },
	{ "many are stopped, and it sleeps: it loses its P",
	  { COMPUTES(2 * MS), MANY, .asleep = FACT_YES }, RETAKE_TAKE, LOOK_SOON_NS },
	{ "it had no CPU for long: it loses its P after all",
	  { COMPUTES(STARVED_NS), MANY, .used_known = FACT_YES, .unanswered = true }, RETAKE_TAKE, LOOK_SOON_NS },

	/* The slice is over. */
	{ "over: it is preempted", { OVER, AWAKE }, RETAKE_YIELD, LOOK_AFTER_NS },
	{ "over, as the ones before: looked at less often", { OVER, AWAKE, .steady = true }, RETAKE_YIELD, UNANSWERED_NS },
	{ "over, not to be preempted: it is asked, and looked at less often",
	  { OVER, AWAKE, .preempt_off = true, .steady = true }, RETAKE_YIELD, LOOK_NS },
	{ "over, the handler asked for a later try", { OVER, AWAKE, .put_off = 400 * US }, RETAKE_PUT_OFF, 400 * US },
	{ "over, a later try, and a lock is fought for",
	  { OVER, AWAKE, .put_off = 400 * US, .convoy = true }, RETAKE_PUT_OFF, LOOK_SOON_NS },
	{ "over, the later try is due", { OVER, AWAKE, .put_off = -1 }, RETAKE_YIELD, LOOK_AFTER_NS },
};

TEST(each_case_has_its_action)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct retake_action act = retake_decide(&rows[i].view);

		if (act.what != rows[i].what || (rows[i].next && act.next != rows[i].next))
			FAIL("%s: action %d, next %lld", rows[i].name, act.what, (long long)act.next);
	}
}

/* Every combination of what is seen: no fact is looked up twice, a P is taken once at
 * most, and the decision ends. */
TEST(every_view_ends_in_an_action)
{
	static const int64_t ages[] = { 0, LOOK_EARLY_NS, LOOK_SOON_NS, SLICE_SHORT_NS, SLICE_NS, 5 * SLICE_NS };

	for (unsigned bits = 0; bits < 1 << 15; bits++)
		for (size_t i = 0; i < sizeof(ages) / sizeof(*ages); i++) {
			struct retake_view v = {
				.age = ages[i],
				.allowed = bits & 1 ? SLICE_NS : SLICE_SHORT_NS,
				.single = bits & 2, .resumed = bits & 4, .announced = bits & 8,
				.user = bits & 16, .steady = bits & 32, .unanswered = bits & 64,
				.preempt_off = bits & 128, .convoy = bits & 256,
				.cpus_short = bits & 512, .brisk = bits & 1024, .look = LOOK_NS,
				.many_stopped = bits & 16384,
			};
			enum retake_fact answer = bits & 2048 ? FACT_YES : FACT_NO;
			struct retake_action act;
			int looked_up = 0;

			for (;;) {
				act = retake_decide(&v);
				if (act.what == RETAKE_SEE_CLOCK && v.clock_stands == FACT_UNKNOWN)
					v.clock_stands = answer;
				else if (act.what == RETAKE_SEE_ASLEEP && v.asleep == FACT_UNKNOWN)
					v.asleep = bits & 4096 ? FACT_YES : FACT_NO;
				else if (act.what == RETAKE_SEE_USED && v.used_known == FACT_UNKNOWN)
					v.used_known = answer, v.used = bits & 8192 ? v.age : 0;
				else if (act.what == RETAKE_TAKE && !v.take_failed)
					v.take_failed = true;
				else
					break;
				looked_up++;
			}
			CHECK(looked_up <= 4);
			CHECK(act.what <= RETAKE_YIELD && act.what != RETAKE_TAKE && act.next > 0);
		}
}

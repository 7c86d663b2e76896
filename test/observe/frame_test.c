/*
 * frame_test.c - which frames of a stack are shown, for made-up stacks.
 */
#include "observe/frame.h"

#include "test.h"

/* Function i has the addresses from 100 * i on. */
enum { USER = 1, MAIN, READ, TRANSFER, TRY, START, BEGINNING, THUNK, UNLOCK };

static struct frame look(void *unused, uintptr_t address)
{
	uintptr_t function = address / 100;

	(void)unused;
	return (struct frame){
		.function = function, .is_api = function == READ || function == TRY || function == THUNK ||
		                                function == UNLOCK,
		.calls_back = function == TRY, .is_beginning = function == BEGINNING,
		.is_first = address % 100 == 0,
	};
}

#define IN(function) ((function) * 100 + 50)		/* in it, or returning to it */
#define BEGAN(function) ((function) * 100 + 1)

/* The functions shown, innermost first, as digits. */
static const char *shown(enum frames from, const uintptr_t *pc, size_t n)
{
	static char text[32];
	uintptr_t out[16];
	size_t shown = frame_program(pc, n, from, look, NULL, out);

	CHECK(shown <= n);
	for (size_t i = 0; i < shown; i++)
		text[i] = (char)('0' + out[i] / 100);
	text[shown] = '\0';
	return text;
}

#define SHOWN(from, ...) \
	shown(from, (const uintptr_t[]){ __VA_ARGS__ }, \
	      sizeof (const uintptr_t[]){ __VA_ARGS__ } / sizeof(uintptr_t))
#define STACK IN(USER), IN(MAIN), IN(BEGINNING), BEGAN(MAIN)

TEST(what_the_runtime_works_in_is_left_out)
{
	CHECK_STR(SHOWN(FRAMES_RUNTIME, IN(TRANSFER), IN(READ), STACK), "312");
	CHECK_STR(SHOWN(FRAMES_USER, IN(TRANSFER), IN(READ), STACK), "312");
	CHECK_STR(SHOWN(FRAMES_ALL, IN(TRANSFER), IN(READ), STACK), "4312");
	CHECK_STR(SHOWN(FRAMES_USER, STACK), "12");
	CHECK_STR(SHOWN(FRAMES_USER, IN(READ), STACK), "312");
}

/* goro_read unlocks a mutex in this way. */
TEST(what_a_function_of_goro_calls_of_goro_is_left_out)
{
	CHECK_STR(SHOWN(FRAMES_RUNTIME, IN(UNLOCK), IN(TRANSFER), IN(READ), STACK), "312");
	CHECK_STR(SHOWN(FRAMES_USER, IN(UNLOCK), IN(TRANSFER), IN(READ), STACK), "312");
	CHECK_STR(SHOWN(FRAMES_RUNTIME, IN(UNLOCK), IN(USER), IN(TRY), STACK), "91512");
	CHECK_STR(SHOWN(FRAMES_RUNTIME, IN(TRY), IN(USER), IN(TRY), STACK), "51512");
}

TEST(what_goro_calls_is_the_programs)
{
	CHECK_STR(SHOWN(FRAMES_USER, IN(USER), IN(TRY), STACK), "1512");
	CHECK_STR(SHOWN(FRAMES_USER, IN(TRANSFER), IN(READ), IN(USER), IN(TRY), STACK), "31512");
	CHECK_STR(SHOWN(FRAMES_RUNTIME, IN(TRANSFER), IN(TRY), STACK), "512");
}

TEST(a_function_that_left_by_a_tail_call_is_shown)
{
	CHECK_STR(SHOWN(FRAMES_RUNTIME, IN(TRANSFER), IN(READ), IN(BEGINNING), BEGAN(MAIN)), "32");
	CHECK_STR(SHOWN(FRAMES_USER, IN(USER), IN(BEGINNING), BEGAN(MAIN)), "12");
}

TEST(a_function_is_shown_once)
{
	CHECK_STR(SHOWN(FRAMES_USER, IN(MAIN), IN(BEGINNING), BEGAN(MAIN)), "2");
	CHECK_STR(SHOWN(FRAMES_USER, IN(MAIN)), "2");
}

TEST(a_goroutine_that_has_not_called_its_function_has_that_alone)
{
	CHECK_STR(SHOWN(FRAMES_RUNTIME, IN(TRANSFER), IN(BEGINNING), BEGAN(MAIN)), "2");
	CHECK_STR(SHOWN(FRAMES_USER, IN(BEGINNING), BEGAN(MAIN)), "2");
	CHECK_STR(SHOWN(FRAMES_USER, MAIN * 100), "2");
}

/* Such are run_main, and the stubs of go(). */
TEST(a_beginning_of_ours_is_not_shown)
{
	CHECK_STR(SHOWN(FRAMES_USER, IN(USER), IN(BEGINNING), BEGAN(BEGINNING)), "1");
	CHECK_STR(SHOWN(FRAMES_USER, IN(USER), IN(BEGINNING), BEGAN(THUNK)), "1");
}

TEST(other_stacks_are_left_as_they_are)
{
	CHECK_STR(SHOWN(FRAMES_USER, IN(USER), IN(MAIN)), "12");
	CHECK_STR(SHOWN(FRAMES_RUNTIME, IN(TRANSFER), IN(USER)), "41");
	CHECK_EQ(frame_program(NULL, 0, FRAMES_USER, look, NULL, NULL), 0);
}

#!/usr/bin/env bash
# Valgrind's memcheck has nothing to say of a correct program, and finds the errors of a wrong one
# in goroutines as elsewhere.
. "$SOURCE_DIR/test/script.sh"
command -v valgrind >/dev/null || skip "needs valgrind"
[ -z "$TEST_LAUNCHER" ] || skip "runs elsewhere"
[ -z "$GORO_SANITIZE" ] || skip "sanitizers and valgrind exclude each other"
grep -q '^CMAKE_BUILD_TYPE:.*=RelWithDebInfo' "$BUILD_DIR/CMakeCache.txt" || skip "one build is enough"
cd "$work"

cat >right.c <<'END'
#define _GNU_SOURCE
#include <goro.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int pipe_ends[2];

/* Its call is interrupted, and made again. */
static void sleeps(long *tid, goro_waitgroup *wg)
{
	__atomic_store_n(tid, syscall(SYS_gettid), __ATOMIC_RELEASE);
	usleep(300000);
	goro_waitgroup_done(wg);
}

static void interrupt_sleep(void)
{
	goro_waitgroup wg = { { 0 } };
	long tid = 0;

	goro_waitgroup_add(&wg, 1);
	go(sleeps, &tid, &wg);
	while (!__atomic_load_n(&tid, __ATOMIC_ACQUIRE))
		goro_sleep(GORO_MILLISECOND);
	goro_sleep(50 * GORO_MILLISECOND);
	syscall(SYS_tgkill, getpid(), tid, SIGURG);
	goro_waitgroup_wait(&wg);
}

static void square(goro_chan *results, int i)
{
	int *n = malloc(sizeof *n);

	*n = i * i;
	if (i % 2)
		goro_sleep(GORO_MILLISECOND);
	goro_chan_send(results, n);
	free(n);
	goro_chan_unref(results);
}

static void writer(int n)
{
	char text[5000] = "";

	for (int i = 0; i < n; i++)
		goro_write(pipe_ends[1], text, sizeof text);
}

static void fails(void *arg)
{
	goro_panic("%s", (const char *)arg);
}

static void waits(goro_chan *c)
{
	goro_chan_recv(c, NULL);
}

static int start(int argc, char **argv)
{
	goro_chan *results = goro_chan_of(int, 0), *never = goro_chan_of(int, 0);
	goro_timer *t = goro_timer_make(1000 * GORO_SECOND);
	char text[5000];
	int sum = 0, one;

	(void)argc; (void)argv;
	go(waits, never);
	for (int i = 0; i < 300; i++)
		go(square, goro_chan_ref(results), i);
	for (int i = 0; i < 300; i++) {
		if (i % 2)
			goro_chan_recv(results, &one);
		else
			goro_select(GORO_RECV(results, &one), GORO_RECV(goro_timer_chan(t), NULL));
		sum += one;
	}
	goro_timer_free(t);
	goro_chan_unref(results);
	if (pipe(pipe_ends) != 0)
		return 1;
	go(writer, 50);
	for (int i = 0; i < 50; i++)
		goro_read_full(pipe_ends[0], text, sizeof text);
	goro_try(fails, "caught");
	interrupt_sleep();
	printf("%d\n", sum + text[4999]);
	return 0;
}
GORO_MAIN(start)
END
cat >wrong.c <<'END'
#include <goro.h>
#include <stdlib.h>

static void overrun(goro_waitgroup *wg, int n)
{
	volatile char *text = malloc(10);

	text[n] = 1;
	free((void *)text);
	goro_waitgroup_done(wg);
}

static int start(int argc, char **argv)
{
	goro_waitgroup wg = { { 0 } };

	(void)argc; (void)argv;
	goro_waitgroup_add(&wg, 1);
	go(overrun, &wg, 10);
	goro_waitgroup_wait(&wg);
	return 0;
}
GORO_MAIN(start)
END
for name in right wrong; do
	$CC -g -O1 -Wall -Werror -I"$SOURCE_DIR/include" $name.c "$BUILD_DIR/libgoro.a" -pthread -o $name
done

memcheck() { valgrind -q --leak-check=full --suppressions="$SOURCE_DIR/tools/goro.supp" --error-exitcode=9 "$@"; }

# right PROCS [SETTINGS]: no error, no leak, no warning.
right()
{
	out=$(GORO_MAXPROCS=$1 GORO_DEBUG=${2:-} memcheck --log-file=log ./right) || { cat log; fail "$*: status $?"; }
	[ "$out" = 8955050 ] || fail "$*: printed '$out'"
	[ ! -s log ] || { cat log; fail "$*: valgrind has something to say"; }
}
right 1 noguard=1
right 2

# The examples that are quick under valgrind.
for name in 01_interleave 04_sleep 07_numbers 10_select 11_blocking 12_states; do
	$CC -g -O1 -I"$SOURCE_DIR/include" "$SOURCE_DIR/examples/learn/$name.c" "$BUILD_DIR/libgoro.a" -pthread -o $name
	memcheck --log-file=log ./$name >out || { cat log; fail "$name: status $?"; }
	[ ! -s log ] || { cat log; fail "$name: valgrind has something to say"; }
done

! memcheck ./wrong 2>log || fail "an overrun in a goroutine is not found"
grep -q "Invalid write of size 1" log && grep -q "overrun (wrong.c:" log || { cat log; fail "not where it was"; }

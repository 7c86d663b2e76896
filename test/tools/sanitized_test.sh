#!/usr/bin/env bash
# A program with AddressSanitizer or LeakSanitizer and a library without: a correct program runs
# without a report, forks by vfork too, and the errors of a wrong one are found in goroutines.
. "$SOURCE_DIR/test/script.sh"
[ -z "$TEST_LAUNCHER" ] || skip "runs elsewhere"
[ -z "$GORO_SANITIZE" ] || skip "is about a library without sanitizers"
grep -q '^CMAKE_BUILD_TYPE:.*=RelWithDebInfo' "$BUILD_DIR/CMakeCache.txt" || skip "one build is enough"
cd "$work"

cat >right.c <<'END'
#include <goro.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int child_status(void)
{
	pid_t pid = vfork();
	int status = 0;

	if (pid == 0)
		_exit(3);
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static void leave_deep(int n, const char *why)
{
	char text[100];

	memset(text, n + 1, sizeof text);
	if (n > 0)
		leave_deep(n - 1, why);
	else if (why)
		goro_panic("%s", why);
	else
		goro_goexit();
	if (text[n] == 0)
		puts("changed");
}

static void fails(void *arg)
{
	leave_deep(50, arg);
}

static void tries(goro_waitgroup *wg)
{
	if (!goro_try(fails, "deep"))
		puts("not caught");
	goro_waitgroup_done(wg);
}

static void exits(goro_waitgroup *wg)
{
	goro_defer((void (*)(void *))goro_waitgroup_done, wg);
	leave_deep(50, NULL);
}

static void yields(goro_waitgroup *wg)
{
	char text[300];

	for (int i = 0; i < 100; i++) {
		memset(text, i, sizeof text);
		goro_gosched();
	}
	goro_waitgroup_done(wg);
}

static void waits(goro_chan *c)
{
	void *held = malloc(100);

	goro_chan_recv(c, NULL);
	free(held);
}

static int start(int argc, char **argv)
{
	goro_waitgroup wg = { 0 };

	(void)argc; (void)argv;
	for (int round = 0; round < 10; round++) {
		goro_waitgroup_add(&wg, 300);
		for (int i = 0; i < 100; i++) {
			go(tries, &wg);
			go(exits, &wg);
			go(yields, &wg);
		}
		goro_waitgroup_wait(&wg);
	}
	for (int i = 0; i < 20; i++)
		go(waits, goro_chan_of(int, 0));
	goro_sleep(10 * GORO_MILLISECOND);
	printf("child: %d\n", child_status());
	return 0;
}
GORO_MAIN(start)
END

cat >wrong.c <<'END'
#include <goro.h>
#include <stdlib.h>
#include <string.h>

static volatile int n = 100;
static void *volatile kept;

static void __attribute__((noinline)) keep_own(void)
{
	char own[100];

	memset(own, 1, sizeof own);
	kept = own;
}

static void errs(const char *how)
{
	volatile char own[100], *p = malloc(100);

	switch (*how) {
	case 'h':
		p[n] = 1;
		break;
	case 's':
		own[n] = 1;
		break;
	case 'r':
		keep_own();
		*(volatile char *)kept = 1;
		break;
	}
	free((void *)p);
}

static void __attribute__((noinline)) lose(void)
{
	for (int i = 0; i < 100; i++)
		*(volatile char *)malloc(100) = 1;
}

static void goroutine(const char *how, goro_waitgroup *wg)
{
	if (*how == 'l')
		lose();
	else
		errs(how);
	goro_waitgroup_done(wg);
}

static int start(int argc, char **argv)
{
	goro_waitgroup wg = { 0 };

	(void)argc;
	goro_waitgroup_add(&wg, 1);
	go(goroutine, argv[1], &wg);
	goro_waitgroup_wait(&wg);
	return 0;
}
GORO_MAIN(start)
END

# Its main ends while goroutines are inside malloc, where they hold locks of the sanitizer's.
cat >busy.c <<'END'
#include <goro.h>
#include <stdlib.h>

static void works(void)
{
	void *volatile p[50];

	for (;;) {
		for (int i = 0; i < 50; i++)
			p[i] = malloc(100000 + 5000 * i);
		for (int i = 0; i < 50; i++)
			free(p[i]);
	}
}

static int start(int argc, char **argv)
{
	(void)argc; (void)argv;
	for (int i = 0; i < 4; i++)
		go(works);
	goro_sleep(20 * GORO_MILLISECOND);
	return 0;
}
GORO_MAIN(start)
END

# finds OUTPUT PROGRAM HOW: it ends with a report that has OUTPUT in it.
finds()
{
	local status=0
	timeout 60 "$2" "$3" >out 2>&1 || status=$?
	[ $status != 0 ] && [ $status != 124 ] && grep -q "$1" out ||
		fail "$2 $3: status $status, without '$1': $(cat out)"
}

# with CC SANITIZER LIBRARY...: false if this compiler has not got it.
with()
{
	local cc=$1 sanitizer=$2 status=0
	shift 2
	"$cc" -g -O1 -fsanitize="$sanitizer" -I"$SOURCE_DIR/include" right.c "$@" -pthread -o right 2>log &&
		"$cc" -g -O1 -fsanitize="$sanitizer" -I"$SOURCE_DIR/include" wrong.c "$@" -pthread -o wrong 2>log ||
		return 1
	export ASAN_OPTIONS=detect_stack_use_after_return=1 GORO_MAXPROCS=2
	timeout 60 ./right >out 2>&1 || status=$?
	[ "$status: $(cat out)" = "0: child: 3" ] ||
		fail "$cc -fsanitize=$sanitizer $*: a correct program: status $status: $(cat out)"
	# LeakSanitizer alone takes what is allocated on a stack it does not know for in use.
	[ "$sanitizer" = address ] || return 0
	finds 'detected memory leaks' ./wrong leak
	finds heap-buffer-overflow ./wrong heap
	finds stack-buffer-overflow ./wrong stack
	finds stack-use-after-return ./wrong return
}

ends()
{
	gcc -g -O1 -fsanitize=address -I"$SOURCE_DIR/include" busy.c "$BUILD_DIR/libgoro.a" -pthread -o busy ||
		fail "busy.c does not build"
	for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
		timeout 30 ./busy >out 2>&1 || fail "busy, run $i: status $?: $(cat out)"
	done
}

echo 'int main(void) { return 0; }' >empty.c
tried=0
for cc in gcc clang; do
	for sanitizer in address leak; do
		"$cc" -fsanitize=$sanitizer empty.c -o empty 2>/dev/null && ./empty 2>/dev/null || continue
		with $cc $sanitizer "$BUILD_DIR/libgoro.a" || fail "$cc -fsanitize=$sanitizer: $(cat log)"
		with $cc $sanitizer -L"$BUILD_DIR" -Wl,-rpath,"$BUILD_DIR" -lgoro ||
			fail "$cc -fsanitize=$sanitizer, shared: $(cat log)"
		[ $cc != gcc ] || [ $sanitizer != address ] || ends
		tried=$((tried + 1))
	done
done
[ $tried -gt 0 ] || skip "needs a compiler with AddressSanitizer"

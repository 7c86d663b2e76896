#!/usr/bin/env bash
# goro.c and goro.h, as make amalgamation writes them, are all that a program needs: gcc and clang
# compile them without a warning, and no name but goro_* can clash with one of the program's.
. "$SOURCE_DIR/test/script.sh"
[ -z "$GORO_SANITIZE" ] || skip "the same in every build"
command -v python3 >/dev/null || skip "needs python3"
cd "$work"

"$SOURCE_DIR/tools/amalgamate" "$work"
"$SOURCE_DIR/tools/amalgamate" "$work/again"
cmp goro.c again/goro.c || fail "not the same twice"

# The program has functions of its own with names of the runtime's.
cat >prog.c <<'END_OF_PROGRAM'
#include "goro.h"
#include <stdlib.h>
#include <unistd.h>

int park(int n);
int park(int n) { return n * n; }
int sched = 1, g_start = 2;

static volatile bool stop;

static void spin(void)
{
	while (!stop)
		;
}

static void square(goro_chan *c, int n)
{
	int result = park(n);
	goro_sleep(1000000);
	goro_chan_send(c, &result);
	goro_chan_unref(c);
}

static void wait_in_read(int fd, goro_chan *done)
{
	char c;
	ssize_t n = goro_read(fd, &c, 1);
	goro_chan_send(done, &n);
}

static int start(int argc, char **argv)
{
	goro_chan *c = goro_chan_of(int, 0), *done = goro_chan_of(ssize_t, 0);
	int sum = sched + g_start - 3, one, fds[2];
	ssize_t n = 0;

	(void)argv;
	if (argc > 1)
		goro_panic("as told");
	go(spin);
	for (int i = 1; i <= 3; i++)
		go(square, goro_chan_ref(c), i);
	for (int i = 1; i <= 3; i++) {
		goro_chan_recv(c, &one);
		sum += one;
	}
	if (pipe(fds) != 0)
		abort();
	go(wait_in_read, fds[0], done);
	goro_write(fds[1], "x", 1);
	goro_chan_recv(done, &n);
	stop = true;
	printf("%d %d\n", sum, (int)n);
	goro_chan_unref(c);
	goro_chan_unref(done);
	return 0;
}
GORO_MAIN(start)
END_OF_PROGRAM

# try COMPILER [LAUNCHER...]: compiled as the documents say, run on one and on four processors.
try()
{
	local cc=$1 procs out
	shift
	mkdir "of_$cc"
	"$cc" -O1 -Wall -Werror prog.c goro.c -pthread -o "of_$cc/prog" >"of_$cc/log" 2>&1 ||
		fail "$cc: $(cat "of_$cc/log")"
	for procs in 1 4; do
		out=$(GORO_MAXPROCS=$procs "$@" "of_$cc/prog") || fail "$cc: status $?"
		[ "$out" = "14 1" ] || fail "$cc: printed '$out'"
	done
	"$@" "of_$cc/prog" panic >"of_$cc/log" 2>&1 && fail "$cc: a panic that is none"
	grep -q 'as told' "of_$cc/log" || fail "$cc: $(cat "of_$cc/log")"
	"$NM" --defined-only -g "of_$cc/prog" | awk '{ print $3 }' >"of_$cc/names"
	! grep -qE '^(g_ready|sched_exit|runq_put|context_entry|page_html)$' "of_$cc/names" ||
		fail "$cc: names of the runtime's are global"
}

# A program in C++ has goro.hpp beside goro.h.
cat >prog.cc <<'END_OF_PROGRAM'
#include "goro.hpp"
static int start(int, char **)
{
	return goro::spawn([] { return 3; }).join() - 3;
}
GORO_MAIN(start)
END_OF_PROGRAM
if command -v g++ >/dev/null; then
	g++ -std=c++17 -Wall -Wextra -Werror -fsyntax-only prog.cc 2>log || fail "goro.hpp: $(cat log)"
fi

if [ -n "$TOOLCHAIN_FILE" ]; then
	try "${CC##*/}" $TEST_LAUNCHER
	exit
fi
waiting=()
for cc in gcc clang; do
	command -v $cc >/dev/null || continue
	try $cc &
	waiting+=($!)
done
[ ${#waiting[@]} != 0 ] || skip "needs gcc or clang"
status=0
for pid in "${waiting[@]}"; do wait "$pid" || status=1; done
exit $status

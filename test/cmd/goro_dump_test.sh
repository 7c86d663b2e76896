#!/usr/bin/env bash
# goro dump: the stacks of a program that was told nothing beforehand, by its process id, also
# while it computes; of one that serves, by its address; the program goes on. What cannot be
# asked is said.
. "$SOURCE_DIR/test/cmd/command.sh"

cat >program.c <<'END'
#include <goro.h>

static void waits_for_nothing(goro_chan *c) { goro_chan_recv(c, NULL); }
static void computes(void) { for (volatile long i = 0;; i++) ; }

static int start(int argc, char **argv)
{
	char line[8];

	(void)argc, (void)argv;
	go(waits_for_nothing, goro_chan_of(int, 0));
	go(computes);
	goro_gosched();
	puts("ready");
	fflush(stdout);
	return fgets(line, sizeof line, stdin) == NULL;
}
GORO_MAIN(start)
END
CC=$CC "$goro" build -o program program.c
mkfifo input
exec 3<>input
GORO_DEBUG_SERVE=unix:$work/socket GORO_MAXPROCS=1 ./program <input >output &
pid=$!
at_end="kill $pid"
for ((i = 0; i < 500; i++)); do
	grep -q ready output && [ -S socket ] && break
	sleep 0.02
done

for target in $pid $pid "unix:$work/socket"; do
	expect 0 "waits_for_nothing(...)" "$goro" dump "$target"
	expect 0 "computes(...)" "$goro" dump "$target"
done
! "$goro" dump $pid >/dev/full 2>/dev/null || fail "a full disk is not told"
echo on >&3
wait $pid || fail "the program ended with $?"
at_end=

sleep 60 &
pid=$!
at_end="kill $pid"
expect 1 "does not run goroutines" "$goro" dump $pid
kill -0 $pid || fail "a program without goro was ended"
expect 1 "No such process" "$goro" dump 999999999
expect 1 "No such file" "$goro" dump "unix:$work/nothing"
expect 1 "neither a process id nor" "$goro" dump somebody
expect 2 "usage: goro dump" "$goro" dump
expect 0 "usage: goro dump" "$goro" dump --help

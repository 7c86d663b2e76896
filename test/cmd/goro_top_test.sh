#!/usr/bin/env bash
# goro top: frames as plain text, of a program by its process id and by its address, no wider than
# 80 columns; on a terminal the other screen, until q. The words of goro are completed in bash.
. "$SOURCE_DIR/test/cmd/command.sh"

# ----------------------------------------------------------------- completion

# completes WANT WORD...: the last word is completed to these.
completes()
{
	local want=$1
	shift
	COMP_WORDS=(goro "$@") COMP_CWORD=$#
	_goro
	[ "$(printf '%s\n' "${COMPREPLY[@]}" | sort | xargs)" = "$want" ] || fail "$*: completed to ${COMPREPLY[*]}"
}
set +e
. "$SOURCE_DIR/cmd/goro.bash"
for name in $("$goro" --help | sed -n 's/^    \([a-z]*\) .*/\1/p'); do
	completes "$name" "$name"
	options=$("$goro" "$name" --help | grep -oE '(^    |\[)--?[a-z]+' | grep -oE -- '-+[a-z]+')
	completes "$(printf '%s\n' --help $options | sort -u | xargs)" "$name" -
done
touch hello.c hello.txt
completes hello.c run hel
completes -o build -o
completes "" top -n ""
completes block profile --kind b
set -e

# ---------------------------------------------------------------------- frames

cat >program.c <<'END'
#include <goro.h>

static void waits(goro_chan *c) { goro_chan_recv(c, NULL); }

static int start(int argc, char **argv)
{
	goro_chan *c = goro_chan_of(int, 0);

	(void)argc, (void)argv;
	for (int i = 0; i < 30; i++)
		go(waits, c);
	for (;;)
		goro_sleep(GORO_MILLISECOND);
	return 0;
}
GORO_MAIN(start)
END
CC=$CC "$goro" build -o program program.c
GORO_DEBUG_SERVE=unix:$work/socket ./program &
pid=$!
at_end="kill $pid"
for ((i = 0; i < 500; i++)); do
	[ -S socket ] && break
	sleep 0.02
done
completes "$pid" dump "$pid"

for target in $pid "unix:$work/socket"; do
	"$goro" top -n 2 -d 0.1 "$target" >frames || fail "top $target: status $?"
	[ "$(grep -c "^goro top - $target, up " frames)" = 2 ] || fail "not two frames: $(cat frames)"
	grep -q "chan receive  *30 #" frames || fail "no reason: $(cat frames)"
	grep -Eq "^Goroutines +3[0-9] +running" frames || fail "no goroutines: $(cat frames)"
	grep -Eq "^Queues +[0-9]+ +global [0-9]+ +of processors [0-9]+ +longest of these [0-9]+$" frames || fail "no queues: $(cat frames)"
	grep -Eq "^Files +[1-9][0-9]* +at most [0-9.,]+( [kMGTP])?$" frames || fail "no files: $(cat frames)"
	grep -Eq "^switches +[1-9]" frames || fail "no rate: $(cat frames)"
	! grep -q $'\033' frames || fail "colours, though this is no terminal"
	! grep ' $' frames || fail "blanks at the end of lines"
	! grep -E '^.{81}' frames || fail "wider than 80 columns"
done
if command -v script >/dev/null; then
	(sleep 0.5; printf q) | TERM=xterm timeout 20 script -qec "$goro top -d 0.1 $pid" /dev/null >screen ||
		fail "on a terminal: status $?"
	grep -q $'\033\\[?1049h' screen && grep -q $'\033\\[?1049l' screen || fail "the screen is not given back"
	grep -q "chan receive" screen || fail "nothing is shown on a terminal"
fi

rm frames		# the shell below may take a while to empty it
"$goro" top -d 0.1 $pid >frames 2>errors &
top=$!
for ((i = 0; i < 500; i++)); do
	grep -q Goroutines frames 2>/dev/null && break
	sleep 0.02
done
kill $pid
wait $pid 2>/dev/null || true
at_end=
status=0
wait $top || status=$?
[ "$status" = 1 ] || fail "when the program ends: status $status"
grep -q "has ended" errors || fail "when the program ends it says: $(cat errors)"

for words in "" "-n x 1" "-d 0 1" "-q 1" "1 2"; do
	status=0
	"$goro" top $words 2>/dev/null || status=$?
	[ "$status" = 2 ] || fail "top $words: status $status"
done
"$goro" top --help | grep -q "usage: goro top" || fail "no help"

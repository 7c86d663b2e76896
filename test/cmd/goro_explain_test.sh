#!/usr/bin/env bash
# goro explain: what it tells is the trace of a program that ran: each scene has what it is there to
# show, and a trace that was kept is told in the same words. Plain text fits 80 columns; on a terminal
# the keys go from step to step and scene to scene. Broken traces never crash it.
. "$SOURCE_DIR/test/cmd/command.sh"

# has TEXT...: the output, with its lines joined and blanks squeezed, has these.
has()
{
	local text joined
	joined=$(tr -s ' \n' '  ' <out)
	for text in "$@"; do
		grep -Eq "$text" <<<"$joined" || { echo "no '$text'"; return 1; }
	done
}
# shows SCENE TEXT...: it has these in one of some runs: what a scene shows depends on what
# else the machine does.
shows()
{
	local scene=$1 i why=
	shift
	for ((i = 0; i < 20; i++)); do
		status 0 "$goro" explain "$scene"
		[ ! -s errors ] || fail "explain $scene says: $(cat errors)"
		! grep -E '^.{81}' out || fail "explain $scene: wider than 80 columns"
		! grep -Eq '(G[0-9]+ [a-z]+) +\1 ends' out || fail "explain $scene: one that has ended is still there"
		! grep -q $'\033' out || fail "explain $scene: colours, though this is no terminal"
		why=$(has "$@") && return
	done
	fail "explain $scene: $why in: $(cat out)"
}

status 0 "$goro" explain --help
has 'usage: goro explain' || fail "no help"
status 0 "$goro" explain --list
[ "$(wc -l <out)" = 6 ] || fail "not six scenes: $(cat out)"
names=$(awk '{ print $1 }' out)
(
	set +e
	. "$SOURCE_DIR/cmd/goro.bash"
	COMP_WORDS=(goro explain "") COMP_CWORD=2
	_goro
	for name in $names; do
		[[ " ${COMPREPLY[*]} " == *" $name "* ]] || fail "bash does not complete $name"
	done
)
for words in "-x" "none" "spawn none" "--from 2 --to 1 spawn" "--html page.html" "-o file spawn steal"; do
	status 2 "$goro" explain $words
done

# What each shows. Of spawn all is certain but the processors.
shows spawn 'A plain thread starts G2 main: ready, in the global queue' 'G2 main starts G6 worker: ready, in P[01].s queue' \
	'G2 main waits \(sync\) for a group' '(G. worker ends.*){4}' 'makes G2 main ready'
shows steal 'P[01] has stolen G[3-8] worker from P[01], and runs it on M[0-9]+'
shows channel 'G2 producer waits \(chan send\) until another goroutine receives' 'G3 consumer waits \(chan receive\) until another goroutine sends' \
	'G3 consumer makes G2 producer ready, in P0.s queue' 'G2 producer makes G3 consumer ready, in P0.s queue' 'G3 consumer ends'
shows call 'G4 sleeper is in a call that blocks, on its thread M([0-9]+)\. .*P0 is taken from M\1, which is asleep .*runs it on M' \
	'The call of G4 sleeper is over\. Its processor is gone' 'G4 sleeper has a processor again, P0'
shows hog 'G4 hog has run for [0-9.]+ ms: it is preempted' 'G4 hog keeps its thread M([0-9]+), which gives P0 to another.*the thread of G4 hog\. .*M\1 takes P0' \
	'G3 patient ends.*G4 hog ends'
shows poll 'G3 reader waits \(network\) for a descriptor' 'The timer of G2 writer goes off' 'The poller finds data for G3 reader' 'P0 has nothing to run'
status 0 "$goro" explain spawn poll
has 'spawn: .*poll: ' || fail "not both scenes"

# The trace is that of the run; its page has it.
status 0 "$goro" explain -o kept.trace channel
sed '1,/what happened/d' out >first
status 0 "$goro" explain kept.trace
sed '1,/what happened/d' out | diff first - || fail "the kept trace is told otherwise"
# Each goroutine's end in the trace is told. (The trace may stop before that of the main goroutine:
# goro_run returns when the main function has, and the goroutine ends beside that.)
status 0 "$goro" trace --perfetto kept.json kept.trace
ends=$(grep -c '"until":"its end"' kept.json)
[ "$ends" -ge 1 ] && [ "$(grep -c ' ends\.$' first)" = "$ends" ] || fail "not each of $ends goroutines' ends is told: $(cat first)"
status 0 "$goro" explain --html page.html hog
grep -q '"name":"hog"' page.html || fail "the page is not the scene's"
COLUMNS=80 status 0 "$goro" explain --to 0.000000001 kept.trace
! has 'G3' >/dev/null || fail "--to shows what comes behind"

# The programs are what they say, and a program of one's own is told.
for name in $names; do
	"$goro" explain --source $name >$name.c
	CC=$CC "$goro" build -o $name $name.c
	timeout 60 ./$name || fail "$name.c: status $?"
done
XDG_CACHE_HOME=$work/cache CC=$CC status 0 "$goro" explain poll.c
has '^poll.c ' 'G2 writer starts G3 reader' || fail "a program of one's own: $(cat out)"
status 0 "$goro" explain ./poll
has 'The poller finds data' || fail "a program of one's own: $(cat out)"
status 1 "$goro" explain ./none
echo text >text
status 1 "$goro" explain ./text

# ------------------------------------------------------------- broken traces

size=$(stat -c %s kept.trace)
for ((at = 16; at < size; at += size / 29)); do
	{ head -c "$at" kept.trace; printf '\377\001'; tail -c +$((at + 3)) kept.trace; } >broken.trace
	timeout 60 "$goro" explain broken.trace >out 2>errors || [ $? = 1 ] || fail "broken at $at: status $?"
	head -c "$at" kept.trace >cut.trace
	status 1 "$goro" explain ./cut.trace
done

# --------------------------------------------------------------- on a terminal

command -v script >/dev/null || exit 0
# keys TEXT...: each is typed after a moment.
keys()
{
	local key
	sleep 1
	for key in "$@"; do
		printf '%b' "$key"
		sleep 0.3
	done
}
keys '\033[C' '\033[C' '\033[D' ' ' n s x p q | TERM=xterm timeout 60 script -qec "$goro explain channel hog" /dev/null >screen ||
	fail "on a terminal: status $?"
grep -q $'\033\\[?1049h' screen && grep -q $'\033\\[?1049l' screen || fail "the screen is not given back"
for text in 'channel: values' 'step 1 of' 'step 2 of' 'step 3 of' 'hog: a goroutine' 'it neither\|no call, in which' 'G2 producer'; do
	grep -q "$text" screen || fail "no '$text' on the terminal"
done

# A program of the reader's: once it has ended. A queue that is wider than the screen ends in a number.
cat >crowd.c <<'END'
#include <goro.h>

static goro_waitgroup all;

static void one_of_many(void) { goro_waitgroup_done(&all); }

static int start(int argc, char **argv)
{
	(void)argc, (void)argv;
	goro_waitgroup_add(&all, 12);
	for (int i = 0; i < 12; i++)
		go(one_of_many);
	goro_waitgroup_wait(&all);
	return 0;
}
GORO_MAIN(start)
END
CC=$CC "$goro" build -o crowd crowd.c
keys '\033[C' '\033[C' '\033[C' '\033[C' '\033[C' '\033[C' '\033[C' '\033[C' '\033[C' '\033[C' '\033[C' '\033[C' q |
	GORO_MAXPROCS=1 TERM=xterm timeout 60 script -qec "$goro explain ./crowd" /dev/null >screen ||
	fail "a program on a terminal: status $?"
for text in 'step 1 of' 'step 12 of' ', +[1-9]'; do
	grep -q "$text" screen || fail "no '$text' on the terminal"
done

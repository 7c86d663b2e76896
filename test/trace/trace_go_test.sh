#!/usr/bin/env bash
# Go's own tools open the traces of trace_test. Go's reader checks each event against
# those before it; its counts must equal those of trace_reader.h; and it makes profiles.
. "$SOURCE_DIR/test/script.sh"
need_go trace 23	# the first that reads this version of the format

# Lines of Go's listing with the transition $1, against the events of the kinds $2...
agrees()
{
	local transition=$1 found ours
	shift
	found=$(grep -c "GoID=.* $transition$" "$work/events" || true)
	ours=$(awk -v kinds="$*" 'index(" " kinds " ", " " $1 " ") { n += $2 } END { print n + 0 }' \
		"$work/trace.counts")
	[ "$found" -eq "$ours" ] || fail "$test, $procs Ps: $found times $transition, not $ours"
}

# Runs test $1 of trace_test with $2 Ps, and reads its trace.
read_by_go()
{
	test=$1 procs=$2
	GORO_MAXPROCS=$procs TRACE_KEEP=$work/trace $TEST_LAUNCHER \
		"$BUILD_DIR/test/trace_test" "$test" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
	"$go" tool trace -d=1 "$work/trace" >"$work/events" 2>"$work/error" ||
		fail "$test, $procs Ps: $(head -c 2000 "$work/error")"
	agrees 'Runnable->Running' GoStart
	agrees 'Running->Waiting' GoBlock
	agrees 'Running->NotExist' GoDestroy
	agrees 'Running->Syscall' GoSyscallBegin
}

for test in channels_are_told goroutines_in_every_state_are_there_at_the_start \
	plain_threads_are_told changes_of_gomaxprocs_are_told generations_follow_each_other; do
	read_by_go $test 2
done
for profile in net sync syscall sched; do
	"$go" tool trace -pprof=$profile "$work/trace" >"$work/profile" || fail "no $profile profile"
done
read_by_go a_busy_program_is_traced 4

#!/usr/bin/env bash
# The exceptions of goroutines that wait in catch blocks and destructors, by gcc and clang, with 1, 2, 4
# and 64 Ps, goroutines that move at each wake, and slices of 1 ms: TIMES times each (3; 100 takes minutes).
. "$SOURCE_DIR/test/script.sh"
[ -z "$TEST_LAUNCHER" ] || skip "runs elsewhere"
[ -z "$GORO_SANITIZE" ] || skip "cxx does this under a sanitizer"
grep -q '^CMAKE_BUILD_TYPE:.*=RelWithDebInfo' "$BUILD_DIR/CMakeCache.txt" || skip "one build is enough"

tests='a_goroutine_that_waits_in_a_catch_block_rethrows_its_own_exception
nested_exceptions_stay_with_their_goroutine
a_destructor_may_wait_while_an_exception_passes
a_goroutine_that_exits_in_a_catch_block_leaves_no_exception_to_the_next'

ran=0
for compiler in g++ clang++; do
	command -v $compiler >/dev/null || continue
	$compiler -std=gnu++17 -O2 -g -I"$SOURCE_DIR/include" -I"$SOURCE_DIR/src" -I"$SOURCE_DIR/test" \
		-DTEST_EXAMPLES_DIR='""' -DTEST_SOURCE_DIR='""' "$SOURCE_DIR/test/sched/cxx_test.cc" \
		-Wl,--whole-archive "$BUILD_DIR/libgoro_internal.a" -Wl,--no-whole-archive -pthread -lm -o "$work/cxx" 2>"$work/log" ||
		fail "$compiler: $(cat "$work/log")"
	for procs in 1 2 4 64; do
		for ((i = 0; i < ${TIMES:-3}; i++)); do
			GORO_MAXPROCS=$procs GORO_DEBUG=migrate=1,slice=1000 timeout 100 "$work/cxx" $tests \
				>"$work/out" 2>&1 ||
				fail "$compiler, $procs Ps, run $i: status $?: $(cat "$work/out")"
			ran=$((ran + 1))
		done
	done
done
[ $ran -gt 0 ] || skip "needs a C++ compiler"
echo "$ran runs"

#!/usr/bin/env bash
# C++ exceptions in goroutines (cxx_test.cc) work with each compiler, C++ runtime and way to link
# there is, with goroutines moved at every wake-up and stopped every millisecond; and the
# library itself needs nothing of C++.
. "$SOURCE_DIR/test/script.sh"
grep -q '^CMAKE_BUILD_TYPE:[A-Z]*=RelWithDebInfo$' "$BUILD_DIR/CMakeCache.txt" ||
	skip "the release build does it"
[ -z "$TEST_LAUNCHER" ] || skip "runs elsewhere"
command -v g++ >/dev/null || skip "needs g++"

needed=$(objdump -p "$BUILD_DIR/libgoro.so" | awk '/NEEDED/ { print $2 }')
for library in $needed; do
	case $library in
	libc.so*|ld-linux*) ;;
	*) fail "libgoro.so needs $library" ;;
	esac
done

# try WHAT COMPILER FLAGS...
try()
{
	local what=$1 procs
	shift
	echo 'int main() { return 0; }' >"$work/probe.cc"
	"$@" "$work/probe.cc" -o "$work/probe" 2>/dev/null || return 0
	"$@" -std=c++17 -Wall -Wextra -Werror -I"$SOURCE_DIR/include" -I"$SOURCE_DIR/test" \
		"$SOURCE_DIR/test/sched/cxx_test.cc" -o "$work/program" $libraries -pthread 2>"$work/log" ||
		{ cat "$work/log"; fail "$what: does not build"; }
	for procs in 1 4; do
		GORO_MAXPROCS=$procs GORO_DEBUG=migrate=1,slice=1000 "$work/program" >"$work/log" 2>&1 ||
			{ cat "$work/log"; fail "$what, $procs processors"; }
	done
	echo "$what"
}

libraries=$BUILD_DIR/libgoro.a
try "g++, all static" g++ -static
try "clang++" clang++
try "clang++ with libc++" clang++ -stdlib=libc++
libraries="-L$BUILD_DIR -lgoro -Wl,-rpath,$BUILD_DIR"
try "g++, libgoro.so" g++
try "g++, libgoro.so and a static C++ runtime" g++ -static-libstdc++ -static-libgcc

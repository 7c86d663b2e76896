#!/usr/bin/env bash
# goro.hpp compiles without a warning by gcc and clang, as C++17 and 20, with and without exceptions, and
# passes its test (hpp_test.cc); two files of a program may include it.
. "$SOURCE_DIR/test/script.sh"
[ -z "$TEST_LAUNCHER" ] || skip "runs elsewhere"
[ -z "$GORO_SANITIZE" ] || skip "hpp does this under a sanitizer"
grep -q '^CMAKE_BUILD_TYPE:.*=RelWithDebInfo' "$BUILD_DIR/CMakeCache.txt" || skip "one build is enough"
warnings="-Wall -Wextra -Wshadow -Wpedantic -Werror"
cd "$work"

# What a program without exceptions, and beside other files that include it, has to say.
cat >twice.cc <<'END'
#include <goro.hpp>
int elsewhere();
int elsewhere() { return goro::spawn([] { return 1; }).join(); }
END
cat >program.cc <<'END'
#include <goro.hpp>
#include <cstdio>
int elsewhere();
static int start(int, char **)
{
	goro::chan<std::string> c(1);
	goro::group g;
	int n = 0;

	g.go([c]() mutable { c.send("sent"); c.close(); });
	for (std::string &s : c)
		n += static_cast<int>(s.size());
	return std::printf("%d\n", g.wait() + n + elsewhere()) < 0;
}
GORO_MAIN(start)
END

# hpp NAME COMPILER FLAGS...
hpp()
{
	local name=hpp_$1
	shift
	"$@" -Wall -Wextra -Werror -I"$SOURCE_DIR/include" -I"$SOURCE_DIR/test" \
		"$SOURCE_DIR/test/cxx/hpp_test.cc" "$BUILD_DIR/libgoro.a" -pthread -o "$name" 2>"$name.log" ||
		fail "$*: $(cat "$name.log")"
	GORO_MAXPROCS=4 timeout 100 "./$name" >"$name.log" 2>&1 || fail "$*: $(cat "$name.log")"
}

# try NAME COMPILER FLAGS...
try()
{
	local name=$1
	shift
	"$@" -O1 $warnings -I"$SOURCE_DIR/include" program.cc twice.cc "$BUILD_DIR/libgoro.a" -pthread -o "$name" \
		2>"$name.log" || fail "$*: $(cat "$name.log")"
	[ "$(timeout 20 "./$name")" = 5 ] || fail "$*: program.cc"
}

waiting=()
for compiler in g++ clang++; do
	command -v $compiler >/dev/null || continue
	try "17_$compiler" $compiler -std=c++17 -fno-exceptions &
	waiting+=($!)
	try "20_$compiler" $compiler -std=c++20 &
	waiting+=($!)
done
# The build's own compiler and C++17 have run it already.
! command -v clang++ >/dev/null || { hpp 20 clang++ -std=c++20 & waiting+=($!); }
! command -v g++ >/dev/null || { hpp 17 g++ -std=c++17 -fno-exceptions & waiting+=($!); }
[ ${#waiting[@]} != 0 ] || skip "needs a C++ compiler"
status=0
for pid in "${waiting[@]}"; do wait "$pid" || status=1; done
exit $status

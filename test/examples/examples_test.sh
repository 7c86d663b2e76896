#!/usr/bin/env bash
# The examples that have their output beside them print that; with GO=1 and a Go, the Go
# programs beside them print the same.
. "$SOURCE_DIR/test/script.sh"
[ -z "$GORO_SANITIZE" ] || skip "what takes how long is part of the examples"
cd "$SOURCE_DIR/examples"
status=0

# Whether the machine runs the program without the launcher, as an example does that runs itself.
runs_by_name()
{
	"$BUILD_DIR/examples/$1" child >"$work/got" 2>&1
	[ $? != 126 ]
}

for out in */*.out; do
	example=${out%.out}
	[ ! -e "$example.cc" ] || continue
	[ "$example" != learn/14_queues ] || runs_by_name "$example" || continue
	timeout 60 $TEST_LAUNCHER "$BUILD_DIR/examples/$example" >"$work/got" 2>"$work/err" ||
		{ echo "examples/$example: status $?"; cat "$work/err"; status=1; }
	diff -u "$out" "$work/got" || status=1
	[ ! -s "$work/err" ] || { echo "examples/$example says: $(cat "$work/err")"; status=1; }
done

# Those in C++ are compiled as their comment says.
if command -v g++ >/dev/null && [ -z "$TEST_LAUNCHER" ]; then
	for source in cxx/*.cc; do
		g++ -std=c++17 -Wall -Wextra -Wshadow -Werror -I"$SOURCE_DIR/include" "$source" \
			"$BUILD_DIR/libgoro.a" -pthread -o "$work/program" || { status=1; continue; }
		timeout 60 "$work/program" >"$work/got" || { echo "examples/$source: status $?"; status=1; }
		diff -u "${source%.cc}.out" "$work/got" || status=1
	done
fi
[ -n "${GO:-}" ] || exit $status

need_go trace 21
for program in */*.go; do
	"$go" build -o "$work/go_program" "$program" && timeout 60 "$work/go_program" >"$work/got" ||
		{ echo "examples/$program: status $?"; status=1; }
	diff -u "${program%.go}.out" "$work/got" || status=1
done
exit $status

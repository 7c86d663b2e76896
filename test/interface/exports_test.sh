#!/usr/bin/env bash
# The libraries offer the functions of the public headers, and no other name; the
# headers compile cleanly on their own, as C11 and as C++17.
. "$SOURCE_DIR/test/script.sh"
cd "$SOURCE_DIR"
command -v gcc >/dev/null || skip "needs gcc"
status=0
complain() { echo "$*" >&2; status=1; }

# Functions declared in the headers: gcc lists every prototype it has seen, one a line,
# after a comment with the place.
echo '#include <goro.h>' >"$work/header.c"
gcc -std=gnu11 -fsyntax-only -Iinclude -aux-info "$work/prototypes" "$work/header.c"
sed -n 's|^/\* [^ ]*include/goro[^ ]* \*/ extern .*[ *]\(goro_[a-z0-9_]*\) (.*|\1|p' \
	"$work/prototypes" | sort -u >"$work/declared"
[ -s "$work/declared" ] || complain "no function found in include/goro.h"

"$NM" -D --defined-only "$BUILD_DIR/libgoro.so" | awk '{ sub(/@.*/, "", $3); print $3 }' |
	sort -u >"$work/shared"
"$NM" -g --defined-only "$BUILD_DIR/libgoro.a" | awk 'NF == 3 { print $3 }' | sort -u >"$work/static"

for library in shared static; do
	for name in $(grep -v '^goro_\|^GORO_[0-9.]*$' "$work/$library"); do
		complain "$library library: $name is visible"
	done
	for name in $(comm -23 "$work/declared" "$work/$library"); do
		complain "$library library: $name is declared and missing"
	done
done

# A set-uid program's environment is its caller's: environment.c alone reads it, and knows that.
"$NM" -uD "$BUILD_DIR/libgoro.so" | grep -w getenv && complain "getenv is used: see environment.h"

compiles()
{
	command -v "$1" >/dev/null || return 0
	"$@" -Wall -Wextra -pedantic -Werror -fsyntax-only -Iinclude || complain "$*: does not compile cleanly"
}
cp "$work/header.c" "$work/header.cc"
for cc in gcc clang; do
	compiles $cc -std=c11 "$work/header.c"
done
for cxx in g++ clang++; do
	compiles $cxx -std=c++17 "$work/header.cc"
done
exit $status

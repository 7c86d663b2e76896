#!/usr/bin/env bash
# No exported symbol, and no layout of a public structure, changes by accident; the version of
# goro.h is the project's.
. "$SOURCE_DIR/test/script.sh"
cd "$SOURCE_DIR"

version=$(sed -n 's/^project(goro VERSION \([^ ]*\).*/\1/p' CMakeLists.txt)
[ "$(printf '#define GORO_NO_ERRNO\n#include <goro.h>\nGORO_VERSION_MAJOR.GORO_VERSION_MINOR.GORO_VERSION_PATCH GORO_VERSION\n' |
	${CC:-cc} -E -P -Iinclude - | tail -1 | tr -d ' ')" = "$version\"$version\"" ] ||
	fail "goro.h has another version than CMakeLists.txt: $version"

command -v abidiff >/dev/null || skip "needs abidiff"
[ -s "test/abi/$(uname -m).abi" ] || skip "nothing is recorded for $(uname -m)"
readelf -hd "$BUILD_DIR/libgoro.so" >"$work/elf"
grep -q 'libc\.so\.6' "$work/elf" || skip "recorded with another libc"
grep -qi "machine:.*$(uname -m | tr _ -)" "$work/elf" || skip "built for another processor"
tools/abi check "$BUILD_DIR"

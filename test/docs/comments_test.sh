#!/usr/bin/env bash
# Comments and documents point to files, functions and titles that are there; a pointer to one that
# is not is found.
. "$SOURCE_DIR/test/script.sh"
command -v python3 >/dev/null || skip "needs python3"
cd "$SOURCE_DIR"
python3 test/comments.py || fail "these pointers lead nowhere"

mkdir -p "$work/src" "$work/test"
printf '/* See gone.c, gone_function and "A title" in here.c. */\nint x;\n' >"$work/src/here.c"
echo 'It calls `gone_too` in `here.c`.' >"$work/ARCHITECTURE.md"
cp test/comments.py "$work/test"
cd "$work"
[ "$(python3 test/comments.py | wc -l)" = 4 ] || fail "a wrong pointer is not found"

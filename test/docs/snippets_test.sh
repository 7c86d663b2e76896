#!/usr/bin/env bash
# Every piece of C in README.md and docs/ compiles, and every whole program there prints what
# the page says.
. "$SOURCE_DIR/test/script.sh"
[ -z "$GORO_SANITIZE" ] || skip "they link with the plain library"
[ -z "$TEST_LAUNCHER" ] || skip "runs on this machine only"
cd "$SOURCE_DIR"
python3 test/snippets.py "$CC" -D_GNU_SOURCE -std=gnu11 -Iinclude -- "$BUILD_DIR/libgoro.a" README.md docs/*.md

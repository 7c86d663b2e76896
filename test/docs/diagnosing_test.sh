#!/usr/bin/env bash
# docs/diagnosing.md: each program has the fault that the page says, and the commands below it
# print what stands there.
. "$SOURCE_DIR/test/script.sh"
[ -z "$GORO_SANITIZE" ] || skip "the command is tested without sanitizers"
[ -z "$TEST_LAUNCHER" ] || skip "runs on this machine only"
python3 "$SOURCE_DIR/test/docs/diagnosing.py" "$BUILD_DIR/bin/goro" "$CC" "$SOURCE_DIR/docs/diagnosing.md" "$work"

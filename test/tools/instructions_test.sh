#!/usr/bin/env bash
# The hot paths take no more instructions than recorded, within 3 %.
set -eu
command -v valgrind >/dev/null || { echo "needs valgrind"; exit 77; }
[ -z "$TEST_LAUNCHER" ] || { echo "runs elsewhere"; exit 77; }
exec python3 "$SOURCE_DIR/bench/instructions/count" check "$BUILD_DIR"

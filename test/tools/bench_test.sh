#!/usr/bin/env bash
# bench/run compares, judges and reports as docs/benchmarks.md says.
set -eu
[ -z "$TEST_LAUNCHER" ] || { echo "nothing of it depends on the machine"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1
exec python3 "$SOURCE_DIR/test/bench_runner.py"

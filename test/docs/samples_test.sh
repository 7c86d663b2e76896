#!/usr/bin/env bash
# What the pages show of goro trace, profile and explain is what these print: the same titles, rows
# and columns, with other numbers. A page with another title, row, column or sentence is found.
. "$SOURCE_DIR/test/script.sh"
[ -z "$GORO_SANITIZE" ] || skip "the command is tested without sanitizers"
[ -z "$TEST_LAUNCHER" ] || skip "runs on this machine only"
command -v python3 >/dev/null || skip "needs python3"
PATH=$BUILD_DIR/bin:$PATH
cp "$SOURCE_DIR"/examples/*.[ch] "$work"
samples() { python3 "$SOURCE_DIR/test/docs/samples.py" "$work" "$@"; }
samples "$SOURCE_DIR"/README.md "$SOURCE_DIR"/docs/*.md | tee "$work/said"
grep -q '^samples of explain, profile, trace; 0 failed' "$work/said" || fail "not all three commands are shown"

# drifted PAGE SED: the same page with a change is not what is printed.
drifted()
{
	sed -E "$2" "$SOURCE_DIR/docs/$1" >"$work/$1"
	! cmp -s "$SOURCE_DIR/docs/$1" "$work/$1" || fail "$1 has nothing for $2"
	! TRIES=2 samples "$work/$1" >"$work/said" || fail "$1 with $2 passes"
	grep -q '1 failed' "$work/said" || fail "$1 with $2: $(cat "$work/said")"
}
drifted tracing.md 's/^The goroutines were  /The goroutines have been/'
drifted tracing.md 's/^(  in a call .*) ##*$/\1 18 %/'
drifted tracing.md '/^  sleep  /d'
drifted tracing.md 's/^P0    /P0  /'
drifted tracing.md 's/  moved to another P [0-9]+$//'
drifted profiling.md 's/^( *[0-9.]+)( .*)( )(\+ reader)/\1\2\4/'
drifted how-it-works.md 's/and hands P0 on/and takes P0/'
drifted how-it-works.md 's/^(.*) takes P0\.$/\1 has P0./'

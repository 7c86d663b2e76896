#!/usr/bin/env bash
# What we write, `go tool pprof` opens, and it shows names without the program.
. "$SOURCE_DIR/test/script.sh"
need_go pprof
[ -z "$TOOLCHAIN_FILE" ] || skip "an emulator's CPU time is not the program's"
[ "$GORO_SANITIZE" != thread ] || skip "what ThreadSanitizer does itself is not seen"
export PPROF_TMPDIR=$work HOME=$work

# A copy, which is gone when pprof looks: it cannot ask the program for names.
cp "$BUILD_DIR/examples/profile" "$work/program"
$TEST_LAUNCHER "$work/program" "$work" >/dev/null
rm "$work/program"

status=0
# expect PROFILE PATTERN ARGUMENT...: a line of pprof's output.
expect()
{
	local file=$work/$1.pb.gz pattern=$2
	shift 2
	if ! "$go" tool pprof "$@" "$file" >"$work/out" 2>"$work/err" || ! grep -qE "$pattern" "$work/out"; then
		echo "pprof $* $file: no line like $pattern in"
		cat "$work/out" "$work/err"
		status=1
	fi
}

expect cpu 'Type: cpu' -top
expect cpu 'Duration: .*Total samples' -top
expect cpu '[0-9.]+m?s .* count_primes$' -top
expect cpu ' quick_worker$' -top -cum
expect cpu 'goroutine: Total' -tags
expect cpu ': quick_worker$' -tags
expect cpu 'goroutine_id: Total' -tags
expect cpu 'examples/profile.c:[0-9]+' -top -lines
expect goroutine 'goro_chan_recv$' -top
expect goroutine ' reader$' -top
expect block 'Type: delay' -top
expect block ' goro_mutex_lock$' -top
expect block ' add_to_sum$' -top -cum
expect block ' goro_chan_send$|goro_chan_recv$' -sample_index=contentions -top
expect mutex ' goro_mutex_unlock$' -top
# Who held the lock is charged with it.
expect mutex '([3-9][0-9]|100)(\.[0-9]+)?% +slow_updater$' -top -cum
expect threadcreate 'm_make$' -top
# As a reader of gzip sees them.
for f in "$work"/*.pb.gz; do
	gzip -t "$f" || status=1
done
exit $status

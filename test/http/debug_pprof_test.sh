#!/usr/bin/env bash
# go tool pprof reads the debug server's profiles, by its address alone.
. "$SOURCE_DIR/test/script.sh"
need_go pprof
[ -z "$TEST_LAUNCHER" ] || skip "runs elsewhere"

cat >"$work/prog.c" <<'C'
#include <goro.h>
#include <unistd.h>

__attribute__((noipa)) static void waits_here(goro_chan *c)
{
	goro_chan_recv(c, NULL);
	__asm__ volatile("");
}

static int start(int argc, char **argv)
{
	goro_chan *c = goro_chan_make(0, 0);

	(void)argc, (void)argv;
	for (int i = 0; i < 42; i++)
		go(waits_here, c);
	goro_sleep(100 * GORO_SECOND);
	return 0;
}
GORO_MAIN(start)
C
$CC -O1 -g -I"$SOURCE_DIR/include" "$work/prog.c" "$BUILD_DIR/libgoro.a" -lpthread -o "$work/prog"
: >"$work/err"
GORO_DEBUG_SERVE=0 "$work/prog" 2>"$work/err" &
at_end="kill $!"
for _ in $(seq 100); do
	port=$(sed -n 's/^goro: debug server on port \([0-9]*\).*/\1/p' "$work/err")
	[ -z "$port" ] || break
	sleep 0.1
done
[ -n "$port" ] || fail "no server: $(cat "$work/err")"

export PPROF_TMPDIR=$work HOME=$work
"$go" tool pprof -top "http://127.0.0.1:$port/debug/pprof/goroutine" >"$work/top" 2>&1 || {
	cat "$work/top"; exit 1; }
grep -q ' 42 .*waits_here' "$work/top" || { cat "$work/top"; fail "no 42 at waits_here"; }
curl=$(command -v curl || true)
if [ -n "$curl" ]; then
	curl -sSf -o "$work/trace" "http://127.0.0.1:$port/debug/pprof/trace?seconds=0.3"
	head -c 16 "$work/trace" | grep -q '^go 1\.' || fail "no trace"
fi
for profile in block mutex threadcreate goroutineleak 'profile?seconds=1'; do
	"$go" tool pprof -top "http://127.0.0.1:$port/debug/pprof/$profile" >"$work/top" 2>&1 || {
		echo "$profile:"; cat "$work/top"; exit 1; }
done

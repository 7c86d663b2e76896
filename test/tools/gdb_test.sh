#!/usr/bin/env bash
# A debugger in a goroutine sees its calls up to where the goroutine was started, and
# nothing beyond. x86-64 only: gdb cannot look into an emulated process.
. "$SOURCE_DIR/test/script.sh"
[ "$(uname -m)" = x86_64 ] && [ -z "$TOOLCHAIN_FILE" ] || skip "not x86-64"
[ -z "$GORO_SANITIZE" ] || skip "the program is built without sanitizers"
command -v gdb >/dev/null || skip "no gdb here"
cd "$work"

cat >program.c <<'END'
#include <goro.h>

static __attribute__((noinline)) void innermost(goro_chan *c)
{
	int n = 1;

	goro_chan_send(c, &n);
}

static __attribute__((noinline)) void middle(goro_chan *c)
{
	goro_gosched();
	innermost(c);
	goro_gosched();
}

static int program(int argc, char **argv)
{
	goro_chan *c = goro_chan_of(int, 0);
	int n = 0;

	(void)argc, (void)argv;
	go(middle, c);
	goro_chan_recv(c, &n);
	return n == 1 ? 0 : 1;
}

GORO_MAIN(program)
END
$CC -g -O1 -I"$SOURCE_DIR/include" program.c "$BUILD_DIR/libgoro.a" -pthread -o program

fail()
{
	echo "$1; gdb said:"
	cat out
	exit 1
}

gdb -nx --batch -ex 'set debuginfod enabled off' -ex 'set confirm off' -ex 'break innermost' \
	-ex run -ex 'echo --- calls\n' -ex backtrace -ex 'echo --- end\n' \
	-ex kill ./program >out 2>&1 </dev/null || fail "gdb failed"
grep -q 'ptrace: Operation not permitted' out && skip "no ptrace here"

# The names in the backtrace, innermost first.
calls=$(sed -n '/^--- calls/,/^--- end/s/^#[0-9]* *\(0x[0-9a-f]* in \)\?\([a-z_]*\) .*/\2/p' out | xargs)
[ "$calls" = "innermost middle g_start context_entry" ] || fail "the calls are: $calls"
! grep -qi 'corrupt\|Backtrace stopped\|Cannot access' out || fail "gdb complains"

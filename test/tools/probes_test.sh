#!/usr/bin/env bash
# The probes that perf, bpftrace and gdb find: each is in the library, shared and static, is one nop, and
# gdb stops at one and reads its arguments.
. "$SOURCE_DIR/test/script.sh"
[ -z "$GORO_SANITIZE" ] || skip "the same in every build"
command -v readelf >/dev/null || skip "needs readelf"
cd "$work"

cat >program.c <<'END'
#include <goro.h>

static void receive(goro_chan *c)
{
	int n = 0;

	goro_chan_recv(c, &n);
}

static int program(int argc, char **argv)
{
	goro_chan *c = goro_chan_of(int, 0);
	int n = 1;

	(void)argc, (void)argv;
	go(receive, c);
	goro_chan_send(c, &n);
	return 0;
}
GORO_MAIN(program)
END
$CC -g -O1 -I"$SOURCE_DIR/include" program.c "$BUILD_DIR/libgoro.a" -pthread -o program

probes="end handoff park preempt ready start steal syscall"
for file in "$BUILD_DIR/libgoro.so" program; do
	LC_ALL=C readelf -n "$file" >notes
	found=$(sed -n '/Provider: goro/{n;s/.*Name: //p;}' notes | sort -u | xargs)
	[ "$found" = "$probes" ] || fail "$file: the probes are: $found"
	for section in $(readelf -SW "$file" | sed -n 's/.*\.note\.stapsdt *NOTE *[0-9a-f]* [0-9a-f]* [0-9a-f]* [0-9a-f]* *\([A-Z]*\) .*/\1/p'); do
		[[ $section != *A* ]] || fail "$file: the notes take memory"
	done
done
# docs/tracing.md lists them all.
for probe in $probes; do
	grep -q "^| \`$probe\`" "$SOURCE_DIR/docs/tracing.md" || fail "docs/tracing.md does not list $probe"
done

[ "$(uname -m)" = x86_64 ] && [ -z "$TOOLCHAIN_FILE" ] || exit 0
for at in $(LC_ALL=C readelf -n program | sed -n '/Provider: goro/{n;n;s/.*Location: \(0x[0-9a-f]*\),.*/\1/p;}'); do
	printf '%d\n' "$at"
done >places
objdump -d --no-show-raw-insn program | awk '$2 == "nop" && NF == 2 { sub(":", "", $1); print $1 }' |
	while read -r at; do printf '%d\n' "0x$at"; done >nops
sort -u places | comm -23 - <(sort -u nops) >no_nops
[ ! -s no_nops ] || fail "no nop at: $(xargs <no_nops)"

command -v gdb >/dev/null || exit 0
gdb -nx --batch -ex 'set debuginfod enabled off' -ex 'break main' -ex run -ex 'break -probe-stap goro:start' \
	-ex 'continue' -ex 'continue' -ex 'printf "start of %d\n", $_probe_arg0' \
	-ex 'info symbol $_probe_arg1' -ex kill ./program >out 2>&1 </dev/null || true
grep -q 'ptrace: Operation not permitted' out && exit 0
grep -q '^start of 2$' out && grep -q '^receive in section' out || fail "gdb: $(cat out)"

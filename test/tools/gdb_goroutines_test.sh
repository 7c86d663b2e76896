#!/usr/bin/env bash
# gdb's commands for goroutines, which it finds in the program by itself: on a program at a breakpoint, on one
# that was stopped, on stacks that are away, and on a core of each fatal end. x86-64 only: gdb cannot look
# into an emulated process.
. "$SOURCE_DIR/test/script.sh"
[ "$(uname -m)" = x86_64 ] && [ -z "$TOOLCHAIN_FILE" ] || skip "not x86-64"
[ -z "$GORO_SANITIZE" ] || skip "the program is built without sanitizers"
grep -q '^CMAKE_BUILD_TYPE:.*=RelWithDebInfo' "$BUILD_DIR/CMakeCache.txt" || skip "one build is enough"
command -v gdb >/dev/null || skip "no gdb here"
gdb -nx --batch -ex 'python print(1)' 2>/dev/null | grep -q 1 || skip "gdb has no Python"
cd "$work"

cat >program.c <<'END'
#include <goro.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static goro_mutex held;
static goro_rwmutex rw;
static goro_waitgroup wg;
static goro_sema sema;
static goro_chan *empty, *full;
goro_ctx *ctx;
static goro_chan *parked;	/* each says that it is about to wait */

static __attribute__((noinline)) void receives(int depth)
{
	volatile int local = depth * 10;
	int n = 0;

	if (depth) {
		receives(depth - 1);
	} else {
		goro_chan_send(parked, &n);
		goro_chan_recv(empty, &n);
	}
	(void)local;
}

static void locks(void)
{
	int n = 0;

	goro_set_name("locker");
	goro_chan_send(parked, &n);
	goro_mutex_lock(&held);
}

static __attribute__((noinline)) void here(void)
{
	usleep(1);
}

static int program(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	int n = 7, many = !strcmp(how, "many") ? 2100 : 1;

	empty = goro_chan_of(int, 0);
	full = goro_chan_of(int, 3);
	parked = goro_chan_of(int, 0);
	ctx = goro_ctx_with_cancel(goro_ctx_background());
	goro_chan_send(full, &n);
	goro_mutex_lock(&held);
	goro_rwmutex_rlock(&rw);
	goro_waitgroup_add(&wg, 2);
	goro_sema_init(&sema, 5);
	goro_sema_acquire(&sema, 2, GORO_FOREVER);
	go(locks);
	goro_chan_recv(parked, &n);
	for (int i = 0; i < many; i++) {
		go(receives, 2);
		goro_chan_recv(parked, &n);
	}
	/* They wait by now, or nearly; or until their stacks are away. */
	goro_sleep((many > 1 ? 800 : 5) * GORO_MILLISECOND);
	if (!strcmp(how, "panic"))
		goro_panic("as told");
	if (!strcmp(how, "fault"))
		*(volatile int *)8 = 1;
	if (!strcmp(how, "fatal"))
		goro_mutex_unlock(&(goro_mutex){ 0 });
	if (!strcmp(how, "deadlock"))
		goro_chan_recv(empty, &n);
	if (!strcmp(how, "overflow"))
		receives(1 << 30);
	if (!strcmp(how, "quit"))
		raise(SIGQUIT);
	if (!strcmp(how, "stop"))
		raise(SIGSTOP);
	here();
	return 0;
}
GORO_MAIN(program)
END
sed -i '1i #include <signal.h>' program.c
$CC -g -O1 -I"$SOURCE_DIR/include" program.c "$BUILD_DIR/libgoro.a" -pthread -o program

# debug NAME ARGUMENT...: runs gdb; its output is in NAME.out. The program is trusted, so gdb loads what it carries.
debug()
{
	local name=$1
	shift
	gdb -nx --batch -iex 'set debuginfod enabled off' -iex "add-auto-load-safe-path $work" \
		-iex 'set confirm off' -iex 'set width 0' "$@" >"$name.out" 2>&1 </dev/null || true
}
# says NAME PATTERN: a line of the output is that.
says() { grep -qE -- "$2" "$1.out" || fail "$1: no line \"$2\"; gdb said: $(cat "$1.out")"; }

# ---- at a breakpoint
debug live -ex 'break here' -ex run -ex 'info goroutines' -ex 'goroutine 3 bt' -ex 'goroutine 3' -ex 'up' \
	-ex 'info locals' -ex 'goroutine' -ex 'goroutine all bt 1' -ex 'goroutine 99' -ex 'goroutine 0' \
	-ex 'print held' -ex 'print rw' -ex 'print wg' -ex 'print sema' -ex 'print *empty' -ex 'print *full' \
	-ex 'print *ctx' -ex 'info goroutines chan' -ex kill ./program
grep -q 'ptrace: Operation not permitted' live.out && skip "no ptrace here"
says live '^  1     running  .* here \(\) at .*program\.c:[0-9]+$'
says live '^  2     sync\.Mutex\.Lock, "locker" locks \(\) at .*program\.c'
says live '^  3     chan receive .* receives \(\) at .*program\.c'
says live '^goroutine 3 \[chan receive\]:$'
says live '^#[0-9]+ .* goro_chan_recv \('
says live '^#[0-9]+ .* g_start \('
says live '^local = 10$'
says live '^goroutine 3$'
says live '^there is no goroutine 99$|^Error.*there is no goroutine 99'
says live '^\$1 = locked, 1 goroutine waiting$'
says live '^\$2 = read-locked 1 time$'
says live '^\$3 = counter 2$'
says live '^\$4 = 2 of 5 units held$'
says live '^\$5 = channel of 4-byte elements, unbuffered, waited for by goroutine 3$'
says live '^\$6 = channel of 4-byte elements, 1 of 3 buffered = \{\[0\] = 7\}$'
says live '^\$7 = context, not done$'
[ "$(grep -c '^#[0-9]* .* receives (' live.out)" -ge 3 ] || fail "not all calls: $(cat live.out)"

# ---- one that was stopped
./program stop & pid=$!
at_end="kill -KILL $pid"
for ((i = 0; i < 1000; i++)); do
	grep -q '^State:.*T (stopped' /proc/$pid/status && break
	sleep 0.01
done
debug stopped -p $pid -ex 'info goroutines' -ex detach
grep -q 'ptrace: Operation not permitted' stopped.out ||
	says stopped '^  3     chan receive .* receives \(\) at .*program\.c'
kill -KILL $pid; wait $pid 2>/dev/null || true
at_end=

# ---- a core of each fatal end, which GORO_TRACEBACK=crash leaves, where the system writes cores to files. (gcore
# leaves out the memory around pages that it cannot read, such as the guards of stacks.)
core()
{
	mkdir "$1"
	(cd "$1" && ulimit -c unlimited && GORO_TRACEBACK=crash ../program "$1" >err 2>&1) 2>/dev/null || true
	grep -qE "$2" "$1/err" || fail "$1: $(cat "$1/err")"
	debug "core_$1" ./program "$1"/core* -ex 'info goroutines' -ex 'goroutine 3 bt'
	says "core_$1" '^  2     sync\.Mutex\.Lock, "locker" locks \(\) at .*program\.c'
	says "core_$1" '^#[0-9]+ .* goro_chan_recv \('
	rm -r "$1"
}
if [[ $(cat /proc/sys/kernel/core_pattern) != [/\|]* ]] && (ulimit -c unlimited) 2>/dev/null; then
	core panic '^panic: as told$'
	core fatal '^fatal error: sync: unlock of unlocked mutex$'
	core deadlock '^fatal error: all goroutines are asleep - deadlock!$'
	core quit '^SIGQUIT: quit$'
	core overflow '^fatal error: stack overflow$|stack exceeds'
	core fault '^\[signal SIGSEGV'
fi

# ---- stacks that are away
GORO_DEBUG=evacuate=50 debug away -ex 'break here' -ex 'run many' -ex 'print evacuation.away_n > 1000' \
	-ex 'goroutine 30 bt' -ex kill ./program
if grep -q '^\$1 = 1$' away.out; then
	says away '^#[0-9]+ .* goro_chan_recv \('
	[ "$(grep -c '^#[0-9]* .* receives (' away.out)" = 3 ] || fail "a stack that is away: $(cat away.out)"
fi

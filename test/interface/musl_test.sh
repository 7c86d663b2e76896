# The library builds with musl for libc, without warnings, and a program runs on it.
# (make test-musl runs all tests so.)
. "$SOURCE_DIR/test/script.sh"

case $BUILD_DIR in */release) ;; *) skip "the release build does it" ;; esac
[ -z "$TOOLCHAIN_FILE" ] || skip "another machine's build"
command -v musl-gcc >/dev/null || skip "needs musl-gcc, of musl-tools"

cmake -S "$SOURCE_DIR" -B "$work/build" --toolchain "$SOURCE_DIR/cmake/musl.cmake" \
	-DCMAKE_BUILD_TYPE=None >"$work/log" 2>&1 || { cat "$work/log"; fail "cannot configure"; }
cmake --build "$work/build" -j 2 --target goro_static >"$work/log" 2>&1 ||
	{ cat "$work/log"; fail "does not build"; }
! grep warning: "$work/log" || fail "warnings"

cat >"$work/program.c" <<'END'
#include <goro.h>
#include <stdio.h>
#include <unistd.h>

static goro_waitgroup wg;

static void add(goro_chan *sums, int n)
{
	int k;

	usleep(1000);
	goro_chan_recv(sums, &k);
	k += n;
	goro_chan_send(sums, &k);
	goro_waitgroup_done(&wg);
}

static int go_main(int argc, char **argv)
{
	goro_chan *sums = goro_chan_of(int, 1);
	int sum = 0;

	(void)argc, (void)argv;
	goro_waitgroup_add(&wg, 100);
	for (int i = 1; i <= 100; i++)
		go(add, sums, i);
	goro_chan_send(sums, &sum);
	goro_waitgroup_wait(&wg);
	goro_chan_recv(sums, &sum);
	printf("%d\n", sum);
	return 0;
}

int main(int argc, char **argv)
{
	return goro_run(go_main, argc, argv);
}
END
musl-gcc -Wall -I"$SOURCE_DIR/include" -o "$work/program" "$work/program.c" "$work/build/libgoro.a"
out=$("$work/program")
[ "$out" = 5050 ] || fail "the program said $out, not 5050"

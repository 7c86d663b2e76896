#!/usr/bin/env bash
# The macros of select compile cleanly as C11 and as C++17, and do the same in both.
. "$SOURCE_DIR/test/script.sh"
[ -z "$GORO_SANITIZE" ] || skip "the libraries of sanitizer builds need the sanitizer"

cat >"$work/program.c" <<'END'
#include <goro.h>

static int run(int argc, char **argv)
{
	goro_chan *a = goro_chan_of(int, 1), *b = goro_chan_of(int, 1);
	const int one = 1;
	int got = 0, first, second, third, fourth;
	bool ok = false;

	(void)argc; (void)argv;
	first = goro_select_until(GORO_NOW, GORO_RECV(a, &got), GORO_RECV(b, NULL));
	second = goro_select(GORO_RECV(a, &got), GORO_SEND(b, &one), GORO_RECV(NULL, &got));
	third = goro_select(GORO_RECV(a, &got), GORO_RECV_OKP(b, &got, &ok));
	fourth = goro_select(GORO_SEND(a, &got));
	printf("%d %d %d %d %d %d %d\n", first, second, third, fourth, got, ok,
	       (int)goro_chan_len(a));
	goro_chan_unref(a);
	goro_chan_unref(b);
	return 0;
}

GORO_MAIN(run)
END
cp "$work/program.c" "$work/program.cc"

# check COMPILER FLAGS... FILE
check()
{
	command -v "${1##*/}" >/dev/null || command -v "$1" >/dev/null || return 0
	"$@" -Wall -Wextra -pedantic -Werror -I"$SOURCE_DIR/include" "$BUILD_DIR/libgoro.a" \
		-pthread -o "$work/program"
	out=$($TEST_LAUNCHER "$work/program")
	[ "$out" = "-1 1 1 0 1 1 1" ] || { echo "$*: printed '$out'"; exit 1; }
}

check "$CC" -std=c11 "$work/program.c"
if [ "$CC" = "${CC%-gcc}" ]; then # not a cross compiler
	check g++ -std=c++17 "$work/program.cc"
	check clang -std=c11 "$work/program.c"
	check clang++ -std=c++17 "$work/program.cc"
fi

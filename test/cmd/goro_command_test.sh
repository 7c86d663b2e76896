#!/usr/bin/env bash
# The goro command: run compiles once and again when something has changed, and ends with
# the program's status; build makes a program; wrong words are told.
. "$SOURCE_DIR/test/cmd/command.sh"
export XDG_CACHE_HOME=$work/cache CC

entries() { find "$work/cache/goro" -type f | wc -l; }

cat >program.c <<'END'
#include <goro.h>
#include "number.h"

static void add(goro_chan *c, int n)
{
	n += NUMBER;
	goro_chan_send(c, &n);
}

static int start(int argc, char **argv)
{
	goro_chan *c = goro_chan_of(int, 0);
	int n = 0;

	go(add, c, argc);
	goro_chan_recv(c, &n);
	printf("%d %s\n", n, argc > 1 ? argv[1] : "none");
	return n == 9;
}
GORO_MAIN(start)
END
echo '#define NUMBER 5' >number.h
expect 0 "6 none" "$goro" run program.c
expect 0 "7 -x" "$goro" run program.c -x
[ "$(entries)" = 1 ] || fail "compiled twice"
echo '#define NUMBER 7' >number.h
expect 1 "9 x" "$goro" run program.c x
[ "$(entries)" = 2 ] || fail "a changed header was not seen"
expect 0 "8 none" "$goro" run program.c -- -O0
[ "$(entries)" = 3 ] || fail "other flags were not seen"

echo '#define NUMBER (' >number.h
expect 1 "error" "$goro" run program.c
rm number.h
expect 1 "number.h" "$goro" run program.c
[ "$(entries)" = 3 ] || fail "what does not compile was kept"
echo '#define NUMBER 1' >number.h

expect 0 "" "$goro" build -o it program.c
expect 0 "2 none" ./it
expect 0 "" "$goro" build program.c
expect 0 "2 none" ./program

# With the library goro-calls.
if [ -e "${goro%/bin/goro}/extra/calls/libgoro-calls.so" ]; then
	expect 0 "2 none" "$goro" run --calls program.c
	expect 0 "" "$goro" build --calls -o with_calls program.c
	expect 0 "2 none" ./with_calls
	readelf -d with_calls | grep -q 'NEEDED.*libgoro-calls' || fail "build --calls: not linked with it"
fi

# Without a cache.
expect 0 "2 none" env -u XDG_CACHE_HOME -u HOME "$goro" run program.c
expect 0 "2 none" env XDG_CACHE_HOME=/proc/none "$goro" run program.c

# A signal that ends the program ends the command.
echo '#include <goro.h>
static int start(int argc, char **argv) { (void)argc, (void)argv; goro_panic("oh"); }
GORO_MAIN(start)' >panics.c
expect 2 "panic: oh" "$goro" run panics.c

if command -v c++ >/dev/null; then
	echo '#include <goro.h>
	#include <iostream>
	static int start(int, char **) { std::cout << "C++\n"; return 0; }
	GORO_MAIN(start)' >program.cc
	expect 0 "C++" "$goro" run program.cc
fi

expect 2 "usage" "$goro"
expect 0 "usage" "$goro" --help
expect 2 "no such command" "$goro" fly
expect 2 "not a C or C++ file: it" "$goro" run it
for name in $("$goro" --help | sed -n 's/^    \([a-z]*\) .*/\1/p'); do
	expect 0 "usage: goro $name" "$goro" $name --help
	! "$goro" $name --help | grep -E '^.{81}' || fail "goro $name --help is wider than 80 columns"
done
expect 2 "usage: goro version" "$goro" version x
expect 0 "goro version 0." "$goro" version
expect 0 "goro version 0." "$goro" --version
"$goro" version >/dev/full 2>/dev/null && fail "a full disk is not told"

# Installed, it finds the library beside itself.
cmake --install "$BUILD_DIR" --prefix "$work/prefix" >/dev/null
expect 0 "2 none" "$work/prefix/bin/goro" run program.c
expect 0 "" mv "$work/prefix" "$work/moved"
rm -r "$work/cache"
expect 0 "2 none" "$work/moved/bin/goro" run program.c

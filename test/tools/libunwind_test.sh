#!/usr/bin/env bash
# libunwind, which profilers and crash reporters use, walks from a goroutine to its entry
# and ends there without an error.
. "$SOURCE_DIR/test/script.sh"
[ -z "$GORO_SANITIZE" ] || skip "the program is built without sanitizers"
cd "$work"

cat >program.c <<'END'
#define UNW_LOCAL_ONLY
#include <libunwind.h>
#include <goro.h>

/* Prints the number of frames, what the last step said, and the outermost name. */
static __attribute__((noinline)) void walk(goro_chan *c)
{
	char name[64] = "";
	unw_context_t context;
	unw_cursor_t cursor;
	unw_word_t offset;
	int n = 0, step;

	unw_getcontext(&context);
	unw_init_local(&cursor, &context);
	do {
		n++;
		unw_get_proc_name(&cursor, name, sizeof name, &offset);
		step = unw_step(&cursor);
	} while (step > 0 && n < 1000);
	printf("frames %d, end %d, outermost %s\n", n, step, name);
	goro_chan_send(c, &n);
}

static __attribute__((noinline)) void body(goro_chan *c)
{
	goro_gosched();
	walk(c);
	goro_gosched();
}

static int program(int argc, char **argv)
{
	goro_chan *c = goro_chan_of(int, 0);
	int n = 0;

	(void)argc, (void)argv;
	go(body, c);
	goro_chan_recv(c, &n);
	return n == 0;
}

GORO_MAIN(program)
END
echo '#include <libunwind.h>' | $CC -E - >/dev/null 2>&1 || skip "no libunwind here"
$CC -g -O1 -I"$SOURCE_DIR/include" program.c "$BUILD_DIR/libgoro.a" -pthread -lunwind -o program

out=$($TEST_LAUNCHER ./program)
# walk, body, g_start, context_entry
[ "$out" = "frames 4, end 0, outermost context_entry" ] || { echo "got: $out"; exit 1; }

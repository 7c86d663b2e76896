#!/usr/bin/env bash
# The library goro-calls in programs that are not built for it: preloaded, linked, beside a
# program's own read and malloc, under AddressSanitizer, and where there is no goro.
. "$SOURCE_DIR/test/script.sh"
[ -z "$GORO_SANITIZE" ] || skip "the programs are built with the plain library"
[ -z "$TEST_LAUNCHER" ] || skip "an emulator would take what is preloaded for its own"
calls=$BUILD_DIR/extra/calls/libgoro-calls.so
[ -e "$calls" ] || skip "built without it"
cd "$work"
flags=(-std=gnu11 -O1 -Wall -I"$SOURCE_DIR/include")
shared=(-L"$BUILD_DIR" -lgoro -Wl,-rpath,"$BUILD_DIR" -pthread)

# A goroutine that waits for the reader's processor fills the pipe. COUNT: the program stands
# before goro and counts how often the library hands the processor over.
cat >prog.c <<'END'
#define _GNU_SOURCE
#include <goro.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static int ends[2];

#ifdef COUNT
static int handed_over;

void goro_hand_over(void)
{
	void (*next)(void);

	*(void **)&next = dlsym(RTLD_NEXT, "goro_hand_over");
	handed_over++;
	next();
}
#endif

static void fill(void)
{
	if (write(ends[1], "x", 1) != 1)
		abort();
}

static int program(int argc, char **argv)
{
	char c;

	(void)argc, (void)argv;
	if (pipe(ends) != 0)
		return 1;
	goro_gomaxprocs(1);
	for (int i = 0; i < 100; i++) {
		go(fill);
		if (read(ends[0], &c, 1) != 1)
			return 1;
		goro_gosched();	/* gets a processor again */
	}
#ifdef COUNT
	puts(handed_over > 0 ? "done" : "never handed over");
#else
	puts("done");
#endif
	return 0;
}
GORO_MAIN(program)
END

# run WHAT COMMAND...: it prints "done".
run()
{
	local what=$1 out
	shift
	out=$("$@" 2>"$work/err") || fail "$what: status $?: $(cat "$work/err")"
	[ "$out" = done ] || fail "$what: printed '$out'"
}

counts=(-DCOUNT -rdynamic)
$CC "${flags[@]}" "${counts[@]}" prog.c -o shared "${shared[@]}"
[ "$(./shared)" = "never handed over" ] || fail "it hands over without the library"
run "preloaded" env LD_PRELOAD="$calls" ./shared
run "preloaded, 1 P" env GORO_MAXPROCS=1 LD_PRELOAD="$calls" ./shared

$CC "${flags[@]}" "${counts[@]}" prog.c -o linked -Wl,--no-as-needed "$calls" -Wl,-rpath,"${calls%/*}" "${shared[@]}"
run "linked" ./linked

$CC "${flags[@]}" prog.c -o with_static -Wl,--no-as-needed "$calls" -Wl,-rpath,"${calls%/*}" \
	"$BUILD_DIR/libgoro.a" -pthread
"$NM" -D with_static | grep -q ' T goro_hand_over' || fail "linked with the static library, it does not find goro"
run "linked, goro static" ./with_static

# A program that stands before libc itself.
cat >own.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>

ssize_t read(int fd, void *buf, size_t n)
{
	ssize_t (*next)(int, void *, size_t);

	*(void **)&next = dlsym(RTLD_NEXT, "read");
	return next(fd, buf, n);
}
END
$CC "${flags[@]}" "${counts[@]}" prog.c own.c -o own "${shared[@]}"
run "a program with a read of its own" env LD_PRELOAD="$calls" ./own

# A malloc that makes calls of the table, also while the library looks its functions up.
cat >malloc.c <<'END'
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);

void *malloc(size_t n)
{
	int fd = open("/dev/null", O_WRONLY);
	ssize_t done = fd < 0 ? 0 : write(fd, "malloc\n", 7);

	close(fd);
	return done < 0 ? NULL : __libc_malloc(n);
}
END
if echo 'extern void *__libc_malloc(unsigned long); int main(void) { return !__libc_malloc(1); }' |
	$CC -x c - -o has_libc_malloc 2>/dev/null; then
	$CC "${flags[@]}" -shared -fPIC malloc.c -o malloc.so
	run "a malloc that writes" env LD_PRELOAD="$PWD/malloc.so $calls" ./shared
	run "a malloc that writes, behind" env LD_PRELOAD="$calls $PWD/malloc.so" ./shared
fi

# Where there is no goro: a shell and its children.
if [ -z "${TOOLCHAIN_FILE:-}" ]; then
	[ "$(LD_PRELOAD=$calls sh -c 'echo one | cat; sleep 0.01; echo two')" = $'one\ntwo' ] ||
		fail "a shell without goro"
fi

# AddressSanitizer in the program, the libraries without.
if echo 'int main(void) { return 0; }' | $CC -fsanitize=address -x c - -o asan_works 2>/dev/null &&
	./asan_works 2>/dev/null; then
	export ASAN_OPTIONS=detect_leaks=0:handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0
	$CC "${flags[@]}" "${counts[@]}" -fsanitize=address prog.c -o asan -Wl,--no-as-needed "$calls" \
		-Wl,-rpath,"${calls%/*}" "${shared[@]}"
	run "ASan, linked" ./asan
	$CC "${flags[@]}" "${counts[@]}" -fsanitize=address prog.c -o asan_preload "${shared[@]}"
	libasan=$($CC -print-file-name=libasan.so)
	if [[ $libasan == /* ]] && ldd asan_preload | grep -q libasan; then
		run "ASan, preloaded" env LD_PRELOAD="$(readlink -f "$libasan") $calls" ./asan_preload
	fi
fi

# Installed, by pkg-config.
if command -v pkg-config >/dev/null; then
	cmake --install "$BUILD_DIR" --prefix "$work/prefix" >/dev/null
	PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name goro-calls.pc)")
	export PKG_CONFIG_PATH
	# shellcheck disable=SC2046
	$CC "${flags[@]}" "${counts[@]}" prog.c -o installed $(env -u PKG_CONFIG_LIBDIR pkg-config --cflags --libs goro-calls)
	readelf -d installed | grep -q 'NEEDED.*libgoro-calls' || fail "goro-calls.pc does not link the library"
	run "installed" ./installed
fi

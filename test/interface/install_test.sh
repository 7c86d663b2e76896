#!/usr/bin/env bash
# What is installed can be built against with pkg-config, shared and static, and with CMake.
. "$SOURCE_DIR/test/script.sh"
[ -z "$GORO_SANITIZE" ] || skip "sanitizer builds are not installed"
cd "$work"

cmake --install "$BUILD_DIR" --prefix "$work/first" >/dev/null
mv first prefix # an installation can be moved

cat >program.c <<'END'
#include <goro.h>

static void square(goro_chan *c, int n)
{
	int result = n * n;
	goro_chan_send(c, &result);
}

static int program(int argc, char **argv)
{
	(void)argc, (void)argv;
	goro_chan *c = goro_chan_of(int, 0);
	int sum = 0, one;
	for (int i = 1; i <= 3; i++)
		go(square, c, i);
	for (int i = 1; i <= 3; i++) {
		goro_chan_recv(c, &one);
		sum += one;
	}
	goro_chan_unref(c);
	return printf("%d\n", sum) < 0;
}

GORO_MAIN(program)
END
cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(user C)
find_package(goro 0.1 REQUIRED)
add_executable(with_shared program.c)
target_link_libraries(with_shared goro::goro)
add_executable(with_static program.c)
target_link_libraries(with_static goro::goro_static)
END

# run WHAT PROGRAM: it prints 1 + 4 + 9.
run()
{
	local out
	out=$($TEST_LAUNCHER "$2") || { echo "$1: status $?"; exit 1; }
	[ "$out" = 14 ] || { echo "$1: printed '$out'"; exit 1; }
}

for pc in prefix/lib/pkgconfig prefix/lib64/pkgconfig prefix/lib/*/pkgconfig; do
	[ -d "$pc" ] && export PKG_CONFIG_PATH=$work/$pc
done

# The lines that README.md names, to the letter, with this build's compiler.
cc() { $CC "$@"; }
pkg-config() { env -u PKG_CONFIG_LIBDIR pkg-config "$@"; }
cp program.c prog.c
readme_line() { grep -oF "$1" "$SOURCE_DIR/README.md" | head -1 | grep . || fail "README.md does not say: $1"; }

echo "pkg-config, shared"
eval "$(readme_line 'cc prog.c $(pkg-config --cflags --libs goro)')"
run "pkg-config, shared" ./a.out

echo "pkg-config, static"
if echo 'int main(void) { return 0; }' | $CC -static -x c - -o /dev/null 2>/dev/null; then
	eval "$(readme_line 'cc -static prog.c $(pkg-config --static --cflags --libs goro)')"
	run "pkg-config, static" ./a.out
fi

echo "installed as the system's, staged: no rpath"
DESTDIR=$work/stage cmake --install "$BUILD_DIR" --prefix /usr >/dev/null
! grep -r rpath stage/usr/lib*/pkgconfig stage/usr/lib/*/pkgconfig 2>/dev/null || fail "an rpath to the system's directory"
find stage -name goro.pc | grep -q . || fail "no goro.pc in the stage"

echo "each file is in a Debian package"
patterns=$(sed 's/ .*//' "$SOURCE_DIR"/packaging/debian/*.install)
(cd stage && find usr -path 'usr/lib*' -prune -o ! -type d -print) | while read -r file; do
	for pattern in $patterns; do
		case $file in $pattern/*) continue 2 ;; esac
	done
	fail "packaging/debian/*.install: $file is in no package"
done

echo "CMake"
{
	cmake -S . -B cmake-build -DCMAKE_C_COMPILER="$CC" -DCMAKE_BUILD_TYPE=Release \
		-Dgoro_ROOT="$work/prefix" ${TOOLCHAIN_FILE:+--toolchain "$TOOLCHAIN_FILE"} &&
		cmake --build cmake-build
} >cmake.log 2>&1 || { cat cmake.log; exit 1; }
run "CMake, shared" cmake-build/with_shared
run "CMake, static" cmake-build/with_static

for header in "$SOURCE_DIR"/include/*.h "$SOURCE_DIR"/include/*.hpp "$SOURCE_DIR"/include/goro/*.h; do
	[ ! -e "$header" ] || [ -e "prefix/include/${header#"$SOURCE_DIR"/include/}" ] ||
		{ echo "${header##*/} is not installed"; exit 1; }
done

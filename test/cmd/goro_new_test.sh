#!/usr/bin/env bash
# goro new: the project builds against an installed goro that is only in $PATH, without a
# warning, and its tests pass; folders that exist and names that would do harm are refused.
. "$SOURCE_DIR/test/script.sh"
[ -z "$GORO_SANITIZE" ] || skip "sanitizer builds are not installed"
[ -z "$TEST_LAUNCHER" ] || skip "runs on this machine only"
cmake --install "$BUILD_DIR" --prefix "$work/prefix" >/dev/null
export PATH=$work/prefix/bin:$PATH CC
cd "$work"

# refuses STATUS NAME...: nothing is made.
refuses()
{
	local want=$1 status=0
	shift
	goro new "$@" >out 2>&1 || status=$?
	[ "$status" = "$want" ] || fail "new $*: status $status, not $want: $(cat out)"
	[ -s out ] || fail "new $*: says nothing"
}

goro new hello-2 >out
cd hello-2
{
	cmake -B build -DCMAKE_C_FLAGS=-Werror && cmake --build build && ctest --test-dir build --output-on-failure
} >log 2>&1 || fail "$(cat log)"
grep -q "100% tests passed.* 2" log || fail "$(cat log)"
build/hello-2 src/main.c >lines
grep -qx " *$(wc -l <src/main.c) src/main.c" lines || fail "counted $(cat lines)"
rm -r build log lines
! grep -r "@[A-Z]*@" . || fail "a mark is left"
for file in README.md .gitignore .github/workflows/ci.yml; do
	[ -s "$file" ] || fail "no $file"
done

cd "$work"
cp -r hello-2 before
refuses 1 hello-2
diff -r before hello-2
for name in "" . .. a/b /tmp/x -x 1x "a b" 'a;b' '$(id)' test all "$(printf 'a%.0s' {1..65})"; do
	refuses 2 "$name"
done
refuses 2
refuses 2 a b
[ "$(ls)" = "$(printf '%s\n' before hello-2 out prefix)" ] || fail "left behind: $(ls)"
chmod a-w . && ! [ -w . ] && refuses 1 other
chmod u+w .
goro new --help | grep -q "usage: goro new" || fail "no help"

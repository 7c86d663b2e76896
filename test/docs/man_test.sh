#!/usr/bin/env bash
# The manual: a page for every public function and no page for another, in good mdoc, with
# the sections that each must have; every reference leads to a page; every example compiles
# without a warning, runs, and prints what the page says.
. "$SOURCE_DIR/test/script.sh"
command -v mandoc >/dev/null || skip "needs mandoc"
[ -z "$GORO_SANITIZE" ] || skip "the examples link with the plain library"
cd "$SOURCE_DIR/docs/man"
status=0
complain() { echo "$*" >&2; status=1; }

# names PAGE...: the names that a page is found by.
names() { sed -n '/^\.Sh NAME/,/^\.Sh SYNOPSIS/s/^\.Nm \([^ ]*\).*/\1/p' "$@"; }

mandoc -Tlint -Wwarning ./*.[1-9] >"$work/lint" || complain "$(cat "$work/lint")"

# ------------------------------------------------- functions against pages

echo '#include <goro.h>' >"$work/header.c"
gcc -std=gnu11 -fsyntax-only -I"$SOURCE_DIR/include" -aux-info "$work/prototypes" "$work/header.c"
sed -n 's|^/\* [^ ]*include/goro[^ ]* \*/ extern .*[ *]\(goro_[a-z0-9_]*\) (.*|\1|p' \
	"$work/prototypes" | sort -u >"$work/declared"
names ./*.3 | sort >"$work/named"
uniq -d "$work/named" | sed 's/$/: on two pages/' >"$work/twice"
[ ! -s "$work/twice" ] || complain "$(cat "$work/twice")"
for name in $(comm -23 "$work/declared" "$work/named"); do
	complain "$name: no page in docs/man"
done
for name in $(comm -13 "$work/declared" "$work/named"); do
	printf '#include <goro.h>\n#ifndef %s\n#error\n#endif\n' "$name" >"$work/macro.c"
	gcc -I"$SOURCE_DIR/include" -fsyntax-only "$work/macro.c" 2>/dev/null ||
		complain "docs/man: a page for $name, which goro.h has not"
done

# ------------------------------------------------------ within the pages

for page in *.3; do
	[ "${page%.3}" = "$(names "$page" | head -1)" ] || complain "$page: is not named after its first name"
	for section in NAME SYNOPSIS DESCRIPTION "CALLING CONTEXT" EXAMPLES "SEE ALSO" HISTORY; do
		grep -qx "\.Sh $section" "$page" || complain "$page: no section $section"
	done
	grep -q "^\.It Xr ${page%.3} 3" goro.7 || complain "goro.7: does not list ${page%.3}"
done
{ names ./*.3 | sed 's/$/ 3/'; names ./*.7 | sed 's/$/ 7/'; names ./*.1 2>/dev/null | sed 's/$/ 1/'; } | sort >"$work/targets"
sed -n 's/^\.\(It \)\{0,1\}Xr \(goro[a-z_]*\|go\) \([1-9]\).*/\2 \3/p' ./*.[1-9] | sort -u |
	comm -23 - "$work/targets" >"$work/dangling"
[ ! -s "$work/dangling" ] || complain "references to no page: $(cat "$work/dangling")"

# ------------------------------------------------------------- examples

# example PAGE: NAME.c, and NAME.out if the page says what it prints.
example()
{
	awk -v base="$work/${1%.*}" '
	/^\.Sh /                     { in_examples = $2 == "EXAMPLES" }
	/^\.Bd -literal/ && in_examples { file = base (n++ ? ".out" : ".c"); printf "" >file; next }
	/^\.Ed/                      { file = "" }
	file                         { gsub(/\\e/, "\\"); sub(/^\\&/, ""); print >file }' "$1"
	[ -s "$work/${1%.*}.c" ] || { echo "$1: no example"; return 1; }
	compile="$CC -std=c11 -D_GNU_SOURCE"
	if grep -q '<goro.hpp>' "$work/${1%.*}.c"; then
		command -v g++ >/dev/null && [ -z "$TEST_LAUNCHER" ] || return 0
		compile="g++ -x c++ -std=c++17"
	fi
	# shellcheck disable=SC2086
	$compile -Wall -Wextra -Werror -O1 -I"$SOURCE_DIR/include" "$work/${1%.*}.c" -x none \
		"$BUILD_DIR/libgoro.a" -pthread -o "$work/${1%.*}.exe" || { echo "$1: does not compile"; return 1; }
	timeout 20 $TEST_LAUNCHER "$work/${1%.*}.exe" >"$work/${1%.*}.got" || { echo "$1: status $?"; return 1; }
	[ ! -e "$work/${1%.*}.out" ] || diff -u "$work/${1%.*}.out" "$work/${1%.*}.got"
}
export -f example
export work CC TEST_LAUNCHER
printf '%s\n' ./*.[37] | xargs -P 4 -I{} bash -c 'example "$(basename {})"' >"$work/examples" 2>&1 ||
	complain "$(cat "$work/examples")"

# ------------------------------------------------------------- as a site

"$SOURCE_DIR/tools/reference" "$work/site" || complain "tools/reference: status $?"
for page in *.[1-9]; do
	[ -s "$work/site/$page.html" ] && grep -q "href='$page.html'" "$work/site/index.html" ||
		complain "the site has no $page, or does not list it"
done
grep -o 'href="[a-zA-Z_]*\.[1-9]\.html' "$work"/site/*.html | sed 's/.*"//' | sort -u |
	while read -r target; do
		[ -e "$work/site/$target" ] || { echo "a link leads to no page: $target"; exit 1; }
	done || status=1
exit $status

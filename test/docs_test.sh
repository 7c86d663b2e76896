#!/usr/bin/env bash
# The documents: every test that docs/go-tests.md names is there, every link leads to a file
# and a heading that are there, examples/README.md lists every example, and docs/settings.md every
# setting of GORO_DEBUG.
cd "$(dirname "$0")/.." || exit 1
status=0
complain() { echo "$*"; status=1; }

while read -r name; do
	file=test/${name%%.*}_test.c test=${name#*.}
	[ "$test" != c ] || continue		# a source file
	grep -qE "^(GO_)?TEST(_TIMEOUT)?\($test\b" "$file" || complain "docs/go-tests.md: no test $name"
done < <(grep -o '`[a-z_]*\.[a-z0-9_]*`' docs/go-tests.md | tr -d '`' | sort -u)

# headings FILE: the anchors that its headings have.
headings()
{
	sed -n 's/^#\{1,6\} //p' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}

while IFS=: read -r page link; do
	target=${link%%#*} anchor=
	[[ $link != *"#"* ]] || anchor=${link#*#}
	file=$page
	[ -z "$target" ] || file=$(dirname "$page")/$target
	[ -e "$file" ] || { complain "$page: a link to $link"; continue; }
	[ -z "$anchor" ] || headings "$file" | grep -qx -- "$anchor" || complain "$page: no heading for $link"
done < <(grep -oH '](\([^)]*\))' ./*.md docs/*.md examples/*.md bench/*.md | sed 's/](\(.*\))$/\1/' | grep -v ':[a-z]*://')

for example in examples/*.c examples/*/*.c; do
	name=${example#examples/}
	grep -qF "($name)" examples/README.md || complain "examples/README.md does not list $name"
done

# linger is for tests of the runtime.
for setting in $(sed -n '/DEBUG_SWITCH_LIST/,/^$/s/.*X(\([a-z0-9]*\)).*/\1/p' src/debug.h); do
	[ "$setting" = linger ] || grep -q "\`$setting=" docs/settings.md ||
		complain "docs/settings.md does not list $setting"
done
exit $status

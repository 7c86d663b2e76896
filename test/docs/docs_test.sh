#!/usr/bin/env bash
# The documents: every test that docs/go-tests.md and docs/testing.md name is there, every link
# leads to a file and a heading that are there, every file of the source, target of make, command
# and option of goro that a page names is there, examples/README.md lists every example,
# docs/settings.md every setting of GORO_DEBUG, and the pictures are what tools/pictures draws.
cd "$(dirname "$0")/../.." || exit 1
status=0
complain() { echo "$*"; status=1; }

while read -r name; do
	file=$(echo test/*/"${name%%.*}"_test.c) test=${name#*.}
	[ "$test" != c ] || continue		# a source file
	grep -qE "^(GO_)?TEST(_TIMEOUT)?\($test\b" "$file" || complain "docs/go-tests.md: no test $name"
done < <(grep -o '`[a-z_]*\.[a-z0-9_]*`' docs/go-tests.md | tr -d '`' | sort -u)

# Suites that are scripts or have no other part stand for themselves, names with * or .. for several.
while read -r name; do
	file=$(echo test/*/"${name%%.*}"_test.c*)
	[ -e "${file%% *}" ] || continue	# a file of the source
	grep -qE "^(GO_)?TEST(_TIMEOUT)?\(${name#*.}\b" ${file} || complain "docs/testing.md: no test $name"
done < <(grep -o '`[a-z_]*\.[a-zA-Z0-9_]*`' docs/testing.md | tr -d '`' | grep -v '\.[ch]$' | sort -u)

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
done < <(grep -oH '](\([^) ]*\))' ./*.md docs/*.md examples/*.md examples/*/*.md examples/*/*/*.md bench/*.md | sed 's/](\(.*\))$/\1/' | grep -v ':[a-z]*://')

# NAME, FILE and ROOM stand for any; notes on earlier measurements name programs that are gone.
while IFS=: read -r page path; do
	compgen -G "$path" >/dev/null || complain "$page: no file $path"
done < <(grep -oHE '`(src|test|tools|examples|bench|cmd|docs|packaging|include)/[A-Za-z0-9_./*-]+`' ./*.md docs/*.md examples/*.md examples/*/*.md examples/*/*/*.md bench/*.md |
	tr -d '`' | grep -v -e performance-notes.md -e src/runtime/ -e ROOM -e FILE_ -e NAME)

# What a page tells the reader to type: targets of make, and commands and options of goro.
pages=(./*.md docs/*.md examples/*.md examples/*/*.md examples/*/*/*.md)
while IFS=: read -r page target; do
	grep -qE "^([a-z0-9-]+ )*$target( [a-z0-9-]+)*:" Makefile || [[ $target == build-* ]] ||
		complain "$page: no target $target of make"
done < <(grep -oHE '(`|\$ |^[[:blank:]])make [a-z][a-z0-9-]+' "${pages[@]}" | sed -E 's/^([^:]*):.*make /\1:/')
goro=${BUILD_DIR:-build/release}/bin/goro
if [ -x "$goro" ] && [ -z "$TEST_LAUNCHER" ]; then
	while IFS=: read -r page line; do
		read -r _ name words <<<"$line"
		"$goro" "$name" --help 2>/dev/null >/dev/null || { complain "$page: no command goro $name"; continue; }
		for option in $(grep -oE -- '--[a-z]+' <<<"$words"); do
			"$goro" "$name" --help | grep -q -- " $option" || complain "$page: goro $name has no $option"
		done
	done < <(grep -oHE '(`|\$ |^[[:blank:]])goro [a-z]+[^`]*' "${pages[@]}" | sed -E 's/^([^:]*):[^g]*(goro [a-z])/\1:\2/' | sed 's/ -- .*//')
fi

for example in examples/*.c examples/*/*.c examples/*/*/*.c examples/*/*.cc; do
	name=${example#examples/}
	grep -qF "($name)" examples/README.md || complain "examples/README.md does not list $name"
done

if command -v python3 >/dev/null; then
	pictures=$(tools/pictures check) || complain "$pictures"
fi

# linger is for tests of the runtime.
for setting in $(sed -n '/DEBUG_SWITCH_LIST/,/^$/s/.*X(\([a-z0-9]*\)).*/\1/p' src/base/debug.h); do
	[ "$setting" = linger ] || grep -q "\`$setting=" docs/settings.md ||
		complain "docs/settings.md does not list $setting"
done
exit $status

#!/usr/bin/env bash
# Every test that docs/go-tests.md names is there.
cd "$(dirname "$0")/.." || exit 1
status=0
while read -r name; do
	file=test/${name%%.*}_test.c test=${name#*.}
	[ "$test" != c ] || continue		# a source file
	if ! grep -qE "^(GO_)?TEST(_TIMEOUT)?\($test\b" "$file"; then
		echo "docs/go-tests.md: no test $name"
		status=1
	fi
done < <(grep -o '`[a-z_]*\.[a-z0-9_]*`' docs/go-tests.md | tr -d '`' | sort -u)
exit $status

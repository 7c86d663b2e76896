# script.sh - what the *_test.sh begin with: . "$SOURCE_DIR/test/script.sh"
#
#	skip WHY, fail WHY    end the test
#	$work                 a directory that is removed at the end, after what at_end names
#	need_go TOOL [MINOR]  $go is a Go, 1.MINOR or newer, that has "go tool TOOL"; else skipped
set -eu

skip() { echo "skipped: $*"; exit 77; }
fail() { echo "$*" >&2; exit 1; }

work=$(mktemp -d)
at_end=
trap '$at_end 2>/dev/null || true; rm -rf "$work"' EXIT

need_go()
{
	local candidate minor
	go=
	for candidate in go /usr/local/go/bin/go /usr/lib/go*/bin/go; do
		minor=$("$candidate" version 2>/dev/null | sed -n 's/.*go1\.\([0-9]*\).*/\1/p') || continue
		[ "${minor:-0}" -ge "${2:-1}" ] && go=$candidate && break
	done
	[ -n "$go" ] || skip "needs Go 1.${2:-1} or newer, for go tool $1"
	"$go" tool -n "$1" >/dev/null 2>&1 || skip "needs go tool $1, which this Go has not got"
}

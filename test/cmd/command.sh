# command.sh - what the tests of the goro command begin with: . "$SOURCE_DIR/test/cmd/command.sh"
# What script.sh has, and
#
#	$goro                            the command; the test is in $work
#	status WANT COMMAND...           leaves what it prints in "out" and "errors"
#	has TEXT...                      "out" has a line that matches each
#	expect STATUS TEXT COMMAND...    what it prints has the text in it
. "$SOURCE_DIR/test/script.sh"

[ -z "$GORO_SANITIZE" ] || skip "the command is tested without sanitizers"
[ -z "$TEST_LAUNCHER" ] || skip "runs on this machine only"
goro=$BUILD_DIR/bin/goro
cd "$work"

status()
{
	local want=$1 got=0
	shift
	timeout 60 "$@" >out 2>errors || got=$?
	[ "$got" = "$want" ] || fail "$*: status $got, not $want: $(cat errors)"
}

has()
{
	local text
	for text in "$@"; do
		grep -Eq "$text" out || fail "no '$text' in: $(cat out)"
	done
}

expect()
{
	local want=$1 text=$2 out status=0
	shift 2
	out=$("$@" 2>&1) || status=$?
	[ "$status" = "$want" ] || fail "$*: status $status, not $want: $out"
	[[ $out == *"$text"* ]] || fail "$*: printed '$out', not '$text'"
}

# check.sh - what the `check` scripts share: read by them with `. ../check.sh`.
#
# The current folder is the example's. From examples/run: BUILD_DIR, SOURCE_DIR, PREFIX (where
# the library is installed, which pkg-config finds) and BIN (where programs go).
# Here: $work, a folder that is removed at the end.
set -u
[ -n "${PREFIX:-}" ] || { echo "run this by examples/run"; exit 2; }
folder=${PWD#"$SOURCE_DIR/examples/"}
work=$(mktemp -d /tmp/goro-examples.XXXXXX)
chmod 755 "$work"
started=()

end()
{
	[ ${#started[@]} = 0 ] || kill "${started[@]}" 2>/dev/null
	wait
	rm -rf "$work"
}
trap end EXIT

ok() { echo "ok $folder/$1"; }
failed() { echo "FAILED $folder/$1: ${2:-}"; }
skipped() { echo "skipped $folder/$1: ${2:-}"; }

# has PACKAGE...: whether pkg-config knows all of them.
has() { pkg-config --exists "$@"; }

# build [TARGET...]: with the folder's Makefile, to $BIN/FOLDER. Says what the compiler said if it fails.
build()
{
	mkdir -p "$BIN/$folder"
	make -s BIN="$BIN/$folder" "$@" >"$work/make.log" 2>&1 || { cat "$work/make.log"; return 1; }
	cat "$work/make.log"
}

# prints EXPECTED COMMAND...: whether the command succeeds within a minute and prints what the
# file EXPECTED has; says the difference if not.
prints()
{
	local expected=$1; shift
	timeout --kill-after=5 60 "$@" >"$work/got" 2>"$work/err" ||
		{ echo "status $?"; cat "$work/got" "$work/err"; return 1; }
	diff -u "$expected" "$work/got"
}

# start COMMAND...: in the background, until the script ends. Its output goes to $work/log.
start()
{
	"$@" >>"$work/log" 2>&1 &
	started+=($!)
}

# A TCP port of loopback that nobody listens on just now.
free_port()
{
	python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])'
}

# await COMMAND...: until it succeeds, for a minute: the machine may be busy.
await()
{
	local i
	for i in $(seq 600); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.1
	done
	echo "no success in a minute: $*"
	return 1
}

# listens PORT: whether a connection can be made there.
listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

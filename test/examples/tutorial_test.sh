#!/usr/bin/env bash
# The tutorial: its programs are those in examples/tutorial, and somebody who does what it
# says, with an installation and an empty folder, sees what it shows.
. "$SOURCE_DIR/test/script.sh"
[ -z "$GORO_SANITIZE" ] || skip "sanitizer builds are not installed"
[ -z "$TEST_LAUNCHER" ] || skip "runs on this machine only"
command -v patch >/dev/null || skip "needs patch"
"$SOURCE_DIR/tools/tutorial" check

cmake --install "$BUILD_DIR" --prefix "$work/goro" >/dev/null
mkdir "$work/empty" "$work/home"
cd "$work/empty"
# A network of its own, where the tutorial's port is free.
alone=
unshare --net true 2>/dev/null && alone="unshare --net"
export PATH=$work/goro/bin:$PATH HOME=$work/home
timeout 100 $alone bash -c '{ ! command -v ip >/dev/null || ip link set lo up; } && "$0" follow' \
	"$SOURCE_DIR/tools/tutorial"

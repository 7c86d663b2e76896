#!/usr/bin/env bash
# goro doctor: each thing with a verdict; what GORO_DEBUG switches off falls back; limits that
# are low; its status says whether goro works; nothing is wider than 80 columns.
. "$SOURCE_DIR/test/script.sh"
[ -z "$GORO_SANITIZE" ] || skip "the command is tested without sanitizers"
[ -z "$TEST_LAUNCHER" ] || skip "runs on this machine only"
goro=$BUILD_DIR/bin/goro

# has PATTERN: a line of the last report matches.
has() { grep -qE "$1" "$work/report" || fail "no '$1' in: $(cat "$work/report")"; }

"$goro" doctor >"$work/report" || fail "status $?: $(cat "$work/report")"
has '^ok +goro  '
has '^ok +Linux'
has "^ok +cmake +/"
! grep -q $'\033' "$work/report" || fail "colours, though this is no terminal"
! grep -E '^.{81}' "$work/report" || fail "wider than 80 columns"

off=nomembarrier=1,noguard=1,nopwait2=1,nonowait=1,nouring=1,nourgent=1,nouserfault=1
prlimit --nofile=1000:1000 --as=900000000 env GORO_DEBUG=$off CC="no-such-cc -x" PATH=/nowhere \
	GORO_MAXPROCS=3 "$goro" doctor >"$work/report" || fail "with fallbacks: status $?"
for thing in membarrier MADV_GUARD_INSTALL epoll_pwait2 "RWF_NOWAIT for pipes" RWF_NOSIGNAL \
	io_uring "io_uring with SQPOLL" "real-time priority" userfaultfd; do
	has "^falls back +$thing  *[^ ]"
done
has '^(ok|low) +GOMAXPROCS +3 by GORO_MAXPROCS'
has '^low +open files +1,000, '
has '^low +address space +858 MiB'
has '^missing +cc '
has '^missing +cmake '
! grep -E '^.{81}' "$work/report" || fail "wider than 80 columns"

# On a terminal it has colours, unless NO_COLOR is set.
if command -v script >/dev/null; then
	TERM=xterm script -qec "$goro doctor" /dev/null >"$work/report" </dev/null
	has $'\033\\[32mok'
	TERM=xterm NO_COLOR=1 script -qec "$goro doctor" /dev/null >"$work/report" </dev/null
	! grep -q $'\033' "$work/report" || fail "colours in spite of NO_COLOR"
fi

# Without room for stacks nothing works.
status=0
GORO_STACK=1G prlimit --as=400000000 "$goro" doctor >"$work/report" 2>&1 || status=$?
[ "$status" = 1 ] || fail "without memory: status $status"
has '^missing +goro +It does not work here'

"$goro" doctor --help | grep -q "usage: goro doctor" || fail "no help"
status=0
"$goro" doctor me 2>/dev/null || status=$?
[ "$status" = 2 ] || fail "wrong words: status $status"

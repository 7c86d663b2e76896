#!/usr/bin/env bash
# goro.h alone takes no names of the system's from a program, and beside the system's own headers,
# before or after them, it says the same as they do.
. "$SOURCE_DIR/test/script.sh"
cd "$work"

# Functions of sockets, files, signals and time that a program may have of its own.
names="accept bind close connect kill listen pipe poll pselect raise random read readv recv recvfrom
	recvmsg select send sendmsg sendto shutdown signal sleep socket socketpair time wait write writev"
{
	echo '#include <goro.h>'
	for name in $names; do echo "static int $name(int a, int b, int c, int d, int e) { return a + b + c + d + e; }"; done
	echo 'int all(void);'
	echo 'int all(void) { return 0'
	for name in $names; do echo "+ $name(1, 2, 3, 4, 5)"; done
	echo '; }'
} >own.c

# The types that goro.h names are the system's.
use='
ssize_t take(struct msghdr *msg, const struct iovec *iov, struct sockaddr *addr, socklen_t *len, off_t at);
ssize_t take(struct msghdr *msg, const struct iovec *iov, struct sockaddr *addr, socklen_t *len, off_t at)
{
	msg->msg_iov = (struct iovec *)(uintptr_t)iov;
	addr->sa_family = AF_UNIX;
	if (goro_accept(1, addr, len) < 0 || goro_pread(1, NULL, iov->iov_len, at) < 0)
		return goro_readv(1, iov, 1);
	return goro_recvmsg(1, msg, MSG_PEEK);
}'
ours='#include <goro.h>'
theirs=$(printf '#include <%s>\n' sys/types.h sys/socket.h sys/uio.h sys/stat.h unistd.h poll.h signal.h)
printf '%s\n' "$ours" "$theirs" "$use" >before.c
printf '%s\n' "$theirs" "$ours" "$use" >after.c

# check COMPILER FLAGS...
check()
{
	command -v "$1" >/dev/null || return 0
	for file in own before after; do
		"$@" -Wall -Wextra -pedantic -Werror -I"$SOURCE_DIR/include" -fsyntax-only $file.c 2>log ||
			{ echo "$*: $file.c"; cat log; fail "does not compile"; }
	done
}

for flags in -std=c11 -std=gnu11 "-std=gnu11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64" -std=c2x; do
	for cc in "$CC" gcc clang musl-gcc; do check $cc -x c $flags; done
done
for flags in -std=c++17 -std=gnu++20; do
	for cxx in g++ clang++; do check $cxx -x c++ $flags; done
done

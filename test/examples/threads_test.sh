#!/usr/bin/env bash
# The steps of docs/threads.md, from threads to goroutines: the same conversation with each has the
# same answers. That the page shows these programs tools/tutorial checks (tutorial_test.sh).
. "$SOURCE_DIR/test/script.sh"
command -v python3 >/dev/null || skip "needs python3"

cat >"$work/talk.py" <<'END'
import socket, subprocess, sys, threading

with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    port = s.getsockname()[1]
server = subprocess.Popen([*sys.argv[1:], str(port)], stdout=subprocess.PIPE)


def connect():
    return socket.create_connection(("127.0.0.1", port), timeout=60).makefile("rwb", buffering=0)


def ask(c, line):
    c.write(line + b"\n")
    return c.readline()


try:
    assert server.stdout.readline() == b"listening\n"
    a, waiting = connect(), [connect() for _ in range(50)]
    assert ask(a, b"hello") == b"put TEXT, or get SECONDS\n"
    assert ask(a, b"get 0") == b"nothing\n" and ask(a, b"get 1") == b"nothing\n"
    for text in (b"one", b"two", b"x" * 200):
        assert ask(a, b"put " + text) == b"ok\n"
    assert [ask(waiting[0], b"get 0") for _ in range(4)] == [b"one\n", b"two\n", b"x" * 200 + b"\n", b"nothing\n"]

    # Many wait at once, each gets one message, whoever is there when.
    got = []
    threads = [threading.Thread(target=lambda c=c: got.append(ask(c, b"get 60"))) for c in waiting]
    for t in threads:
        t.start()
    for i in range(len(waiting)):
        assert ask(a, b"put %d" % i) == b"ok\n"
    for t in threads:
        t.join()
    assert sorted(got) == sorted(b"%d\n" % i for i in range(len(waiting))), got

    # One who leaves, and one whose line is too long, are gone; the others stay.
    waiting.pop().close()
    a.write(b"y" * 300 + b"\n")
    try:
        assert a.read(1) == b""
    except ConnectionResetError:
        pass
    assert ask(waiting[0], b"put z") == b"ok\n" and ask(waiting[1], b"get 60") == b"z\n"
    assert server.poll() is None
finally:
    server.kill()
    server.wait()
END
for step in 1_threads 2_goroutines 3_park 4_channel; do
	# shellcheck disable=SC2086 # the launcher is a command and its arguments
	timeout 60 python3 "$work/talk.py" $TEST_LAUNCHER "$BUILD_DIR/examples/threads/$step" || fail "threads/$step"
done

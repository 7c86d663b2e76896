"""kv.check.py PROGRAM - what kv does with clients of all kinds."""
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time

PROGRAM = sys.argv[1]
MB = 1 << 20


class Server:
    """A kv of one's own, ended when the block ends."""

    def __init__(self, *options, **more):
        self.process = subprocess.Popen([PROGRAM, *options, "127.0.0.1:0"], text=True, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, **more)
        self.port = int(re.search(r"port (\d+)", self.process.stdout.readline()).group(1))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.rest = self.process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        assert error[0] or self.process.returncode == 0, (self.process.returncode, self.rest)
        assert error[0] or self.rest[0] == "bye\n", self.rest

    def status(self, name):
        with open(f"/proc/{self.process.pid}/status") as f:
            return int(re.search(rf"^{name}:\s+(\d+)", f.read(), re.M).group(1))

    def connect(self):
        return Client(self.port)


class Error(Exception):
    pass


class Client:
    def __init__(self, port):
        self.s = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.got = b""

    def send(self, data):
        self.s.sendall(data)

    def more(self):
        data = self.s.recv(1 << 16)
        self.got += data
        return data

    def line(self):
        while b"\r\n" not in self.got:
            if not self.more():
                raise EOFError(self.got)
        line, self.got = self.got.split(b"\r\n", 1)
        return line

    def reply(self):
        line = self.line()
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return rest
        if kind == b"-":
            return Error(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"*":
            return [self.reply() for _ in range(int(rest))]
        assert kind == b"$", line
        n = int(rest)
        if n < 0:
            return None
        while len(self.got) < n + 2:
            assert self.more()
        value, end, self.got = self.got[:n], self.got[n:n + 2], self.got[n + 2:]
        assert end == b"\r\n"
        return value

    def ended(self):
        """Whether the server has closed the connection, in good order, and there is nothing more to read."""
        return not self.got and not self.more()

    def __call__(self, *words):
        self.send(request(*words))
        return self.reply()

    def close(self):
        self.s.close()


def request(*words):
    words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


def await_(condition, what):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def info(c, name):
    return int(re.search(rb"^%s:(\d+)" % name.encode(), c("INFO"), re.M).group(1))


def is_error(reply, begins):
    assert isinstance(reply, Error) and str(reply).startswith(begins), f"{reply!r} instead of {begins}"


# ------------------------------------------------------------------- tests

def requests_in_pieces(kv):
    c = kv.connect()
    c.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in request("SET", "pieces", "\r\n$5\r\n*1") + b"GET pieces\r\n" + request("STRLEN", "pieces"):
        c.send(bytes([byte]))
    assert c.reply() == b"OK" and c.reply() == b"\r\n$5\r\n*1" and c.reply() == 8


def pipelines(kv):
    c, n = kv.connect(), 20000
    data = b"".join(request("SET", f"p{i}", i) + request("GET", f"p{i}") for i in range(n))
    sender = threading.Thread(target=c.send, args=(data,))
    sender.start()
    for i in range(n):
        assert c.reply() == b"OK" and c.reply() == str(i).encode()
    sender.join()


def values_of_all_kinds(kv):
    c = kv.connect()
    for value in [b"", bytes(range(256)), os.urandom(4093), os.urandom(4096), os.urandom(70000), os.urandom(9 * MB)]:
        assert c("SET", value[:1000], value) == b"OK" and c("GET", value[:1000]) == value
    assert c("APPEND", b"", b"x" * 100000) == 100000 and c("GET", "") == b"x" * 100000
    assert c("RPUSH", "list", *[b"%d" % i for i in range(5000)]) == 5000
    assert c("LRANGE", "list", 10, 4000) == [b"%d" % i for i in range(10, 4001)]
    c("FLUSHALL")


def typed_lines(kv):
    c = kv.connect()
    c.send(b"PING\nQUIT\nPING\n")
    assert c.reply() == b"PONG" and c.reply() == b"OK" and c.ended()
    c = kv.connect()
    c.send(b"\r\n  set 'it''s' x\r\n")
    is_error(c.reply(), "ERR Protocol error: unbalanced quotes in request")
    assert c.ended()
    c = kv.connect()
    c.send(b"*0\r\n*-1\r\n\r\n  \r\nSET \"a b\" 'c\\'d'\nget \"\\x61 b\"\r\nECHO \"\\n\\\"\"\r\n")
    assert c.reply() == b"OK" and c.reply() == b"c'd" and c.reply() == b'\n"'


def protocol_errors(kv):
    for sent, why in [
        (b"*x\r\n", "invalid multibulk length"),
        (b"*\r\n", "invalid multibulk length"),
        (b"*1048577\r\n", "invalid multibulk length"),
        (b"*99999999999999999999999\r\n", "invalid multibulk length"),
        (b"*1\r\nPING\r\n", "expected '$', got 'P'"),
        (b"*1\r\n$-1\r\n", "invalid bulk length"),
        (b"*1\r\n$536870913\r\n", "invalid bulk length"),
        (b"*1\r\n$18446744073709551615\r\n", "invalid bulk length"),
        (b"*1\r\n$+4\r\nPING\r\n", "invalid bulk length"),
        (b"*1\r\n$3\r\nPING\r\n", "bulk of another length"),
        (b"GET \"x\r\n", "unbalanced quotes in request"),
        (b"x" * 140000, "too big inline request"),
        (b"*1\r\n$" + b"1" * 140000, "too big bulk count string"),
    ]:
        c = kv.connect()
        # What comes after the error is not looked at, and does not lose the answer.
        c.send(request("PING") + sent + b"\r\nSET intruder 1\r\n" * 1000)
        assert c.reply() == b"PONG"
        is_error(c.reply(), f"ERR Protocol error: {why}")
        assert c.ended()
    for sent in [b"POST / HTTP/1.1\r\nHost: x\r\n\r\nSET intruder 1\r\n", b"Host: x\r\nSET intruder 1\r\n"]:
        c = kv.connect()
        c.send(sent)
        assert c.ended()
    c = kv.connect()
    is_error(c("GET\0", "x"), "ERR unknown command 'GET")
    is_error(c("x\r\n+OK\r\n"), "ERR unknown command 'x  +OK  '")
    is_error(c("X" * 1000, *["y" * 100] * 1000), "ERR unknown command 'XXX")
    assert c("EXISTS", "intruder") == 0


def announced_is_not_allocated(kv):
    c = kv.connect()
    before, others = kv.status("VmRSS"), [kv.connect() for _ in range(100)]
    for o in others:
        o.send(b"*1048576\r\n$536870912\r\nabc")
    assert c("PING") == b"PONG"
    assert info(c, "used_memory_buffers") < MB
    assert kv.status("VmRSS") - before < 10 * 1024
    for o in others:
        o.close()


def memory_is_limited():
    with Server("-m", "16") as kv:
        c = kv.connect()
        empty, full = info(c, "used_memory"), 0
        while c("SET", f"k{full}", b"v" * MB) == b"OK":
            full += 1
            assert full < 100
        assert full in (14, 15), full
        is_error(c("SET", "k", b"v" * MB), "OOM")
        is_error(c("RPUSH", "list", "x", b"v" * (MB - 1000), "y" * 10000), "OOM")
        is_error(c("APPEND", "k0", b"v" * MB), "OOM")
        is_error(c("MSET", "k0", "short", "k", b"v" * MB), "OOM")
        assert c("EXISTS", "list") == 0 and c("GET", "k0") == b"v" * MB and c("DBSIZE") == full
        assert c("DEL", "k0") == 1 and c("SET", "k0", b"v" * MB) == b"OK"
        # What seemed to fit turns out not to: all of a push is undone.
        assert c("RPUSH", "list", 1, 2) == 2
        assert c("SET", "rest", b"r" * (16 * MB - info(c, "used_memory") - 20000)) == b"OK"
        is_error(c("RPUSH", "list", *["x"] * 1500), "OOM")
        is_error(c("LPUSH", "other", *["x"] * 1500), "OOM")
        assert c("LRANGE", "list", 0, -1) == [b"1", b"2"] and c("EXISTS", "other") == 0
        # A request, and replies that are larger than all buffers may be together.
        big = kv.connect()
        big.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$20000000\r\n")
        try:
            big.send(b"v" * 20000000)
        except ConnectionError:
            pass
        is_error(big.reply(), "ERR no memory for this request")
        big.close()
        big = kv.connect()
        big.send(request("MGET", *["k1"] * 20))
        assert big.ended()
        assert c("GET", "k1") == b"v" * MB
        assert c("FLUSHALL") == b"OK" and c("DBSIZE") == 0
        await_(lambda: info(c, "used_memory") == empty, "memory is not given back")
        await_(lambda: info(c, "used_memory_buffers") < 2 * 65536, "buffers are not given back")


def one_who_does_not_read_holds_up_nobody(kv):
    lazy, c, n = kv.connect(), kv.connect(), 200
    c("SET", "big", b"b" * 100000)
    lazy.s.settimeout(30)
    sender = threading.Thread(target=lambda: [lazy.send(request("GET", "big")) for _ in range(n)])
    sender.start()
    time.sleep(0.2)
    for i in range(100):
        assert c("SET", "big2", i) == b"OK" and c("STRLEN", "big") == 100000
    for _ in range(n):
        assert lazy.reply() == b"b" * 100000
    sender.join()


def keys_expire(kv):
    c = kv.connect()
    c("FLUSHALL")
    for i in range(1000):
        c.send(request("SET", f"e{i}", i, "PX", 1 if i % 2 else 100000))
    assert [c.reply() for _ in range(1000)] == [b"OK"] * 1000
    await_(lambda: c("DBSIZE") == 500, "the janitor does not clean")
    c("SET", "soon", 1, "PX", 50)
    assert 0 <= c("PTTL", "soon") <= 50
    await_(lambda: c("GET", "soon") is None, "a key does not expire")
    for i in range(20):     # whoever asks does not see what the janitor has not seen
        c("SET", "soon", 1, "PX", 1)
        time.sleep(0.02)
        assert c("EXISTS", "soon") == 0 and c("GET", "soon") is None
    c("RPUSH", "list", 1)
    c("PEXPIRE", "list", 1)
    await_(lambda: c("LLEN", "list") == 0, "a list does not expire")
    c("FLUSHALL")


def scan_sees_all_that_stays(kv):
    c, n = kv.connect(), 2000
    c("FLUSHALL")
    c("MSET", *[w for i in range(n) for w in (f"stays{i}", 1)])
    seen, cursor, steps = set(), b"0", 0
    while True:
        cursor, keys = c("SCAN", cursor, "COUNT", 20)
        seen.update(keys)
        if steps < 50:
            assert c("MSET", *[w for i in range(200) for w in (f"more{steps}.{i}", 1)]) == b"OK"
        steps += 1
        if cursor == b"0":
            break
    assert steps > 50 and seen >= {b"stays%d" % i for i in range(n)}
    assert len(c("KEYS", "stays*")) == n and len(set(c("KEYS", "*"))) == c("DBSIZE") == n + 200 * 50
    start = time.monotonic()
    assert c("SET", "a" * 5000, 1) == b"OK" and c("KEYS", "a*" * 200 + "b") == []
    assert time.monotonic() - start < 10
    c("FLUSHALL")


def commands_are_atomic(kv):
    wrong, rounds, n, keys = [], 10, 100, 12

    def count(me):
        c = kv.connect()
        for _ in range(rounds):
            # Many at once, so that the server has something to do in parallel.
            c.send(b"".join(request("INCR", "counter") + request("MSET", *[w for k in range(keys) for w in (k, str(me) * 2000)]) +
                            request("MGET", *range(9, keys)) for i in range(n)))
            for i in range(n):
                c.reply(), c.reply()
                wrong.extend([i] if len(set(c.reply())) != 1 else [])
        c.close()

    threads = [threading.Thread(target=count, args=(me,)) for me in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and kv.connect()("GET", "counter") == b"%d" % (4 * rounds * n)


def messages(kv):
    a, b, c = kv.connect(), kv.connect(), kv.connect()
    assert a("SUBSCRIBE", "news", "\0") == [b"subscribe", b"news", 1] and a.reply() == [b"subscribe", b"\0", 2]
    assert b("SUBSCRIBE", "news") == [b"subscribe", b"news", 1]
    assert b("SUBSCRIBE", "news") == [b"subscribe", b"news", 1]
    for i in range(500):
        assert c("PUBLISH", "news", i) == 2
    assert c("PUBLISH", "\0", b"\r\n") == 1
    for i in range(500):
        assert a.reply() == b.reply() == [b"message", b"news", b"%d" % i]
    assert a.reply() == [b"message", b"\0", b"\r\n"]
    is_error(a("GET", "x"), "ERR Can't execute 'get'")
    assert a("PING") == [b"pong", b""] and a("PING", "x") == [b"pong", b"x"]
    assert a("UNSUBSCRIBE", "news") == [b"unsubscribe", b"news", 1]
    assert a("UNSUBSCRIBE") == [b"unsubscribe", b"\0", 0] and a("UNSUBSCRIBE") == [b"unsubscribe", None, 0]
    assert a("GET", "x") is None and c("PUBLISH", "news", "x") == 1
    b.close()
    await_(lambda: c("PUBLISH", "news", "x") == 0, "a subscriber that has left is still there")
    many = c("SUBSCRIBE", *range(1030))
    assert many == [b"subscribe", b"0", 1]
    replies = [c.reply() for _ in range(1029)]
    assert replies[1022] == [b"subscribe", b"1023", 1024]
    is_error(replies[1023], "ERR no memory, or more than 1024 subscriptions")


def messages_are_not_lost_after_the_answer(kv):
    publisher = kv.connect()
    for i in range(200):
        c = kv.connect()
        assert c("SUBSCRIBE", f"race{i}") == [b"subscribe", b"race%d" % i, 1]
        assert publisher("PUBLISH", f"race{i}", "x") == 1 and c.reply()[2] == b"x"
        c.close()


def slow_subscriber_is_dropped(kv):
    slow, quick, c = kv.connect(), kv.connect(), kv.connect()
    for s in (slow, quick):
        s("SUBSCRIBE", "flood")
    sent, seen = 0, 2
    while seen == 2:
        seen = c("PUBLISH", "flood", b"m" * 100000)
        assert quick.reply()[2] == b"m" * 100000
        sent += 1
        assert sent < 5000
    assert c("PUBLISH", "flood", "x") == 1 and quick.reply()[2] == b"x"
    while slow.more():
        slow.got = b""


def many_connections(kv):
    n = 10000
    first = kv.connect()
    before = kv.status("VmRSS")
    clients = [kv.connect() for _ in range(n)]
    for rounds in range(2):
        for i, c in enumerate(clients):
            c.send(request("SET", f"c{i}", i) if rounds == 0 else request("GET", f"c{i}"))
        for i, c in enumerate(clients):
            assert c.reply() == (b"OK" if rounds == 0 else b"%d" % i)
    assert info(first, "connected_clients") == n + 1
    threads = kv.status("Threads")
    assert threads <= 100, f"{threads} threads"
    # Few are busy among many that are idle.
    for i in range(2000):
        assert clients[i * 7 % 50]("PING") == b"PONG"
    print(f"{n} connections: {threads} threads, {(kv.status('VmRSS') - before) / n:.1f} KB each")
    for c in clients:
        c.close()
    await_(lambda: info(first, "connected_clients") == 1, "connections that were closed are still there")
    assert first("FLUSHALL") == b"OK"


def too_many_connections():
    with Server("-c", "5") as kv:
        clients = [kv.connect() for _ in range(5)]
        assert all(c("PING") == b"PONG" for c in clients)
        late = kv.connect()
        is_error(late.reply(), "ERR max number of clients reached")
        assert late.ended() and clients[0]("PING") == b"PONG"
        clients.pop().close()
        await_(lambda: info(clients[0], "connected_clients") == 4, "one that has left counts")
        assert kv.connect()("PING") == b"PONG"
    few = 100
    with Server(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (few, few))) as kv:
        clients = [kv.connect() for _ in range(few)]
        await_(lambda: info(clients[0], "connected_clients") == 36, "as many as there are descriptors for")
        is_error(clients[-1].reply(), "ERR max number of clients reached")
    assert "at most 36 clients at once" in kv.rest[1], kv.rest
    # The limit is taken away from under it.
    with Server() as kv:
        first = kv.connect()
        assert first("PING") == b"PONG"
        resource.prlimit(kv.process.pid, resource.RLIMIT_NOFILE, (30, 30))
        clients = [kv.connect() for _ in range(40)]
        await_(lambda: info(first, "connected_clients") > 10, "some find room")
        time.sleep(0.1)
        assert first("PING") == b"PONG" and info(first, "connected_clients") < 35
        for c in clients[:20]:
            c.close()
        assert clients[-1]("PING") == b"PONG"
    assert kv.rest[1].count("going on") == 1, kv.rest


def an_orderly_end():
    for how in (signal.SIGTERM, signal.SIGINT, "SHUTDOWN"):
        with Server() as kv:
            c, idle, sub, lazy = kv.connect(), kv.connect(), kv.connect(), kv.connect()
            sub("SUBSCRIBE", "x")
            assert idle("PING") == b"PONG" and lazy("SET", "big", b"b" * MB) == b"OK"
            lazy.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            if how == signal.SIGTERM:
                lazy.send(request("GET", "big") * 50)  # it never reads that
            n = 5000
            c.send(request("INCR", "n") * n)
            assert c.reply() == 1
            if how == "SHUTDOWN":
                kv.connect().send(request(how))
            else:
                kv.process.send_signal(how)
            got = 1
            try:
                while True:
                    got += 1
                    assert c.reply() == got
            except (EOFError, ConnectionError) as e:
                # What was answered came whole.
                assert not isinstance(e, EOFError) or e.args[0] == b"", e
            assert idle.ended() and sub.ended()
            kv.process.wait(20)


def bad_options():
    for options in (["-c", "0"], ["-m", "x"], ["-q"], ["a", "b"]):
        r = subprocess.run([PROGRAM, *options], capture_output=True, text=True, timeout=20)
        assert r.returncode == 2 and "usage: kv" in r.stderr, r
    r = subprocess.run([PROGRAM, "nowhere.invalid:x:1"], capture_output=True, text=True, timeout=20)
    assert r.returncode == 1 and r.stderr.startswith("kv: nowhere.invalid:x:1: "), r
    with Server() as kv:
        r = subprocess.run([PROGRAM, f"127.0.0.1:{kv.port}"], capture_output=True, text=True, timeout=20)
        assert r.returncode == 1 and "in use" in r.stderr, r


SHARED = [requests_in_pieces, pipelines, values_of_all_kinds, typed_lines, protocol_errors,
          announced_is_not_allocated, one_who_does_not_read_holds_up_nobody, keys_expire,
          scan_sees_all_that_stays, commands_are_atomic, messages, messages_are_not_lost_after_the_answer,
          slow_subscriber_is_dropped, many_connections]
ALONE = [memory_is_limited, too_many_connections, an_orderly_end, bad_options]


def main():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard < 11000 + 64:
        print(f"skipping many connections: only {hard} descriptors are allowed")
        SHARED.remove(many_connections)
    wanted = sys.argv[2:]

    def run(test, *args):
        if wanted and test.__name__ not in wanted:
            return
        start = time.monotonic()
        try:
            test(*args)
        except BaseException:
            print(f"{test.__name__}:")
            raise
        if wanted:
            print(f"{test.__name__}: {time.monotonic() - start:.1f} s")

    with Server("-c", "11000", "-m", "256") as kv:
        for test in SHARED:
            run(test, kv)
    for test in ALONE:
        run(test)


main()

"""nameserver.py ADDRESS - a name server on port 53 that takes its time: a second for each answer.

host-N.example has one address, many.example 200 (which takes TCP), nobody.example is not
there, and of silence.example it says nothing.
"""
import re, socket, struct, sys, threading, time

DELAY_S = 1.0


def answer(query, room):
    """The answer to a query, in at most so many bytes; None: none at all."""
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode())
        at += 1 + query[at]
    question, name = query[12:at + 5], ".".join(labels)
    host = re.fullmatch(r"host-(\d+)\.example", name)
    addresses, code, flags = [], 0, 0x8180
    if name == "silence.example":
        return None
    if host:
        addresses = [0x0A000000 + int(host[1])]
    elif name == "many.example":
        addresses = [0x0A000000 + i for i in range(200)]
    else:
        code = 3
    records = b"".join(struct.pack(">HHHLHL", 0xC00C, 1, 1, 60, 4, a) for a in addresses)
    if 12 + len(question) + len(records) > room:
        flags, records, addresses = flags | 0x0200, b"", []
    head = query[:2] + struct.pack(">HHHHH", flags | code, 1, len(addresses), 0, 0)
    return head + question + records


def serve_tcp(listener):
    while True:
        conn, _ = listener.accept()
        with conn:
            size = conn.recv(2, socket.MSG_WAITALL)
            if len(size) == 2:
                reply = answer(conn.recv(struct.unpack(">H", size)[0], socket.MSG_WAITALL), 65535)
                conn.sendall(struct.pack(">H", len(reply)) + reply)


def main():
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    udp.bind((sys.argv[1], 53))
    listener = socket.create_server((sys.argv[1], 53))
    threading.Thread(target=serve_tcp, args=(listener,), daemon=True).start()
    waiting = []    # (when, answer, to whom), in the order of time
    while True:
        udp.settimeout(max(waiting[0][0] - time.monotonic(), 1e-6) if waiting else None)
        try:
            query, client = udp.recvfrom(512)
            waiting.append((time.monotonic() + DELAY_S, answer(query, 512), client))
        except TimeoutError:
            pass
        while waiting and waiting[0][0] <= time.monotonic():
            _, reply, client = waiting.pop(0)
            if reply:
                udp.sendto(reply, client)


main()

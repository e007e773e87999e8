"""Serve or request echoes over UDP, TCP and multicast; the tests start it on hosts."""

from __future__ import annotations

import json
import socket
import statistics
import sys
import threading
import time

PORT = 20_000
GROUP = "239.77.0.1"
LIFE_S = 20.0
ROUND_TRIPS = 20


def serve(address: str) -> None:
    """Reply over UDP, TCP and to a multicast group until the time is over."""
    kinds = {"udp": socket.SOCK_DGRAM, "multicast": socket.SOCK_DGRAM, "tcp": socket.SOCK_STREAM}
    sockets = {name: socket.socket(socket.AF_INET, kind) for name, kind in kinds.items()}
    membership = socket.inet_aton(GROUP) + socket.inet_aton(address)
    sockets["udp"].bind((address, PORT))
    sockets["multicast"].bind((GROUP, PORT))
    sockets["multicast"].setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
    sockets["tcp"].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sockets["tcp"].bind((address, PORT))
    sockets["tcp"].listen()
    for name in ("udp", "multicast"):
        threading.Thread(target=_reply, args=(sockets[name],), daemon=True).start()
    threading.Thread(target=_accept, args=(sockets["tcp"],), daemon=True).start()
    time.sleep(LIFE_S)


def _reply(server: socket.socket) -> None:
    while True:
        message, sender = server.recvfrom(2000)
        server.sendto(message, sender)


def _accept(server: socket.socket) -> None:
    while True:
        connection, _ = server.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while message := connection.recv(2000):
            connection.sendall(message)


def request(address: str, own: str) -> dict[str, float]:
    """Return the median round trip of each protocol in ms."""
    udp, group = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    group.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(own))
    for client, target in ((udp, address), (group, GROUP)):
        client.settimeout(0.5)
        _first_reply(client, target)
    tcp = socket.create_connection((address, PORT))
    tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sending = {
        "udp": (udp, lambda: udp.sendto(b"echo", (address, PORT))),
        "multicast": (group, lambda: group.sendto(b"echo", (GROUP, PORT))),
        "tcp": (tcp, lambda: tcp.sendall(b"echo")),
    }
    medians_ms = {}
    for name, (client, send) in sending.items():
        client.settimeout(5.0)
        times_ms = []
        for _ in range(ROUND_TRIPS):
            begin_ns = time.perf_counter_ns()
            send()
            client.recv(2000)
            times_ms.append((time.perf_counter_ns() - begin_ns) / 1e6)
        medians_ms[name] = statistics.median(times_ms)
    return medians_ms


def _first_reply(client: socket.socket, target: str) -> None:
    """Wait for the server, which starts at the same time."""
    deadline = time.monotonic() + LIFE_S
    while time.monotonic() < deadline:
        try:
            client.sendto(b"first", (target, PORT))
            client.recv(2000)
        except OSError:
            time.sleep(0.05)
        else:
            time.sleep(0.2)  # late replies of earlier attempts
            client.setblocking(False)
            while True:
                try:
                    client.recv(2000)
                except BlockingIOError:
                    return
    raise TimeoutError(f"no reply from {target}")


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    else:
        print(json.dumps(request(sys.argv[2], sys.argv[3])))

"""Ends of a link: a ping-pong over UDP and a stream over TCP, between two network namespaces.

    link_ends.py serve ADDRESS                     echo datagrams and read streams until stdin ends
    link_ends.py ping ADDRESS WARM CALLS BYTES     print the median round trip in ns
    link_ends.py exchange ADDRESS COUNT            print the four times of each exchange in ns
    link_ends.py stream ADDRESS SECONDS            print the transmitted bytes/s

It uses only the standard library and runs as a script, because it must start quickly.
"""

from __future__ import annotations

import socket
import statistics
import struct
import sys
import threading
import time

PORT, STAMP_PORT = 47_100, 47_101
STAMPS = struct.Struct("<qqq")
GAP_S = 0.0005
TIMEOUT_S = 5.0
PIECE_BYTES = 1 << 16


def serve(address: str) -> None:
    echo = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    echo.bind((address, PORT))
    listener = socket.create_server((address, PORT))
    stamps = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    stamps.bind((address, STAMP_PORT))
    threading.Thread(target=reflect, args=(echo,), daemon=True).start()
    threading.Thread(target=stamp, args=(stamps,), daemon=True).start()
    threading.Thread(target=read_streams, args=(listener,), daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()


def reflect(echo: socket.socket) -> None:
    while True:
        data, sender = echo.recvfrom(2048)
        echo.sendto(data, sender)


def stamp(endpoint: socket.socket) -> None:
    """Answer each datagram with its number and the times of its arrival and of the answer."""
    while True:
        data, sender = endpoint.recvfrom(2048)
        arrived_ns = time.monotonic_ns()
        (number, _, _) = STAMPS.unpack(data)
        endpoint.sendto(STAMPS.pack(number, arrived_ns, time.monotonic_ns()), sender)


def exchange(address: str, count: int) -> None:
    endpoint = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    endpoint.settimeout(TIMEOUT_S)
    endpoint.connect((address, STAMP_PORT))
    for number in range(count):
        time.sleep(GAP_S)
        sent_ns = time.monotonic_ns()
        endpoint.send(STAMPS.pack(number, 0, 0))
        answered, arrived_ns, replied_ns = STAMPS.unpack(endpoint.recv(2048))
        received_ns = time.monotonic_ns()
        if answered != number:
            raise ValueError(f"found the answer to {answered}; allowed: to {number}")
        print(sent_ns, arrived_ns, replied_ns, received_ns)


def read_streams(listener: socket.socket) -> None:
    """Read one stream after another, and answer the end of each with its size."""
    while True:
        stream, _ = listener.accept()
        size = 0
        while piece := stream.recv(PIECE_BYTES):
            size += len(piece)
        stream.sendall(b"%d\n" % size)
        stream.close()


def ping(address: str, warm: int, calls: int, size_bytes: int) -> None:
    endpoint = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    endpoint.settimeout(TIMEOUT_S)
    endpoint.connect((address, PORT))
    times_ns = []
    for number in range(warm + calls):
        message = number.to_bytes(8, "little").ljust(size_bytes, b"\0")
        begin_ns = time.monotonic_ns()
        endpoint.send(message)
        if endpoint.recv(2048) != message:
            raise ValueError(f"another reply than message {number}")
        times_ns.append(time.monotonic_ns() - begin_ns)
    print(statistics.median(times_ns[warm:]))


def stream(address: str, seconds: float) -> None:
    piece = bytes(PIECE_BYTES)
    with socket.create_connection((address, PORT), TIMEOUT_S) as connection:
        connection.settimeout(None)
        begin_s = time.monotonic()
        while time.monotonic() - begin_s < seconds:
            connection.sendall(piece)
        connection.shutdown(socket.SHUT_WR)
        size = int(connection.makefile().readline())
        print(size / (time.monotonic() - begin_s))


if __name__ == "__main__":
    word, peer, *numbers = sys.argv[1:]
    if word == "serve":
        serve(peer)
    elif word == "ping":
        ping(peer, *map(int, numbers))
    elif word == "exchange":
        exchange(peer, int(numbers[0]))
    else:
        stream(peer, float(numbers[0]))

"""A relay of a user, with its talker: `relay.py WORK_MS` works on each of 50 messages a second.

SIGINT ends it. It then prints the median time from a message's due time to the end of its work.
"""

import os
import signal
import socket
import statistics
import struct
import sys
import time

PERIOD_S = 0.02
STAMP = struct.Struct("d")


def talk(messages: socket.socket) -> None:
    """Send the due time of each message, until SIGINT ends the process."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    due_s = time.monotonic()
    while True:
        due_s += PERIOD_S
        time.sleep(max(0.0, due_s - time.monotonic()))
        messages.send(STAMP.pack(due_s))


def relay(messages: socket.socket, work_s: float) -> list[float]:
    """Spend `work_s` of CPU time on each message; return the latencies (s) at the end."""
    latencies_s: list[float] = []
    try:
        while stamp := messages.recv(STAMP.size):
            if not latencies_s:
                print("the first message came", flush=True)
            end_s = time.thread_time() + work_s
            while time.thread_time() < end_s:
                pass
            latencies_s.append(time.monotonic() - STAMP.unpack(stamp)[0])
    except KeyboardInterrupt:
        pass
    return latencies_s


def main() -> None:
    received, sent = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        received.close()
        talk(sent)
    sent.close()
    latencies_s = relay(received, float(sys.argv[1]) / 1e3)
    print(f"p50_ms={1e3 * statistics.median(latencies_s):.4f}", flush=True)


if __name__ == "__main__":
    main()

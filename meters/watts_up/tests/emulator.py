"""Emulate a Watts Up? Pro on a pseudo-terminal, as a program without a kit.

`python emulator.py WATTS` prints the path of the terminal and serves until its input ends.
"""

from __future__ import annotations

import os
import re
import select
import sys
import threading
import time
import tty
from collections.abc import Callable

FIELDS = 18
POLL_S = 0.02
"""The time after which the emulator notices that a test has changed one of its switches."""
COMMAND = re.compile(rb"#(\w),(\w),(\d*),?([^;]*);")


class WattsUp:
    """An emulated meter. It sends a record per interval only while external logging is on."""

    def __init__(self, power_w: Callable[[float], float], interval_s: float = 1.0) -> None:
        self._power_w = power_w
        self._interval_s = interval_s
        self.commands: list[bytes] = []
        self.sent_w: list[float] = []
        """Every power (W) in a record, as the record states it."""
        self.stored_interval = 7
        """The interval (s) that the meter had before anybody wrote another one."""
        self.is_logging = False
        self.is_hanging = False
        self.raw: list[bytes] = []
        """Bytes to send before the next record."""
        self.end, slave = os.openpty()
        tty.setraw(slave)
        self.path = os.ttyname(slave)
        self._slave = slave
        """Kept open, so that the terminal lives without a program that reads it."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Unplug the meter."""
        self._stop.set()
        self._thread.join()
        os.close(self._slave)
        os.close(self.end)

    def record(self, power_w: float) -> bytes:
        """Return the record of a power (W), in steps of 0.1 W."""
        tenths = round(power_w * 10)
        values = [tenths, 2304, round(tenths / 230.4 * 1000), *[0] * (FIELDS - 3)]
        return b"#d,-,%d,%s;\r\n" % (FIELDS, ",".join(map(str, values)).encode())

    def _serve(self) -> None:
        pending, next_s = b"", 0.0
        while not self._stop.is_set():
            is_sending = self.is_logging and not self.is_hanging
            left_s = max(0.0, next_s - time.monotonic()) if is_sending else POLL_S
            if select.select([self.end], [], [], min(POLL_S, left_s))[0]:
                pending += os.read(self.end, 256)
                while match := COMMAND.search(pending):
                    pending = pending[match.end() :]
                    self._obey(match)
                    next_s = time.monotonic() + self._interval_s
            if self.is_logging and not self.is_hanging and time.monotonic() >= next_s:
                next_s += self._interval_s
                while self.raw:
                    os.write(self.end, self.raw.pop(0))
                power_w = self._power_w(time.monotonic())
                self.sent_w.append(round(power_w * 10) / 10)
                os.write(self.end, self.record(power_w))

    def _obey(self, match: re.Match[bytes]) -> None:
        self.commands.append(match[0])
        letter, action, fields = match[1], match[2], match[4].split(b",")
        if (letter, action) == (b"L", b"W"):
            self.is_logging = fields[0] == b"E"
            if self.is_logging:
                self.stored_interval = int(fields[-1])
        elif letter == b"L":
            self.is_logging = False
            os.write(self.end, b"#l,-,2,0,%d;\r\n" % self.stored_interval)
        elif (letter, action) == (b"S", b"R"):
            os.write(self.end, b"#s,-,2,0,%d;\r\n" % self.stored_interval)
        elif letter == b"S":
            self.stored_interval = int(fields[-1])


if __name__ == "__main__":
    watts = float(sys.argv[1])
    meter = WattsUp(lambda _: watts)
    print(meter.path, flush=True)
    sys.stdin.read()

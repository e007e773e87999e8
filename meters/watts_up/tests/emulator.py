"""Emulate a Watts Up? Pro on a pseudo-terminal, as a program without a kit.

`python emulator.py WATTS [LINK STATE [COMMAND]]` prints the path of the terminal and serves until
its input ends. LINK becomes a link to the terminal, as a device keeps its name when it is plugged
in again. STATE is a file with what the meter remembers without a cable. The cable is pulled when
COMMAND comes for the second time: the first one is that of a check of the meter.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import sys
import threading
import time
import tty
from collections.abc import Callable
from pathlib import Path

FIELDS = 18
POLL_S = 0.02
"""The time after which the emulator notices that a test has changed one of its switches."""
COMMAND = re.compile(rb"#(\w),(\w),(\d*),?([^;]*);")


class WattsUp:
    """An emulated meter. It sends a record per interval only while external logging is on."""

    def __init__(
        self,
        power_w: Callable[[float], float],
        interval_s: float = 1.0,
        state: Path | None = None,
    ) -> None:
        self._power_w = power_w
        self._interval_s = interval_s
        self._state = state
        self.commands: list[bytes] = []
        self.on_command: Callable[[], None] = lambda: None
        """Called after each command."""
        self.sent_w: list[float] = []
        """Every power (W) in a record, as the record states it."""
        self.stored_interval = 7
        """The interval (s) that the meter had before anybody wrote another one."""
        self.is_logging = False
        if state is not None and state.exists():
            self.is_logging, self.stored_interval = json.loads(state.read_text())
        self.is_hanging = False
        self.hangs_until_s = 0.0
        """Until this time (s, monotonic), the meter neither reads nor sends."""
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
            if time.monotonic() < self.hangs_until_s:
                self._stop.wait(0.01)
                next_s = time.monotonic()
                continue
            is_sending = self.is_logging and not self.is_hanging
            left_s = max(0.0, next_s - time.monotonic()) if is_sending else POLL_S
            if select.select([self.end], [], [], min(POLL_S, left_s))[0]:
                pending += os.read(self.end, 256)
                while match := COMMAND.search(pending):
                    pending = pending[match.end() :]
                    self._obey(match)
                    self._remember()
                    self.on_command()
                    next_s = time.monotonic() + self._interval_s
            if self.is_logging and not self.is_hanging and time.monotonic() >= next_s:
                next_s += self._interval_s
                while self.raw:
                    os.write(self.end, self.raw.pop(0))
                power_w = self._power_w(time.monotonic())
                self.sent_w.append(round(power_w * 10) / 10)
                os.write(self.end, self.record(power_w))

    def _remember(self) -> None:
        if self._state is not None:
            written = self._state.with_suffix(".written")
            written.write_text(json.dumps([self.is_logging, self.stored_interval]))
            written.replace(self._state)

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


def main() -> None:
    watts, *words = sys.argv[1:]
    link, state = (Path(word) for word in words[:2]) if words else (None, None)
    meter = WattsUp(lambda _: float(watts), state=state)

    def pull_cable() -> None:
        if link is not None and meter.commands.count(words[2].encode()) == 2:
            link.unlink()
            os.kill(os.getpid(), signal.SIGKILL)

    if len(words) > 2:
        meter.on_command = pull_cable
    if link is not None:
        link.symlink_to(meter.path)
    print(meter.path, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()

"""The process that leads to an agent: its pipes, its messages and its end."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

READ_BYTES = 256 << 10


class AgentPipe:
    """A command whose standard input and output lead to an agent.

    Its standard error is appended to a log. Several threads may write if a lock of their own
    orders them; one thread reads.
    """

    def __init__(self, command: Sequence[str], log: Path) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        self._log_path = log
        self._log = open(log, "ab")  # noqa: SIM115 - closed with the pipe
        self._log_begin = self._log.tell()
        self._unread = bytearray()
        self._searched = 0
        self.sent_bytes = self.received_bytes = 0
        self._process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,  # so that Ctrl-C reaches only the controller
        )

    @property
    def pid(self) -> int:
        """Return the pid of the command."""
        return self._process.pid

    def write(self, data: bytes) -> None:
        """Write all of `data`. Raises OSError if the process has ended or closed its input."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(data)
            self._process.stdin.flush()
            self.sent_bytes += len(data)
        except ValueError as error:  # this side has closed it
            raise BrokenPipeError(str(error)) from error

    def read_line(self, timeout_s: float | None = None) -> bytes:
        """Return the next line with its end, or b"" after the last complete line.

        Raises TimeoutError if the line is incomplete after `timeout_s`; it is not lost.
        """
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
        while (end := self._unread.find(b"\n", self._searched)) < 0:
            self._searched = len(self._unread)
            if deadline_s is not None:
                waiting = select.poll()
                waiting.register(descriptor, select.POLLIN)
                if not waiting.poll(1000 * max(0.0, deadline_s - time.monotonic())):
                    raise TimeoutError
            piece = os.read(descriptor, READ_BYTES)
            if not piece:
                return b""
            self._unread += piece
            self.received_bytes += len(piece)
        line = bytes(self._unread[: end + 1])
        del self._unread[: end + 1]
        self._searched = 0
        return line

    def lines(self) -> Iterator[bytes]:
        """Yield all lines until the end."""
        while line := self.read_line():
            yield line

    def messages(self) -> list[str]:
        """Return the lines that this process has written to its standard error."""
        with open(self._log_path, "rb") as log:
            log.seek(self._log_begin)
            text = log.read().decode(errors="replace")
        return [line.strip() for line in text.splitlines() if line.strip()]

    def wait(self, timeout_s: float) -> int | None:
        """Return the exit code of the process; None if it runs longer than `timeout_s`."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def end_input(self) -> None:
        """Close the standard input of the process, at which an agent ends."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def close(self, patience_s: float) -> int:
        """Wait until the process has ended, or kill it after `patience_s`; return its code."""
        code = self.wait(patience_s)
        if code is None:
            self._process.kill()
            code = self._process.wait()
        self._log.close()
        return code

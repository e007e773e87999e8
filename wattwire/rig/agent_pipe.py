"""Run the process that leads to an agent: its pipes, its messages and its end.

A far host may write anything, so the bytes of a line and of the log are limited.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from wattwire.model.errors import WattwireError
from wattwire.rig.children import interruptible, kill

READ_BYTES = 256 << 10
LINE_BYTES_MAX = 64 << 20
"""Bytes of a line. The longest reply has 8 MiB of a file, in base64."""
LOG_BYTES_MAX = 4 << 20
"""Bytes of standard error that are stored. The rest is read and discarded."""
LOG_PATIENCE_S = 1.0
"""Time until the log has what a process wrote before it ended."""


class LineTooLongError(WattwireError):
    """The line of a process exceeds its limit, so that no further line can be read."""


class AgentPipe:
    """A command whose standard input and output lead to an agent.

    Its standard error is appended to a log. Several threads may write if a lock of their own
    orders them; one thread reads.
    """

    def __init__(self, command: Sequence[str], log: Path, is_far: bool = False) -> None:
        """Start a command. If it leads to another machine (`is_far`), its log is bounded.

        The agent of this machine writes to the log itself, because a pipe that breaks with the
        controller would end it before it has ended its processes.
        """
        log.parent.mkdir(parents=True, exist_ok=True)
        self._log_path = log
        self._is_far = is_far
        self._log = open(log, "ab")  # noqa: SIM115 - closed with the pipe
        self._log_begin = self._log.tell()
        interruptible()
        self._unread = bytearray()
        self._searched = 0
        self._has_ended_output = False
        self.sent_bytes = self.received_bytes = 0
        self._process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if is_far else self._log,
            start_new_session=True,  # so that Ctrl-C reaches only the controller
        )
        self._logging = threading.Thread(target=self._copy_messages, name="agent-log", daemon=True)
        if is_far:
            self._logging.start()

    def _copy_messages(self) -> None:
        """Copy standard error to the log until its end, and discard it after LOG_BYTES_MAX."""
        assert self._process.stderr is not None
        left_bytes = LOG_BYTES_MAX
        while piece := os.read(self._process.stderr.fileno(), READ_BYTES):
            with contextlib.suppress(OSError, ValueError):  # the disk is full, or the log is closed
                if left_bytes > 0:
                    self._log.write(piece[:left_bytes])
                    self._log.flush()
            left_bytes -= len(piece)

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

    def read_line(self, timeout_s: float | None = None, bytes_max: int = LINE_BYTES_MAX) -> bytes:
        """Return the next line with its end, or b"" after the last complete line.

        Raises TimeoutError if the line is incomplete after `timeout_s`, also while its bytes
        arrive; it is not lost. Raises LineTooLongError for a line of more than `bytes_max` bytes.
        """
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
        waiting = select.poll()
        waiting.register(descriptor, select.POLLIN)
        while (end := self._unread.find(b"\n", self._searched)) < 0:
            self._searched = len(self._unread)
            if self._searched > bytes_max:
                raise LineTooLongError(f"a line of more than {bytes_max:,} bytes")
            if deadline_s is not None:
                left_s = deadline_s - time.monotonic()
                if left_s < 0 or not waiting.poll(1000 * left_s):
                    raise TimeoutError
            piece = os.read(descriptor, READ_BYTES)
            if not piece:
                self._has_ended_output = True
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
        """Return the lines that this process has written to its standard error.

        There are none if the log has been removed, such as with the folder of a campaign.
        """
        # An exit closes the output a moment before the process can be waited for, and its last
        # message may still be in the other pipe.
        if self._has_ended_output or self._process.poll() is not None:
            self._await_log()
        text = ""
        with contextlib.suppress(FileNotFoundError), open(self._log_path, "rb") as log:
            log.seek(self._log_begin)
            text = log.read(LOG_BYTES_MAX).decode(errors="replace")
        return [line.strip() for line in text.splitlines() if line.strip()]

    def _await_log(self) -> None:
        if self._logging.ident is not None:
            self._logging.join(LOG_PATIENCE_S)

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
            if self._is_far:
                # A killed ssh does not end its ProxyCommand, which is in the same group. The group
                # exists, because its leader was not waited for.
                os.killpg(self._process.pid, signal.SIGKILL)
            code = kill(self._process)
        self._await_log()
        self._log.close()
        return -signal.SIGKILL if code is None else code

"""Wait for programs that this process has started. Each wait has a deadline."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from typing import Any

from wattwire.model.errors import WattwireError

START_TIMEOUT_S = 60.0
"""Time until a program prints its first line, on a busy machine."""
COMMAND_TIMEOUT_S = 60.0
"""Time of a short program, such as `ip`."""
KILLED_TIMEOUT_S = 10.0
"""Time until a killed process has ended. In the kernel, a dead disk or device can hold it."""
LINE_BYTES_MAX = 1 << 20
READ_BYTES = 64 << 10
WORDS_CHARACTERS_MAX = 2_000


def interruptible() -> None:
    """Let Ctrl-C interrupt system calls that wait.

    Polars installs a handler with SA_RESTART when it is imported. Python raises KeyboardInterrupt
    only between two system calls, and the kernel would restart the one that waits.
    """
    signal.siginterrupt(signal.SIGINT, True)


def short_command(
    argv: Sequence[str], timeout_s: float = COMMAND_TIMEOUT_S, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Execute a program and return its exit code and output as text.

    Raises WattwireError if it takes longer than `timeout_s`; it is killed then.
    """
    try:
        return subprocess.run(
            list(argv), capture_output=True, text=True, check=False, timeout=timeout_s, **options
        )
    except subprocess.TimeoutExpired:
        raise WattwireError(f"{' '.join(argv[:2])}: it did not end in {timeout_s:g} s") from None


def first_line(
    process: subprocess.Popen[str],
    timeout_s: float = START_TIMEOUT_S,
    bytes_max: int = LINE_BYTES_MAX,
) -> str:
    """Return the next line of a program, without its end. Further output with it is discarded.

    Returns "" if its output ends first. Raises TimeoutError if the line is incomplete after
    `timeout_s`, and WattwireError if it has more than `bytes_max` bytes.
    """
    interruptible()
    assert process.stdout is not None
    descriptor, deadline_s = process.stdout.fileno(), time.monotonic() + timeout_s
    line = bytearray()
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    while b"\n" not in line[-READ_BYTES:]:
        if len(line) > bytes_max:
            raise WattwireError(f"found a line of more than {bytes_max:,} bytes")
        if not waiting.poll(1000 * max(0.0, deadline_s - time.monotonic())):
            raise TimeoutError
        piece = os.read(descriptor, READ_BYTES)
        if not piece:
            return ""
        line += piece
    return bytes(line).partition(b"\n")[0].decode(errors="replace")


def last_words(process: subprocess.Popen[str], patience_s: float = 1.0) -> tuple[int | None, str]:
    """End a program and return its exit code and its last lines of standard error.

    A program that has not ended after `patience_s` is killed. The code is None if it still runs.
    """
    text = ""
    for wait_s in (patience_s, KILLED_TIMEOUT_S):
        try:
            _, text = process.communicate(timeout=wait_s)
            break
        except subprocess.TimeoutExpired:
            process.kill()
        except ValueError:  # a pipe is closed
            break
    return process.poll(), (text or "").strip()[-WORDS_CHARACTERS_MAX:]


def kill(process: subprocess.Popen[Any]) -> int | None:
    """Kill a program and return its exit code; None if the kernel does not end it in time."""
    process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.wait(KILLED_TIMEOUT_S)
    return None

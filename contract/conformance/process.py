"""Processes of nodes, with separate sessions and bounded waits. They are killed at the end."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .cell import CellUnderTest
from .host import HERE, Place
from .leftovers.shared_memory import SharedMemory
from .leftovers.watchdog import WATCHDOG

TIMES = ("begin_ns", "end_ns")
"""Fields of lines that are times of the clock of the node's host; other fields are durations."""
KEYWORDS = ("LISTENING", "READY", "COUNTED", "SENT", "DONE", "ERROR")
OBSERVE_MS = 100
"""Period at which the files of a node are recorded until it prints a line."""
LINES_ON_THREE = ("sh", "-c", 'exec "$@" 3>&1 1>&2', "sh")
"""Prefix of a node's command that opens descriptor 3 for its lines (C-05)."""


@dataclass(frozen=True)
class Line:
    """One line of a node; `fields` is None if the line is not `KEYWORD {…}`."""

    t_ns: int
    text: str
    keyword: str
    fields: dict[str, Any] | None


def parse_line(raw: bytes, t_ns: int) -> Line:
    """Parse one line that arrived at `t_ns`."""
    text = raw.decode("utf-8", "backslashreplace").rstrip("\n")
    keyword, _, rest = text.partition(" ")
    fields = None
    if keyword in KEYWORDS and raw.endswith(b"\n"):
        with contextlib.suppress(ValueError):
            fields = json.loads(rest)
    return Line(t_ns, text, keyword, fields if isinstance(fields, dict) else None)


class NodeProcess:
    """A running node. Times are in ns of CLOCK_MONOTONIC; time limits are in seconds."""

    def __init__(
        self,
        cell: CellUnderTest,
        spec: dict[str, Any],
        folder: Path,
        label: str,
        extra: Sequence[str] = (),
        place: Place = HERE,
        shared_memory: SharedMemory | None = None,
    ) -> None:
        """Start a node.

        Its files in /dev/shm are recorded in `shared_memory`, or are removed after its kill.
        """
        self._is_alone = shared_memory is None
        # Hosts in namespaces have a /dev/shm of their own, which ends with them.
        self._shared_memory = None if place.enter else shared_memory or SharedMemory()
        self.cell, self.spec, self.label, self.folder = cell, spec, label, folder
        self.place = place
        self.out = folder / "out"
        self.out.mkdir(parents=True)
        spec_path = folder / "spec.json"
        spec_path.write_text(json.dumps(spec))
        self.lines: list[Line] = []
        self.exit_ns: int | None = None
        self._ended = False
        self._changed = threading.Condition()
        env = {name: value for name, value in os.environ.items() if "WATTWIRE" not in name}
        self.spawn_ns = time.monotonic_ns()
        with open(folder / "stderr", "wb") as stderr:
            self._process = subprocess.Popen(
                [*place.enter, *LINES_ON_THREE, *cell.argv, "--spec", str(spec_path),
                 "--out", str(self.out), *extra],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr,
                env={**env, **cell.env}, cwd=folder, start_new_session=True, bufsize=0,
            )  # fmt: skip
        WATCHDOG.node_started(self.pid)
        threading.Thread(target=self._read, daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def _read(self) -> None:
        """Append lines to `self.lines` until the node's output ends. Runs in a thread."""
        assert self._process.stdout is not None
        self._observe_until_line()
        with open(self._process.stdout.fileno(), "rb", closefd=False) as stdout:
            for raw in stdout:
                line = self._converted(parse_line(raw, time.monotonic_ns()))
                if line.keyword in KEYWORDS:  # the node may crash after it, and leave its files
                    self.note_shared_memory()
                with self._changed:
                    self.lines.append(line)
                    self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _observe_until_line(self) -> None:
        """Record the files in /dev/shm of a node that may end before it prints its first line."""
        waiting = select.poll()
        assert self._process.stdout is not None
        waiting.register(self._process.stdout)
        while self._shared_memory is not None and not waiting.poll(OBSERVE_MS):
            self.note_shared_memory()

    def _converted(self, line: Line) -> Line:
        """Return a line of the node with the times of its fields on the clock of this process."""
        times = {
            key: self.place.controller_ns(value)
            for key, value in (line.fields or {}).items()
            if key in TIMES and type(value) is int
        }
        return replace(line, fields={**(line.fields or {}), **times}) if times else line

    def line(self, keyword: str) -> Line | None:
        """Return the first well-formed line with this keyword, or None."""
        for line in self.lines:
            if line.keyword == keyword and line.fields is not None:
                return line
        return None

    def fields(self, keyword: str) -> dict[str, Any]:
        """Return the fields of the first well-formed line with this keyword, or {}."""
        line = self.line(keyword)
        return {} if line is None or line.fields is None else line.fields

    def wait_line(self, keyword: str, timeout_s: float) -> Line | None:
        """Wait for a line and return it, or None at the timeout or the end of the output."""

        def arrived_or_ended() -> bool:
            return self._ended or self.line(keyword) is not None

        with self._changed:
            self._changed.wait_for(arrived_or_ended, timeout_s)
            return self.line(keyword)

    def others_with_lines(self) -> list[str]:
        """Return the commands of other processes that have the descriptor of the lines (C-05)."""
        assert self._process.stdout is not None
        pipe = f"pipe:[{os.fstat(self._process.stdout.fileno()).st_ino}]"
        commands: dict[str, str] = {}
        for link in Path("/proc").glob("[0-9]*/fd/*"):
            pid = link.parts[2]
            if int(pid) in (self.pid, os.getpid()) or pid in commands:
                continue
            with contextlib.suppress(OSError):  # the process ended, or belongs to another user
                if os.readlink(link) == pipe:
                    commands[pid] = (link.parents[1] / "cmdline").read_text().replace("\0", " ")
        return sorted(commands.values())

    def write(self, text: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError, ValueError):
            self._process.stdin.write(text.encode())

    def go(self, start_ns: int) -> None:
        """Send GO; `start_ns` is a time on the clock of this process."""
        self.write(f"GO {start_ns + self.place.clock_ahead_ns}\n")

    def close_input(self) -> None:
        self.note_shared_memory()
        assert self._process.stdin is not None
        self._process.stdin.close()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all processes of the node's session."""
        self.note_shared_memory()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def note_shared_memory(self) -> None:
        """Record the files in /dev/shm that the node uses now."""
        if self._shared_memory is not None and self.running:
            WATCHDOG.files_used(self._shared_memory.observe(self.pid))

    def wait_exit(self, timeout_s: float) -> int | None:
        """Return the exit code (negative: a signal's number), or None if the node still runs."""
        try:
            code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        if self.exit_ns is None:
            self.exit_ns = time.monotonic_ns()
        with self._changed:
            self._changed.wait_for(lambda: self._ended, 2.0)
        return code

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """Kill all processes of the node's session."""
        self.signal(signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
            WATCHDOG.node_ended(self.pid)
        if self._is_alone and self._shared_memory is not None:
            self._shared_memory.remove_unused()
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def last_output(self) -> str:
        """Return the node's ERROR line, or the end of its standard error."""
        error = self.line("ERROR")
        if error is not None:
            return error.text
        text = (self.folder / "stderr").read_bytes()[-600:].decode("utf-8", "replace").strip()
        return f"standard error ends with: {text!r}" if text else "the node printed no error"

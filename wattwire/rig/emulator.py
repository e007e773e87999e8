"""Run the link emulator: on the wire between hosts, or in logical time."""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wattwire.model.errors import WattwireError
from wattwire.model.links.profile import DIRECTIONS, Course, Direction, Link
from wattwire.rig.children import START_TIMEOUT_S, first_line, kill, last_words
from wattwire.rig.programs import find_program

if TYPE_CHECKING:
    import numpy as np

NS_PER_S = 1e9
NS_PER_MS = 1e6
END_TIMEOUT_S = 30.0
LAW_TIMEOUT_S = 600.0
"""Time for the law of 10⁷ frames, which takes seconds."""
CPU_CLOCK = 2
"""CPUCLOCK_SCHED of Linux: the CPU time of a process, as the scheduler counts it. The clock's
number contains the inverted pid in the bits above, as clock_getcpuclockid(3) returns it."""
PREFIX_BITS = 24
MTU_BYTES = 1500


class EmulatorError(WattwireError):
    """The emulator failed; the message contains its last words."""


@dataclass(frozen=True)
class Tap:
    """A device to create in the network namespace of the process `pid`."""

    pid: int
    device: str
    address: str
    prefix_bits: int = PREFIX_BITS
    mtu_bytes: int = MTU_BYTES


@dataclass(frozen=True)
class Port:
    """A host at the link. Frames of near hosts pass the link; a far host is at the switch."""

    name: str
    near: bool
    tap: Tap | None = None


def find_emulator() -> Path:
    """Return the emulator's program. Raises MissingError if it is not built."""
    return find_program("wattwire-link", "WATTWIRE_LINK", "emulator")


def profile_document(
    link: Link, seed: int, ports: Sequence[Port], capture: Path | None = None
) -> dict[str, Any]:
    """Return the emulator's profile: integer times in ns, rates in bit/s.

    `capture` is the file that keeps the frames from the hosts, as pcap.
    """
    directions = {name: _course_document(link.course(name)) for name in DIRECTIONS}
    return {
        "seed": seed,
        "half_duplex": link.half_duplex,
        **directions,
        "ports": [asdict(port) for port in ports],
        "capture": None if capture is None else str(capture),
    }


def _course_document(course: Course) -> dict[str, Any]:
    segments = [
        {"at_ns": round(segment.at_s * NS_PER_S), **_direction_document(segment.direction)}
        for segment in course.segments
    ]
    return {"segments": segments, "trace_ms": list(course.opportunities_ms)}


def _direction_document(direction: Direction) -> dict[str, Any]:
    return {
        "delay_ns": round(direction.delay_ms * NS_PER_MS),
        "jitter_ns": round(direction.jitter_ms * NS_PER_MS),
        "jitter_shape": direction.jitter_shape,
        "reorders": direction.reorders,
        "loss": direction.loss,
        "bursts": None if direction.bursts is None else asdict(direction.bursts),
        "rate_bit_s": direction.rate_bit_s,
        "queue_bytes": direction.queue_bytes,
        "overhead_bytes": direction.overhead_bytes,
    }


def apply_law(link: Link, seed: int, ports: Sequence[Port], frames: np.ndarray) -> np.ndarray:
    """Return the log of frames in logical time, in the order of the frames.

    `frames` has the type FRAME, and its times do not fall. Each frame has one receiver, so the log
    has one record for each, whose mark is the frame's position.
    """
    import numpy as np  # noqa: PLC0415 - slow to import

    from wattwire.rig.emulator_log import FRAME, read_log  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="wattwire-link-") as name:
        profile, log = Path(name) / "profile.json", Path(name) / "frames.log"
        profile.write_text(json.dumps(profile_document(link, seed, ports)), encoding="utf-8")
        done = subprocess.run(
            [str(find_emulator()), "law", str(profile), str(log)],
            input=np.ascontiguousarray(frames, FRAME).view(np.uint8).data,
            capture_output=True,
            check=False,
            timeout=LAW_TIMEOUT_S,
        )
        if done.returncode:
            raise EmulatorError(f"emulator: {done.stderr.decode(errors='replace').strip()}")
        records = read_log(log)
    return records[np.argsort(records["mark"], kind="stable")]


class Emulator:
    """A running emulator. Its devices vanish with it, and it ends when this object is closed.

    It also ends if this process dies, because its standard input then closes.
    """

    def __init__(
        self, link: Link, seed: int, ports: Sequence[Port], folder: Path, captures: bool = False
    ) -> None:
        self.log = folder / "frames.log"
        self.capture = folder / "frames.pcap" if captures else None
        profile = folder / "link-profile.json"
        document = profile_document(link, seed, ports, self.capture)
        profile.write_text(json.dumps(document), encoding="utf-8")
        self._process = subprocess.Popen(
            [str(find_emulator()), "run", str(profile), str(self.log)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,  # so that Ctrl-C reaches only the controller
        )  # fmt: skip
        try:
            line = first_line(self._process)
        except BaseException as error:
            self.kill()
            if not isinstance(error, TimeoutError):
                raise
            text = f"emulator: it was not ready within {START_TIMEOUT_S:g} s"
            raise EmulatorError(text) from None
        if not line:
            raise EmulatorError(self._last_words())
        self.scheduler: str = json.loads(line)["scheduler"]

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def cpu_ns(self) -> int | None:
        """Return the CPU time of all its threads; None if it has ended."""
        with contextlib.suppress(OSError):
            return time.clock_gettime_ns((~self.pid << 3) | CPU_CLOCK)
        return None

    def start(self, start_ns: int) -> None:
        """Begin the window at a time of CLOCK_MONOTONIC, to which changes refer."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"start {start_ns}\n")
        self._process.stdin.flush()

    def close(self) -> None:
        """End the emulator and wait until its log is complete. Raises EmulatorError."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            code = self._process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise EmulatorError(
                f"emulator: it did not end within {END_TIMEOUT_S:g} s of the end of its input"
            ) from None
        if code:
            raise EmulatorError(self._last_words())

    def kill(self) -> None:
        """End the emulator without its log."""
        kill(self._process)

    def _last_words(self) -> str:
        code, words = last_words(self._process)
        return f"emulator: it ended with code {code}: {words or 'no message'}"

"""Check the emulator on the wire: between two network namespaces of this machine."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wattwire.links import probe
from wattwire.links.findings import Finding, exact
from wattwire.links.loads import apply_between_ends
from wattwire.model.errors import WattwireError
from wattwire.model.links.profile import DIRECTIONS, Link
from wattwire.rig.emulator import Emulator, Port, Tap
from wattwire.rig.emulator_log import FRAME, LOST, NO_PORT, Fate, read_log
from wattwire.rig.namespaces import Script

SEEDS = 3
REPEATS_MAX = 2
FRAMES = 4000
GAP_NS = 1_000_000
PAYLOAD_BYTES = 500
ADDRESSES = ("10.99.0.1", "10.99.0.2")
HARDWARE = ("025757000000", "025757000001")
"""Addresses that the emulator gives to the devices of its ports."""
DEVICE = "wwlink0"
MARK = 0x5757_4C4B << 32
"""Upper half of the marks; the lower half has the sender in its highest bit, then a number."""
SENDER_BIT = 1 << 31
LEAD_NS = 300_000_000
DRAIN_S = 60.0
POLL_S = 0.3
STALL_NS = 300_000
LATE_MEAN_MS_MAX, LATE_P99_MS_MAX = 0.3, 1.0
CALM_SHARE_MIN = 0.5
"""Share of frames outside stalls below which the lateness of a run is not judged."""


@dataclass(frozen=True)
class WireRun:
    """What hosts, log and watchers observed."""

    records: np.ndarray
    """Records of the probes' frames."""
    received: tuple[np.ndarray, np.ndarray]
    """Marks that each host received, with repetitions."""
    stalls_ns: np.ndarray
    """Begin and end of each stall (shape [stalls, 2])."""
    scheduler: str
    off_plan: int = 0
    """Frames for which the law in logical time plans something else than the log."""

    @property
    def lateness_ms(self) -> np.ndarray:
        """Return out − planned of delivered frames that no stall touched, in ms."""
        delivered = self.records[self.records["fate"] == Fate.DELIVERED]
        begin, end = delivered["planned_ns"].astype(float), delivered["out_ns"].astype(float)
        is_calm = np.ones(len(delivered), bool)
        for from_ns, to_ns in self.stalls_ns:
            is_calm &= (end < from_ns) | (begin > to_ns)
        lateness: np.ndarray = (end - begin)[is_calm] / 1e6
        return lateness


def sent_marks(host: int, count: int = FRAMES) -> np.ndarray:
    """Return the marks of the frames that a host sends."""
    return np.arange(count, dtype=np.uint64) + np.uint64(MARK + host * SENDER_BIT)


def exchange(link: Link, seed: int, count: int = FRAMES) -> WireRun:
    """Send `count` frames in both directions at the same time."""
    script = Path(probe.__file__)
    with (
        tempfile.TemporaryDirectory(prefix="wattwire-link-") as name,
        contextlib.ExitStack() as cleanup,
    ):
        hosts = [Script(script, isolated=True) for _ in ADDRESSES]
        watchers = [Script(script, isolated=False) for _ in os.sched_getaffinity(0)]
        for program in (*hosts, *watchers):
            cleanup.callback(program.kill)
        ports = [
            Port(f"host{at}", at == 0, Tap(host.pid, DEVICE, ADDRESSES[at]))
            for at, host in enumerate(hosts)
        ]
        emulator = Emulator(link, seed, ports, Path(name))
        cleanup.callback(emulator.kill)
        for cpu, watcher in zip(sorted(os.sched_getaffinity(0)), watchers, strict=True):
            watcher.send(json.dumps({"cpu": cpu, "stall_ns": STALL_NS}))
        start_ns = time.monotonic_ns() + LEAD_NS
        emulator.start(start_ns)
        for at, host in enumerate(hosts):
            host.send(json.dumps(_plan(at, start_ns, count)))
        _wait_for_frames(emulator.log, 2 * count)
        results = [json.loads(host.result()) for host in hosts]  # waits: END_TIMEOUT_S of Script
        received = [np.array(marks, np.uint64) for marks in results]
        stalls = []
        for watcher in watchers:
            stalls += json.loads(watcher.result())  # waits: END_TIMEOUT_S of Script
        emulator.close()
        records = read_log(emulator.log)
    return WireRun(
        _probes_only(records),
        (received[0], received[1]),
        np.array(stalls, float).reshape(-1, 2),
        emulator.scheduler,
        frames_off_plan(link, seed, records),
    )


def frames_off_plan(link: Link, seed: int, records: np.ndarray) -> int:
    """Apply the law to the arrivals of a log; return the number of frames with another plan.

    The result is 0 for links with a trace or changes, whose law depends on the start of the window.
    """
    courses = [link.course(name) for name in DIRECTIONS]
    if any(course.opportunities_ms or len(course.segments) > 1 for course in courses):
        return 0
    arrived = records[(records["target"] != NO_PORT)]
    arrived = arrived[np.argsort(arrived["in_ns"], kind="stable")]
    frames = np.zeros(len(arrived), FRAME)
    frames["at_ns"] = arrived["in_ns"]
    for field in ("size_bytes", "source", "target"):
        frames[field] = arrived[field]
    replayed = apply_between_ends(link, seed, frames)
    is_dropped = np.isin(arrived["fate"], (Fate.QUEUE_FULL, *LOST))
    same_fate = np.where(is_dropped, arrived["fate"], Fate.DELIVERED) == replayed["fate"]
    same = same_fate & (arrived["planned_ns"] == replayed["planned_ns"])
    return int(np.count_nonzero(~same))


def _plan(host: int, start_ns: int, count: int) -> dict[str, object]:
    return {
        "address": ADDRESSES[host], "peer": ADDRESSES[1 - host],
        "peer_hardware": HARDWARE[1 - host], "device": DEVICE, "count": count, "gap_ns": GAP_NS,
        "payload_bytes": PAYLOAD_BYTES, "first_mark": int(sent_marks(host)[0]),
        "start_ns": start_ns,
    }  # fmt: skip


def _probes_only(records: np.ndarray) -> np.ndarray:
    """Return the records without frames of the kernel, such as those of IPv6."""
    chosen: np.ndarray = records[records["mark"] >> np.uint64(32) == np.uint64(MARK >> 32)]
    return chosen


def _wait_for_frames(log: Path, count: int) -> None:
    """Wait until the fate of `count` frames is in the log. Raises WattwireError after DRAIN_S."""
    deadline = time.monotonic() + count * GAP_NS / 1e9 + DRAIN_S
    while len(_probes_only(read_log(log))) < count:
        if time.monotonic() > deadline:
            logged = len(_probes_only(read_log(log)))
            raise WattwireError(f"the emulator logged {logged} of {count} frames")
        time.sleep(POLL_S)
    time.sleep(POLL_S)  # the receivers' time to read the last frames


@dataclass(frozen=True)
class WireResult:
    """The findings of one link and seed, with the last run."""

    place: str
    repeats: int
    run: WireRun
    findings: tuple[Finding, ...]

    def words(self) -> str:
        """Return the run in one line."""
        fates = np.bincount(self.run.records["fate"], minlength=len(Fate))
        dropped = int(fates[Fate.QUEUE_FULL])
        lost = int(fates[Fate.RANDOM_LOSS] + fates[Fate.BURST_LOSS])
        late_ms = self.run.lateness_ms
        mean, p99 = late_values_ms(late_ms)
        return (
            f"{self.place}: {int(fates[Fate.DELIVERED])} frames delivered, {dropped} dropped by "
            f"the queue, {lost} lost; lateness "
            f"{mean:.3f} ms mean, {p99:.3f} ms p99 outside {len(self.run.stalls_ns)} "
            f"stalls; {self.run.scheduler}, {self.repeats} repeats"
        )


def check_wire(link: Link, seeds: Sequence[int] = range(1, SEEDS + 1)) -> Iterator[WireResult]:
    """Compare log and hosts for each seed. A run that is late is repeated, at most twice.

    A frame that was lost without a plan is a failure in every repetition.
    """
    for seed in seeds:
        place = f"{link.name} (seed {seed})"
        losses: list[Finding] = []
        repeats = -1
        is_late = True
        while is_late and repeats < REPEATS_MAX:
            repeats += 1
            run = exchange(link, seed)
            losses += loss_findings(run, place)
            lateness = list(lateness_findings(run, place))
            is_late = not all(finding.passed for finding in lateness)
        yield WireResult(place, repeats, run, (*losses, *lateness))


def loss_findings(run: WireRun, place: str, count: int = FRAMES) -> Iterator[Finding]:
    """Test that the hosts sent and received exactly the planned frames."""
    yield exact(place, "frames whose plan is not that of the law in logical time", 0, run.off_plan)
    for sender in range(2):
        sent, records = sent_marks(sender, count), run.records[run.records["source"] == sender]
        where = f"{place}: from host{sender}"
        logged = np.sort(records["mark"])
        yield exact(where, "frames in the log", len(sent), len(logged))
        yield exact(where, "the log has each sent frame once", True, np.array_equal(logged, sent))
        planned = np.sort(records["mark"][records["fate"] == Fate.DELIVERED])
        received = np.sort(run.received[1 - sender])
        wrong = np.setxor1d(planned, received)
        yield exact(where, "frames whose loss or delivery was not planned", 0, len(wrong))
        yield exact(where, "frames received twice", 0, len(received) - len(np.unique(received)))
        not_written = int(np.count_nonzero(records["fate"] == Fate.NOT_WRITTEN))
        yield exact(where, "frames not written", 0, not_written)


def lateness_findings(run: WireRun, place: str) -> Iterator[Finding]:
    """Test the lateness of frames outside stalls."""
    late_ms = run.lateness_ms
    delivered = int(np.count_nonzero(run.records["fate"] == Fate.DELIVERED))
    share = len(late_ms) / max(1, delivered)
    yield Finding(
        place, "frames outside stalls", f"at least {CALM_SHARE_MIN:.0%}", f"{share:.1%}",
        share >= CALM_SHARE_MIN,
    )  # fmt: skip
    limits = (("mean", LATE_MEAN_MS_MAX), ("p99", LATE_P99_MS_MAX))
    for (name, limit), value in zip(limits, late_values_ms(late_ms), strict=True):
        yield Finding(
            place, f"{name} lateness outside stalls", f"at most {limit:g} ms", f"{value:.3f} ms",
            value <= limit,
        )  # fmt: skip


def late_values_ms(late_ms: np.ndarray) -> tuple[float, float]:
    """Return mean and 99th percentile, which are infinite without frames."""
    if not len(late_ms):
        return np.inf, np.inf
    return float(late_ms.mean()), float(np.quantile(late_ms, 0.99))

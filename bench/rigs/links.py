"""Measure the cost of the link emulator: round trips, throughput, CPU, memory and logical time.

The peers are plain veth devices, and wirefilter of VDE between two vde_switch with TAP devices. The
three networks join the same two namespaces, one after another in each round.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import stats

from bench import own_time
from bench.nodes import CELLS, peak_mib
from bench.pairs import BROKEN, lose_pair
from wattwire.catalog.links import load_link
from wattwire.hosts import Hosts
from wattwire.hosts.namespaces import programs
from wattwire.model.errors import MissingError, WattwireError
from wattwire.model.rig import read_rig
from wattwire.rig.emulator import Port, find_emulator, profile_document
from wattwire.rig.emulator_log import FRAME, HEADER_BYTES, RECORD

ENDS = Path(__file__).resolve().parent.parent / "bare" / "link_ends.py"
RIG = """
{"hosts": {"near": {"kind": "netns"}, "far": {"kind": "netns"}},
 "networks": {"veth": {}, "emulator": {"link": "no-delay", "near": ["near"]}}}
"""
VETH, EMULATOR, WIREFILTER = "veth", "emulator", "wirefilter"
SIDES = (VETH, EMULATOR, WIREFILTER)
WARM, CALLS, BYTES = 200, 2000, 64
STREAM_S = 2.0
START_S, HANG_S = 20.0, 60.0
ADDED_US_MAX, WIREFILTER_SHARE_MAX = 40.0, 1 / 3
LAW_FRAMES, LAW_RUNS, FRAMES_PER_S_MIN = 4_000_000, 5, 2e6
MEMORY_MIB_MAX = 64.0
SSH_MS_MAX = 100.0
SSH_RUNS = 6
CONFIDENCE = 0.95
WIREFILTER_ADDRESSES = ("10.79.9.1", "10.79.9.2")
VDE = {"vde_switch": "vde-switch", "wirefilter": "vde-wirefilter"}


class Round(NamedTuple):
    """A measurement of one network."""

    round_trip_us: float
    stream_bytes_s: float
    cpu_us_per_frame: float
    """CPU time of the emulator per frame of the ping-pong; NaN for the others."""
    stream_cpu_share: float
    memory_mib: float


# -- verdicts --------------------------------------------------------------------------------------


def verdict_of(values: Sequence[float], bound: float) -> tuple[float, float, str]:
    """Return one-sided 95 % limits of the median, and whether it is at most `bound`.

    Passed: the upper limit meets the bound. Failed: the lower limit does not. Otherwise undecided.
    The limits are order statistics (binomial; Conover, Practical Nonparametric Statistics, 3.2),
    because load of a shared machine makes single rounds much slower. They are infinite for fewer
    than five values.
    """
    ordered = np.sort(np.asarray(values, float))
    rank = int(stats.binom.ppf(1 - CONFIDENCE, ordered.size, 0.5))
    if rank and stats.binom.cdf(rank - 1, ordered.size, 0.5) > 1 - CONFIDENCE:
        rank -= 1
    low, high = (ordered[rank - 1], ordered[-rank]) if rank else (-math.inf, math.inf)
    return low, high, "passed" if high <= bound else "failed" if low > bound else "undecided"


def line(name: str, values: Sequence[float], unit: str, bound: float) -> str:
    """Return a row of the table of verdicts."""
    low, high, verdict = verdict_of(values, bound)
    limits = f"{low:.2f} … {high:.2f}"
    return f"| {name} | {np.median(values):.2f} {unit} | {limits} | ≤ {bound:g} | {verdict} |"


# -- networks --------------------------------------------------------------------------------------


def missing_vde() -> str:
    """Return why wirefilter cannot be measured, or "" if it can."""
    lacks = [package for program, package in VDE.items() if shutil.which(program) is None]
    if lacks:
        return f"{' and '.join(lacks)} not installed (Debian: apt install {' '.join(lacks)})"
    return ""


def inside(pid: int, *command: str) -> list[str]:
    """Return a command in the network namespace of a process."""
    return [programs()["nsenter"], f"--net=/proc/{pid}/ns/net", "--", *command]


@contextlib.contextmanager
def wirefilter(pids: Sequence[int], folder: Path) -> Iterator[tuple[str, ...]]:
    """Join two namespaces by switch, wirefilter and switch; yield the addresses."""
    with contextlib.ExitStack() as running:
        sockets = []
        for number, pid in enumerate(pids):
            sockets.append(str(folder / f"vde{number}"))
            start(running, inside(pid, "vde_switch", "-tap", "wf0", "-sock", sockets[-1], "-x"))
            wait_for(Path(sockets[-1]) / "ctl")
            address = f"{WIREFILTER_ADDRESSES[number]}/24"
            for words in (f"addr add {address} dev wf0", "link set wf0 up"):
                subprocess.run(inside(pid, programs()["ip"], *words.split()), check=True)
        start(running, ["wirefilter", "-v", ":".join(sockets)])
        yield WIREFILTER_ADDRESSES


def start(running: contextlib.ExitStack, command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a program that ends with the context. Its input stays open, because VDE reads it."""
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )

    def end() -> None:
        process.terminate()
        process.communicate()

    running.callback(end)
    return process


def wait_for(path: Path) -> None:
    deadline_s = time.monotonic() + START_S
    while not path.exists():
        if time.monotonic() > deadline_s:
            raise RuntimeError(f"no {path} after {START_S:g} s")
        time.sleep(0.01)


def measure(hosts: Hosts, side: str, folder: Path) -> Round:
    """Measure one network between the two hosts."""
    pids = [host.pid for host in hosts.by_name.values()]
    with contextlib.ExitStack() as running:
        emulator = None
        if side == WIREFILTER:
            addresses = running.enter_context(wirefilter(pids, folder))
        else:
            network = running.enter_context(hosts.network(side, folder, 1))
            addresses, emulator = tuple(network.addresses.values()), network.emulator_pid
        server = running.enter_context(serving(pids[1], addresses[1]))
        reach(pids[0], addresses[1], server)
        before = cpu_s(emulator)
        counts = [str(number) for number in (WARM, CALLS, BYTES)]
        round_trip_ns = end_value(pids[0], "ping", addresses[1], *counts)
        between = cpu_s(emulator)
        bytes_s = end_value(pids[0], "stream", addresses[1], str(STREAM_S))
        after = cpu_s(emulator)
        per_frame_us = 1e6 * (between - before) / (2 * (WARM + CALLS))
        return Round(
            round_trip_ns / 1e3, bytes_s, per_frame_us, (after - between) / STREAM_S,
            memory_mib(emulator),
        )  # fmt: skip


@contextlib.contextmanager
def serving(pid: int, address: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        inside(pid, sys.executable, str(ENDS), "serve", address),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as server:  # fmt: skip
        try:
            assert server.stdout is not None
            if server.stdout.readline() != "ready\n":
                raise RuntimeError(f"no server at {address}")
            yield server
        finally:
            server.terminate()


def reach(pid: int, address: str, server: subprocess.Popen[str]) -> None:
    """Wait until a new network carries frames: switches need a moment to connect."""
    deadline_s = time.monotonic() + START_S
    while True:
        try:
            end_value(pid, "ping", address, "0", "1", str(BYTES))
            return
        except subprocess.CalledProcessError:
            if time.monotonic() > deadline_s or server.poll() is not None:
                raise RuntimeError(f"nothing reaches {address}") from None


def end_value(pid: int, *arguments: str) -> float:
    """Return the number that an end of the link prints."""
    done = subprocess.run(
        inside(pid, sys.executable, str(ENDS), *arguments),
        capture_output=True, text=True, check=True, timeout=HANG_S,
    )  # fmt: skip
    return float(done.stdout)


def cpu_s(pid: int | None) -> float:
    """Return the CPU time of a process; NaN without one."""
    if pid is None:
        return math.nan
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mib(pid: int | None) -> float:
    """Return the largest resident memory of a process (MiB); NaN without one."""
    return math.nan if pid is None else peak_mib(pid)


def rounds(pairs: int) -> dict[str, list[Round]]:
    """Return the measurements of each network, whose order rotates and reverses."""
    sides = SIDES
    if reason := missing_vde():
        print(f"  wirefilter: skipped: {reason}", flush=True)
        sides = SIDES[:2]
    results: dict[str, list[Round]] = {side: [] for side in sides}
    with tempfile.TemporaryDirectory(prefix="wattwire-bench-") as name:
        folder = Path(name)
        with Hosts(read_rig(json.loads(RIG), "bench"), folder / "state") as hosts:
            for number in range(pairs):
                measured = {}
                try:
                    for side in order(sides, number):
                        place = folder / f"{number}-{side}"
                        place.mkdir()
                        measured[side] = measure(hosts, side, place)
                except (*BROKEN, WattwireError) as error:
                    lose_pair("links", number, pairs, error)
                    continue
                for side, values in measured.items():
                    results[side].append(values)
    return results


def order(sides: Sequence[str], number: int) -> list[str]:
    """Return the sides in the order of a round: rotated, and reversed in every second one."""
    shift = number // 2 % len(sides)
    rotated = [*sides[shift:], *sides[:shift]]
    return rotated[::-1] if number % 2 else rotated


# -- logical time and ssh --------------------------------------------------------------------------


def law_frames_per_s() -> float:
    """Return the rate at which the law of the planted link processes frames, with its log."""
    link = load_link(CELLS / "links" / "planted")
    frames = np.zeros(LAW_FRAMES, FRAME)
    frames["at_ns"] = np.arange(LAW_FRAMES, dtype=np.uint64) * np.uint64(1_000_000)
    frames["size_bytes"], frames["target"] = 1042, 1
    with tempfile.TemporaryDirectory(prefix="wattwire-bench-") as name:
        profile, given, log = (Path(name, part) for part in ("profile", "frames", "log"))
        document = profile_document(link, 1, [Port("near", True), Port("far", False)])
        profile.write_text(json.dumps(document), encoding="utf-8")
        frames.tofile(given)
        with given.open("rb") as source:
            begin_s = time.monotonic()
            subprocess.run(
                [str(find_emulator()), "law", str(profile), str(log)], stdin=source, check=True
            )
            duration_s = time.monotonic() - begin_s
        records = (log.stat().st_size - HEADER_BYTES) // RECORD.itemsize
        if records != LAW_FRAMES:
            raise RuntimeError(f"law: found {records} records; expected {LAW_FRAMES}")
    return LAW_FRAMES / duration_s


@contextlib.contextmanager
def ssh_rig(folder: Path) -> Iterator[Path]:
    """Yield a rig of two hosts with ssh servers. Raises MissingError if there can be none."""
    rig = folder / "rig.toml"
    with subprocess.Popen(
        [sys.executable, "-m", "tools.sshd_rig", "2", str(rig)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdin and process.stdout and process.stderr
        if process.stdout.readline() != "ready\n":
            raise MissingError(process.stderr.read().strip())
        yield rig
        process.stdin.close()


def ssh_added_ms(pairs: int) -> list[float]:
    """Return, per pair of campaigns, the median own time of a run over ssh minus that here.

    The first run of each campaign is omitted: it opens connections and fills caches.
    """
    deployment = own_time.Deployment("udp/cpp, topic, 2 nodes", own_time.UDP_TOPIC, 0.0)
    added_ms = []
    with tempfile.TemporaryDirectory(prefix="wattwire-bench-") as name, ssh_rig(Path(name)) as rig:
        own_time.seconds_per_run(deployment, 1, rig)  # copies the agent
        for number in range(pairs):
            medians: dict[bool, float] = {}
            try:
                for is_far in (number % 2 == 0, number % 2 == 1):
                    own_s = own_time.seconds_per_run(deployment, SSH_RUNS, rig if is_far else None)
                    medians[is_far] = float(np.median(own_s[1:]))
            except BROKEN as error:
                lose_pair("own time over ssh", number, pairs, error)
                continue
            added_ms.append(1e3 * (medians[True] - medians[False]))
    return added_ms


# -- output ----------------------------------------------------------------------------------------


def report(pairs: int) -> None:
    """Measure and print all parts."""
    measured = rounds(pairs)
    print(f"\n## Links: ping-pong over UDP, {BYTES} B, and a stream over TCP, {pairs} rounds\n")
    print(networks_table(measured))
    print("\n| what | median | 95 % limits of the median, one-sided | promised | verdict |")
    print("|---|---|---|---|---|")
    for row in added_rows(measured):
        print(row)
    memory = [values.memory_mib for values in measured[EMULATOR]]
    if len(memory) > 1:
        print(line("memory of the emulator", memory, "MiB", MEMORY_MIB_MAX))
    law = [1e6 / law_frames_per_s() for _ in range(LAW_RUNS)]
    print(line("law in logical time, per frame", law, "µs", 1e6 / FRAMES_PER_S_MIN), flush=True)
    try:
        added_ms = ssh_added_ms(pairs)
    except MissingError as error:
        print(f"\nown time over ssh: skipped: {error}")
        return
    if len(added_ms) > 1:
        print(line("own time of a run over ssh, above local", added_ms, "ms", SSH_MS_MAX))


def networks_table(measured: Mapping[str, Sequence[Round]]) -> str:
    """Return the medians of each network over its rounds."""
    lines = [
        "| network | round trip, µs | TCP, Mbit/s | emulator's CPU, µs per frame "
        "| its CPU in the stream, cores |",
        "|---|---|---|---|---|",
    ]
    for side, values in measured.items():
        if not values:
            continue
        middle = Round(*np.median(np.array(values), axis=0))
        is_metered = not math.isnan(middle.cpu_us_per_frame)
        cpu = (
            f"{middle.cpu_us_per_frame:.1f} | {middle.stream_cpu_share:.2f}"
            if is_metered
            else "– | –"
        )
        stream = middle.stream_bytes_s * 8 / 1e6
        lines.append(f"| {side} | {middle.round_trip_us:.1f} | {stream:.0f} | {cpu} |")
    return "\n".join(lines)


def added_rows(measured: Mapping[str, Sequence[Round]]) -> Iterator[str]:
    """Yield the rows about what networks add to the round trip of veth in the same round."""
    added = {
        side: [ours.round_trip_us - veth.round_trip_us for ours, veth in pairs_of(measured, side)]
        for side in measured
        if side != VETH
    }
    if len(added[EMULATOR]) < 2:
        return
    yield line("emulator, added to a round trip", added[EMULATOR], "µs", ADDED_US_MAX)
    if WIREFILTER in added:
        excess = over_share(added[EMULATOR], added[WIREFILTER], WIREFILTER_SHARE_MAX)
        name = f"the same minus 1/3 of what wirefilter adds ({np.median(added[WIREFILTER]):.1f} µs)"
        yield line(name, excess, "µs", 0.0)


def pairs_of(measured: Mapping[str, Sequence[Round]], side: str) -> Iterator[tuple[Round, Round]]:
    yield from zip(measured[side], measured[VETH], strict=True)


def over_share(ours: Sequence[float], peer: Sequence[float], share: float) -> list[float]:
    """Return ours − share × peer per round, which is at most 0 if the share is kept.

    A ratio of differences has no useful limits if the peer's difference can be near 0.
    """
    return [mine - share * theirs for mine, theirs in zip(ours, peer, strict=True)]

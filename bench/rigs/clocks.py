"""Compare offsets and bands of clocks with planted ones, from exchanges in logical time.

Each seed plants an offset within ± 1,000 s and a rate within ± 50 ppm, and has the exchanges of a
run of 30 s: 64 before, 4 a second, and 64 after. Delays of links are those that the law of the link
emulator plans. Delays of veth devices are drawn from exchanges that this program records between
two namespaces of this machine, whose clock is one, so both directions are known.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.rigs.links import ENDS, inside, serving
from wattwire import stats
from wattwire.hosts import Hosts
from wattwire.hosts.clocks import EXCHANGES, PERIOD_S, RATE_CHANGE_MAX
from wattwire.links.loads import apply_between_ends, frames_at
from wattwire.model.hosts.clocks import RATE_MAX
from wattwire.model.links.profile import Link, read_link
from wattwire.model.rig import read_rig

IntArray = NDArray[np.int64]
Delays = tuple[IntArray, IntArray]
"""Delays (ns) of the requests and of the replies of exchanges, each of shape (exchanges,)."""
DelaysAt = Callable[[np.random.Generator, IntArray], Delays]
"""Returns the delays of exchanges at these times (ns)."""

SEEDS = 60
WINDOW_S = 30.0
OFFSET_S_MAX, RATE_PPM_MAX = 1_000.0, 50.0
CHANGES_PPM, CHANGE_AT_S = (2.0, 20.0, 100.0, 400.0), (3.0, 27.0)
SEEN_PPM = 100.0
"""Change from which each one is counted as one in all runs."""
INSTANTS = 4_001
"""Instants of the window, besides those of exchanges, at which the truth has to be inside."""
START_NS, REPLY_NS, EXCHANGE_BYTES = 5_000_000_000_000, 3_000, 74
VETH_GAP_NS = 200_000
"""Time between the exchanges before and after the window: more than a round trip."""
ROOM_NS = 50_000
"""Nanoseconds that the median band may exceed half of the shortest round trip by."""
LINEAR_WRONG_MAX, CHANGED_SEEN_MIN = 1 / 60, 59 / 60
NOTICED_PPM = 20.0
"""Change that the runs over veth have to show."""
VETH_EXCHANGES = 20_000
RIG = {"hosts": {"near": {"kind": "netns"}, "far": {"kind": "netns"}}, "networks": {"veth": {}}}


class Planted(NamedTuple):
    """The offset (ns), the rate, and the change of the rate of a clock after a time of the run."""

    offset_ns: int
    rate: float
    change: float = 0.0
    changes_at_s: float = WINDOW_S / 2

    def offset_at(self, controller_ns: IntArray) -> IntArray:
        """Return the offset (ns) at times of the controller, shape (times,)."""
        since_ns = (controller_ns - START_NS).astype(np.float64)
        later_ns = np.maximum(0.0, since_ns - self.changes_at_s * 1e9)
        drift_ns = np.rint(since_ns * self.rate + later_ns * self.change).astype(np.int64)
        return self.offset_ns + drift_ns


class Outcome(NamedTuple):
    """What the exchanges of one seed show (-1 changes for a step); bands and errors are in ns."""

    changes: int
    inside_share: float
    band_ns: float
    error_ns: float
    half_round_trip_ns: float
    unseen_ppm: float


def outcome(path: DelaysAt, gap_ns: int, seed: int, change_ppm: float = 0.0) -> Outcome:
    """Return what the exchanges of a seed show of a planted clock that changes at a random time."""
    rng = np.random.default_rng(seed)
    offset_ns = round(rng.uniform(-OFFSET_S_MAX, OFFSET_S_MAX) * 1e9)
    rate = rng.uniform(-RATE_PPM_MAX, RATE_PPM_MAX) * 1e-6
    changes_at_s = rng.uniform(*CHANGE_AT_S)
    clock = Planted(offset_ns, rate - change_ppm * 0.5e-6, change_ppm * 1e-6, changes_at_s)
    edge_ns = np.arange(EXCHANGES) * gap_ns
    period_ns = round(PERIOD_S * 1e9)
    during_ns = edge_ns[-1] + np.arange(1, round(WINDOW_S / PERIOD_S)) * period_ns
    sent = START_NS + np.concatenate([edge_ns, during_ns, during_ns[-1] + period_ns + edge_ns])
    there, back = path(rng, sent)
    arrived = sent + there
    replied, received = arrived + REPLY_NS, arrived + REPLY_NS + back
    exchanges = np.stack(
        [sent, arrived + clock.offset_at(arrived), replied + clock.offset_at(replied), received],
        axis=1,
    )
    lines = stats.clock_lines(exchanges, RATE_MAX, RATE_CHANGE_MAX, (EXCHANGES - 1, EXCHANGES - 1))
    if isinstance(lines, stats.ClockStep):
        return Outcome(-1, 0.0, np.nan, np.nan, np.nan, np.nan)
    instants = np.linspace(sent[EXCHANGES - 1], sent[-EXCHANGES], INSTANTS).astype(np.int64)
    instants = np.sort(np.concatenate([sent, instants]))
    offsets_ns, bands_ns = lines.at(instants)
    errors_ns = np.abs((offsets_ns - offset_ns) - (clock.offset_at(instants) - offset_ns))
    return Outcome(
        len(lines.times_ns) - 2,
        float((errors_ns <= bands_ns).mean()),
        float(max(lines.bands_ns)),
        float(np.median(errors_ns)),
        float((there + back).min() / 2),
        np.inf if lines.unseen_rate is None else lines.unseen_rate * 1e6,
    )


def over_link(up_ms: float, down_ms: float, jitter_ms: float = 1.0) -> DelaysAt:
    """Return the delays of a link, as the emulator's law plans them."""
    ways = {
        name: {"delay_ms": delay_ms, "jitter_ms": jitter_ms}
        for name, delay_ms in (("up", up_ms), ("down", down_ms))
    }
    document = {"title": "planted", "summary": "planted", **ways}
    link = read_link("planted", document, "bench/rigs/clocks.py", lambda _: "")

    def delays(rng: np.random.Generator, sent_ns: IntArray) -> Delays:
        seed = int(rng.integers(2**31))
        there = _delays(link, seed, "up", sent_ns)
        return there, _delays(link, seed + 1, "down", sent_ns + there + REPLY_NS)

    return delays


def _delays(link: Link, seed: int, direction: str, times_ns: IntArray) -> IntArray:
    order = np.argsort(times_ns, kind="stable")
    frames = frames_at(times_ns[order], direction, EXCHANGE_BYTES)
    records = apply_between_ends(link, seed, frames)
    delays = np.empty(len(times_ns), np.int64)
    delays[order] = records["planned_ns"].astype(np.int64) - records["in_ns"].astype(np.int64)
    return delays


def over_veth(there: IntArray, back: IntArray) -> DelaysAt:
    """Return the delays of exchanges that are drawn from recorded ones."""

    def delays(rng: np.random.Generator, sent_ns: IntArray) -> Delays:
        rows = rng.integers(len(there), size=len(sent_ns))
        return there[rows], back[rows]

    return delays


def recorded_over_veth(count: int = VETH_EXCHANGES) -> Delays:
    """Return the delays of exchanges between two namespaces that a veth device joins."""
    with tempfile.TemporaryDirectory(prefix="wattwire-clocks-") as name:
        folder = Path(name)
        with (
            Hosts(read_rig(RIG, "bench/rigs/clocks.py"), folder / "state") as hosts,
            hosts.network("veth", folder, 1) as network,
        ):
            peer = network.addresses["far"]
            near, far = (hosts.by_name[host].pid for host in ("near", "far"))
            words = [sys.executable, str(ENDS)]
            with serving(far, peer):
                printed = subprocess.run(
                    inside(near, *words, "exchange", peer, str(count)),
                    stdout=subprocess.PIPE, check=True,
                ).stdout.decode()  # fmt: skip
    times = np.array([line.split() for line in printed.splitlines()], dtype=np.int64)
    sent, arrived, replied, received = times.T
    return arrived - sent, received - replied


def report(seeds: int) -> None:
    """Print the share of runs that hold the truth, the bands, and the calls of linearity."""
    print("\n## Offsets and bands of clocks over links, in logical time\n")
    print(
        "| path, ms | runs with the truth inside at every instant | band of the window, µs, "
        "median | half of the shortest round trip, µs | median error, µs | unseen change of rate, "
        "ppm | verdict |\n"
        "|---|---|---|---|---|---|---|"
    )
    for up_ms, down_ms in ((5.0, 5.0), (20.0, 5.0)):
        path, gap_ns = over_link(up_ms, down_ms), round((up_ms + down_ms + 2.5) * 1e6)
        print(_band_row(f"{up_ms:g} and {down_ms:g} ± 1", _outcomes(path, gap_ns, seeds)))
    there, back = recorded_over_veth()
    print(
        f"\n## Linearity over veth, with delays of {len(there):,} recorded exchanges (shortest "
        f"round trip {(there + back).min() / 1e3:.1f} µs, median "
        f"{np.median(there + back) / 1e3:.1f} µs)\n"
    )
    print(
        "| change of rate at a random time, ppm | truth inside at every instant | runs with "
        "0 / 1 / more changes | promised | band, µs, median | verdict |\n|---|---|---|---|---|---|"
    )
    path = over_veth(there, back)
    for change_ppm in (0.0, *CHANGES_PPM):
        print(_change_row(change_ppm, _outcomes(path, VETH_GAP_NS, seeds, change_ppm)), flush=True)


def _change_row(change_ppm: float, outcomes: Sequence[Outcome]) -> str:
    runs = len(outcomes)
    held = sum(item.inside_share == 1.0 for item in outcomes)
    none, one = (sum(item.changes == count for item in outcomes) for count in (0, 1))
    band_ns = float(np.median([item.band_ns for item in outcomes]))
    promise, is_met = {
        0.0: ("none in ≥ 59/60", none >= (1 - LINEAR_WRONG_MAX) * runs),
        NOTICED_PPM: ("seen in ≥ 59/60", none <= (1 - CHANGED_SEEN_MIN) * runs),
    }.get(change_ppm, ("", True))
    if change_ppm >= SEEN_PPM:
        promise, is_met = "one in all", one == runs
    return (
        f"| {change_ppm:g} | {held} of {runs} | {none} / {one} / {runs - none - one} | {promise} | "
        f"{band_ns / 1e3:.1f} | {_verdict(is_met and held == runs)} |"
    )


def _outcomes(path: DelaysAt, gap_ns: int, seeds: int, change_ppm: float = 0.0) -> list[Outcome]:
    return [outcome(path, gap_ns, seed, change_ppm) for seed in range(1, seeds + 1)]


def _band_row(name: str, outcomes: Sequence[Outcome]) -> str:
    held = sum(item.inside_share == 1.0 for item in outcomes)
    medians = [float(np.median(values)) for values in zip(*(o[2:] for o in outcomes), strict=True)]
    band_ns, error_ns, half_ns, unseen_ppm = medians
    is_met = held == len(outcomes) and band_ns <= half_ns + ROOM_NS
    return (
        f"| {name} | {held} of {len(outcomes)} | {band_ns / 1e3:.1f} | {half_ns / 1e3:.1f} | "
        f"{error_ns / 1e3:.1f} | {unseen_ppm:.0f} | {_verdict(is_met)} |"
    )


def _verdict(is_met: bool) -> str:
    return "passed" if is_met else "failed"

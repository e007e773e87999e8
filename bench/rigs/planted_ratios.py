"""Count how often the interval of the ratio of two meters holds the ratio that was planted.

Each campaign reads two emulated meters of one supply at the same time: a Watts Up? on a
pseudo-terminal, and a plug on loopback HTTP that states all energy too high by a drawn share. The
supply delivers 10 W + 12 W × the load of this host, with noise, whatever else loads the host. In
as many campaigns the drawn share is 0, and the finding on sources that disagree must be silent.

Each meter has its own resolution, its own second and its own delay, so that both measure the same
energy over slightly different times. A meter is a device and never late. Where other work keeps the
emulated ones from the processor for longer than a limit, the campaign is stated and measured again.
A file of JSON lines keeps the results, so a measurement can be continued.
"""

from __future__ import annotations

import bisect
import json
import math
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import numpy as np

from bench.campaigns import run_study
from bench.pairs import BROKEN
from bench.rigs.planted_links import verdict_of
from meters.http_plug.tests.emulator import Plug
from meters.watts_up.tests.emulator import WattsUp
from wattwire.analysis.dataset import gather
from wattwire.analysis.topics.findings.detector import Searched
from wattwire.analysis.topics.findings.sources_disagree.numbers import sources_disagree
from wattwire.analysis.topics.source_agreement.numbers import pairs_of
from wattwire.model.errors import WattwireError
from wattwire.stats import Interval
from wattwire.store import Campaign

CAMPAIGNS, HELD_MIN, SILENT_MIN = 20, 17, 19
"""An honest 95 % interval holds fewer than 17 of 20 with a probability of 1.6 %."""
SHARE_MAX = 0.08
HALF_WIDTH_MAX = 0.01
AT_ONCE = 8
"""Campaigns at the same time. They mostly wait, and no result depends on a quiet machine."""
IDLE_W, BUSY_W, NOISE_W = 10.0, 12.0, 0.3
STEP_S, NOISE_STEPS = 0.1, 10
METER_S = 1.0
WATTS_UP_DELAY_S, PLUG_DELAY_S = 0.25, 0.5
"""The time between the end of a meter's second and the moment when it states this second."""
LATE_S_MAX = 0.5
"""The longest time by which the emulated meters may be late, as seen at the steps of the supply."""
CLASS = "0.5 % + 0.1 W"
PLANTED, EQUAL = "planted", "equal"
STUDY = """
title = "Two meters of one supply"
[fixed]
cell = "udp/cpp"
pattern = "topic"
rate_hz = 10
payload_bytes = 64
[plan]
blocks = 6
seed = {seed}
controls = false
duration_s = 40.0
baseline_s = 20.0
warmup_s = 0.2
retries = 1
quiet_wait_s = 0.0
"""
RIG = """
[hosts]
here = {{ kind = "local" }}
[placements.here]
sender = "here"
receiver = "here"
[[meters.here]]
name = "watts_up"
at = "{path}"
window_s = {window_s}
class = "{class_text}"
[[meters.here]]
name = "http_plug"
at = "shelly:127.0.0.1:{port}"
window_s = {window_s}
class = "{class_text}"
"""


# -- the supply and its meters ---------------------------------------------------------------------


class Supply:
    """The energy that this host draws by a law of its load, known for all times since the begin.

    `late_s_max` is the longest time by which a step came late, and thus shows how late the emulated
    meters may have been.
    """

    def __init__(self, random: np.random.Generator) -> None:
        self._random = random
        self._times_s, self._energies_j = [time.monotonic()], [0.0]
        self.late_s_max = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def energy_j(self, t_s: float) -> float:
        """Return the energy (J) from the begin until a time (s) of the monotonic clock."""
        after = bisect.bisect_right(self._times_s, t_s)
        if after == 0:
            return 0.0
        if after == len(self._energies_j):
            return self._energies_j[-1]
        begin_s, end_s = self._times_s[after - 1 : after + 1]
        begin_j, end_j = self._energies_j[after - 1 : after + 1]
        return begin_j + (end_j - begin_j) * (t_s - begin_s) / (end_s - begin_s)

    def _serve(self) -> None:
        busy, total = _cpu_ticks()
        step = 0
        noise_w = 0.0
        while not self._stop.wait(STEP_S):
            if step % NOISE_STEPS == 0:
                noise_w = self._random.normal(0.0, NOISE_W)
            step += 1
            busy_before, total_before = busy, total
            busy, total = _cpu_ticks()
            load = (busy - busy_before) / max(1, total - total_before)
            seconds = time.monotonic() - self._times_s[-1]
            self.late_s_max = max(self.late_s_max, seconds - STEP_S)
            power_w = IDLE_W + BUSY_W * load + noise_w
            # A reader takes the length of the energies as that of both lists.
            self._times_s.append(self._times_s[-1] + seconds)
            self._energies_j.append(self._energies_j[-1] + power_w * seconds)


def _cpu_ticks() -> tuple[int, int]:
    """Return the busy and all clock ticks of all cores of this host since its boot."""
    with open("/proc/stat") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def _watts_up(supply: Supply) -> WattsUp:
    """Return a meter that states the mean power (W) of its second in steps of 0.1 W."""

    def power_w(now_s: float) -> float:
        end_s = now_s - WATTS_UP_DELAY_S
        return (supply.energy_j(end_s) - supply.energy_j(end_s - METER_S)) / METER_S

    return WattsUp(power_w)


def _plug(supply: Supply, share: float, phase_s: float) -> Plug:
    """Return a plug that writes its counter once per second, too high by a share."""

    def energy_j(now_s: float) -> float:
        written_s = math.floor((now_s - phase_s) / METER_S) * METER_S + phase_s
        return (1 + share) * supply.energy_j(written_s - PLUG_DELAY_S)

    return Plug(IDLE_W, energy_j=energy_j)


# -- campaigns -------------------------------------------------------------------------------------


def measure(kind: str, seed: int) -> dict[str, Any]:
    """Measure a campaign, and return what the product says about its two meters."""
    random = np.random.default_rng([seed, kind == PLANTED])
    share = float(random.uniform(-SHARE_MAX, SHARE_MAX)) if kind == PLANTED else 0.0
    phase_s = float(random.uniform(0.0, METER_S))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="wattwire-bench-")))
        supply = stack.enter_context(closing(Supply(random)))
        watts_up = stack.enter_context(closing(_watts_up(supply)))
        plug = stack.enter_context(closing(_plug(supply, share, phase_s)))
        (folder / "rig.toml").write_text(
            RIG.format(path=watts_up.path, port=plug.port, window_s=METER_S, class_text=CLASS)
        )
        run_study(folder, STUDY.format(seed=seed), "--rig", "rig.toml")
        stated = {"kind": kind, "seed": seed, "share": share, "late_s": supply.late_s_max}
        return stated | _said(folder / "campaign")


def _said(path: Path) -> dict[str, Any]:
    """Return the ratio, its interval and the finding of a campaign, as a JSON object."""
    with closing(Campaign(path)) as stored:
        evidence = gather(stored)
        pairs = list(pairs_of(evidence))
        if len(pairs) != 1 or not isinstance(pairs[0].ratio, Interval):
            return {"lost": f"no ratio of two meters: {pairs}"[:200]}
        (pair,), disagreement = pairs, sources_disagree(Searched(evidence, ())).found
    return {
        "runs": pair.runs, "first_w": pair.first_w, "allowed_w": pair.allowed_w,
        "is_named": bool(disagreement),
        **{name: getattr(pair.ratio, name) for name in ("low", "estimate", "high")},
    }  # fmt: skip


def _measured(kind: str, seed: int) -> dict[str, Any]:
    try:
        return measure(kind, seed)
    except (*BROKEN, WattwireError) as error:
        return {"kind": kind, "seed": seed, "lost": str(error)[:200]}


def report(campaigns: int, journal: Path) -> None:
    """Measure until the journal has as many campaigns of each kind, and print their counts."""
    print("\n## Ratio of two emulated meters of one supply, with a planted difference\n")
    known = read_journal(journal)
    seeds = range(1, campaigns + 1)
    missing = [(kind, seed) for seed in seeds for kind in (PLANTED, EQUAL)]
    missing = [key for key in missing if key not in known or is_late(known[key])]
    with ThreadPoolExecutor(AT_ONCE) as executor:
        try:
            for future in as_completed(executor.submit(_measured, *key) for key in missing):
                row = future.result()
                known[row["kind"], row["seed"]] = row
                with journal.open("a") as lines:
                    lines.write(json.dumps(row) + "\n")
                print(f"  {row_of(row)}", flush=True)
        finally:
            executor.shutdown(cancel_futures=True)
    rows = [row for _, row in sorted(known.items(), reverse=True) if not is_late(row)]
    if late := sum(map(is_late, known.values())):
        print(f"\n{late} campaigns had late meters and count as not measured; run this part again.")
    print("\n" + "\n".join([*campaign_table(rows), "", *table(rows)]), flush=True)


def read_journal(path: Path) -> dict[tuple[str, int], dict[str, Any]]:
    """Return kind and seed → line of a file, whose last line may be incomplete."""
    lines: dict[tuple[str, int], dict[str, Any]] = {}
    for text in path.read_text().splitlines() if path.exists() else ():
        with suppress(json.JSONDecodeError):
            line = json.loads(text)
            lines[line["kind"], line["seed"]] = line
    return lines


# -- report ----------------------------------------------------------------------------------------


def is_late(row: Mapping[str, Any]) -> bool:
    """Whether the emulated meters were late, so that the campaign tells nothing about the page."""
    return bool(row.get("late_s", 0.0) > LATE_S_MAX)


def holds(row: Mapping[str, Any]) -> bool:
    """Whether the interval of the ratio holds the planted one; not in a lost campaign."""
    return "low" in row and row["low"] <= 1 + row["share"] <= row["high"]


def half_width(row: Mapping[str, Any]) -> float:
    """Return half the width of the interval, as a share; infinite for a lost campaign."""
    return (row["high"] - row["low"]) / 2 / row["estimate"] if "low" in row else math.inf


def is_beyond_classes(row: Mapping[str, Any]) -> bool:
    """Whether the planted difference is more than both classes state."""
    return abs(row["share"]) * row["first_w"] > row["allowed_w"]


def row_of(row: Mapping[str, Any]) -> str:
    """Return a campaign as a row of the table."""
    if "lost" in row:
        return f"| {row['kind']} | {row['seed']} | lost: {row['lost']} | | | | | |"
    return (
        f"| {row['kind']} | {row['seed']} | {1 + row['share']:.4f} | {row['low']:.4f} to "
        f"{row['high']:.4f} | {'yes' if holds(row) else 'no'} | {half_width(row):.2%} | "
        f"{'named' if row['is_named'] else 'silent'} | {row['late_s']:.2f} |"
    )


def campaign_table(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a table of the campaigns."""
    yield (
        "| campaign | seed | planted ratio | interval | holds it | half-width | finding | meters "
        "late by up to, s |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    yield from map(row_of, rows)


def table(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a table of the promises. A lost campaign neither holds, nor is narrow or silent."""
    planted, equal = ([row for row in rows if row["kind"] == kind] for kind in (PLANTED, EQUAL))
    yield "| promise | measured | promised | verdict |"
    yield "|---|---|---|---|"
    widths = [half_width(row) for row in planted]
    counts = (
        ("intervals that hold the planted ratio", sum(map(holds, planted)), planted, HELD_MIN),
        (
            f"half-widths of at most {HALF_WIDTH_MAX:.0%} (largest {max(widths, default=0):.2%})",
            sum(width <= HALF_WIDTH_MAX for width in widths), planted, CAMPAIGNS,
        ),
        (
            "equal meters: the finding is silent",
            sum(row.get("is_named") is False for row in equal), equal, SILENT_MIN,
        ),
    )  # fmt: skip
    for name, count, of_kind, least in counts:
        verdict = verdict_of(count, len(of_kind), least, CAMPAIGNS)
        yield f"| {name} | {count} of {len(of_kind)} | ≥ {least} of {CAMPAIGNS} | {verdict} |"
    known = [row for row in planted if "low" in row]
    for is_beyond, name in ((True, "beyond"), (False, "within")):
        side = [row for row in known if is_beyond_classes(row) == is_beyond]
        named = sum(row["is_named"] for row in side)
        label = f"findings at a planted difference {name} both classes"
        yield f"| {label} | {named} of {len(side)} | – | |"

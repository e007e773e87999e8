"""Compare wattwire's break-even with that of planted times per block.

Each seed draws the time per block of a robot and of a device. Both are cells of `coproc` that
encrypt and then read the clock until the planted time has passed. A campaign of the study below
measures their round trips, and the functions of the report compute the break-even of the device.

The true break-even is the smallest k at which the round trip without work is at most k times the
difference of the planted times. That round trip is the only part of it that is measured: by runs
of the same device under another label, at other sizes, which the report does not use for the
break-even of the device. They run in the same blocks, so load affects both alike.

All processes run on one core. On two, the scheduler wakes the gateway on the other core if the
device is busy for long, and the round trip itself then takes longer with work than without.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from bench.campaigns import run_study
from bench.pairs import BROKEN, lose_pair
from bench.rigs.planted_links import read_journal, verdict_of
from bench.turns import NO_REAL_TIME_NOTICE, real_time_on_last_core
from wattwire.analysis.dataset import Evidence, gather
from wattwire.analysis.topics.break_even.numbers import ADDITIVE_MAX, break_evens
from wattwire.stats import Interval
from wattwire.store import Campaign

SEEDS, HELD_MIN = 20, 17
"""An honest 95 % interval holds fewer than 17 of 20 with a probability of 1.6 %."""
RATIO_MAX = 1.5
BLOCKS = 4
ROBOT_NS = (1000.0, 3000.0)
"""Range of the robot's time per block, drawn uniformly on a log scale."""
DEVICE_SHARE = (0.1, 0.6)
"""Range of the device's share of the robot's time per block."""
FRAME_BYTES, BLOCK_BYTES = 40, 16
WORK_BLOCKS = (256, 1024)
"""Sizes from which the page computes the time per block. In such long messages, the planted time is
long compared with the time by which a longer wait lengthens the round trip itself."""
CARRIER_BLOCKS = (1, 16, 64, *WORK_BLOCKS)
REFERENCE_BLOCKS = (1, 8, 32, 128, 1024)
TRUE_VALUE_TOLERANCE = 0.01
"""Relative tolerance of the target, chosen after pilot runs: a round trip with work takes 0.3 to
1.3 % longer than the planted sum, probably because caches hold less of its data after a wait."""
STUDY = """
title = "A planted break-even"
[factors]
variant = ["robot", "device", "reference"]
payload_bytes = {sizes}
reply = ["echo", "encrypt"]
[fixed]
middleware = "coproc"
language = "cpp"
pattern = "service"
loop = "closed"
count = 200
timeout_ms = 5000
# One piece per message: a round trip then has no steps between the measured sizes.
"settings.piece_bytes" = 65472
"settings.pieces_in_flight" = 1
[variants]
robot = {{ levels = {{ cell = "coproc/planted-robot" }} }}
device = {{ levels = {{ cell = "coproc/planted-device" }} }}
reference = {{ levels = {{ cell = "coproc/planted-device" }} }}
[include]
treatments = [
    {{ variant = ["robot", "device"], payload_bytes = {work} }},
    {{ variant = "device", payload_bytes = {carrier}, reply = "echo" }},
    {{ variant = "reference", payload_bytes = {reference}, reply = "echo" }},
]
[plan]
blocks = {blocks}
seed = {seed}
primary = "variant"
controls = false
warmup_s = 0.0
warmup_calls = 20
baseline_s = 0.05
quiet_ms = 20
linger_ms = 50
cooldown_s = 0.0
retries = 1
quiet_wait_s = 0.0
[[break_even]]
title = "From how many blocks does it pay to offload them?"
response = "latency_p50_us"
size = "payload_bytes"
frame = {frame}
unit = {unit}
unit_title = "blocks"
work = "reply"
idle = "echo"
busy = "encrypt"
by = "variant"
workers = ["robot", "device"]
"""


class Planted(NamedTuple):
    """Planted times in ns: per block of each worker, and once per message with blocks."""

    robot_ns: int
    device_ns: int
    device_start_ns: int = 0

    @property
    def saved_us(self) -> float:
        """Return the time that offloading saves per block."""
        return (self.robot_ns - self.device_ns) / 1e3

    def per_block_us(self) -> dict[str, float]:
        return {"robot": self.robot_ns / 1e3, "device": self.device_ns / 1e3}


class Outcome(NamedTuple):
    """The break-even of a seed in blocks, with the error of sums by worker.

    `errors` are relative deviations of measured round trips with work from the sum of the round
    trip without work and the planted time; `reported_errors` are those of the page, which uses the
    measured time per block. `not_additive` has the workers of which the page says that round trip
    and work are not additive. Without an interval, `low` and `high` are NaN and `estimate` is the
    page's result as text.
    """

    planted: Planted
    true: float
    estimate: float | str
    low: float
    high: float
    errors: dict[str, float]
    reported_errors: dict[str, float]
    not_additive: list[str]

    @property
    def contains_true_within_tolerance(self) -> bool:
        """Whether the interval contains a value within the tolerance of the true one."""
        tolerance = self.true * TRUE_VALUE_TOLERANCE
        return self.low - tolerance <= self.true <= self.high + tolerance

    @property
    def contains_true(self) -> bool:
        return self.low <= self.true <= self.high

    @property
    def ratio(self) -> float:
        """Return upper / lower end; infinite without an interval."""
        return self.high / self.low if math.isfinite(self.low) else math.inf

    @property
    def is_additive_or_warned(self) -> bool:
        """Whether each worker is additive, or the page says that it is not."""
        return all(
            error <= ADDITIVE_MAX or worker in self.not_additive
            for worker, error in self.errors.items()
        )


# -- planted times ---------------------------------------------------------------------------------


def planted_times(seed: int) -> Planted:
    """Return the planted times of a seed."""
    source = np.random.default_rng(seed)
    robot_ns = math.exp(source.uniform(*np.log(ROBOT_NS)))
    return Planted(round(robot_ns), round(robot_ns * source.uniform(*DEVICE_SHARE)))


def true_break_even(round_trips_us: Mapping[float, float], saved_us: float) -> float:
    """Return the smallest k ≥ 1 at which the round trip is at most k · `saved_us`.

    `round_trips_us` maps blocks to round trips without work; lines connect them. The search is a
    grid of thousandths of a block, so that it shares nothing with the code under test.
    """
    ks = np.arange(1000, 1000 * max(round_trips_us) + 1) / 1000
    blocks = sorted(round_trips_us)
    pays = np.interp(ks, blocks, [round_trips_us[k] for k in blocks]) <= saved_us * ks
    return float(ks[np.argmax(pays)]) if pays.any() else math.inf


# -- campaign --------------------------------------------------------------------------------------


def study_of(seed: int, blocks: int) -> str:
    def payloads(counts: Sequence[int]) -> list[int]:
        return [FRAME_BYTES + BLOCK_BYTES * count for count in counts]

    return STUDY.format(
        sizes=payloads(sorted({*CARRIER_BLOCKS, *REFERENCE_BLOCKS})), work=payloads(WORK_BLOCKS),
        carrier=payloads(CARRIER_BLOCKS), reference=payloads(REFERENCE_BLOCKS),
        frame=FRAME_BYTES, unit=BLOCK_BYTES, blocks=blocks, seed=seed,
    )  # fmt: skip


def measure(planted: Planted, seed: int, blocks: int, folder: Path) -> Outcome:
    """Measure a campaign in `folder` and return its break-even."""
    environment = {
        "ROBOT_BLOCK_NS": planted.robot_ns, "DEVICE_BLOCK_NS": planted.device_ns,
        "DEVICE_START_NS": planted.device_start_ns,
    }  # fmt: skip
    words = {name: str(value) for name, value in environment.items()}
    stored = Campaign(run_study(folder, study_of(seed, blocks), **words))
    try:
        return outcome(gather(stored), planted)
    finally:
        stored.close()


def outcome(evidence: Evidence, planted: Planted) -> Outcome:
    """Return the page's break-even of offloading from robot to device, and the true value."""
    (request,) = break_evens(evidence).requests
    reported = {worker.title: worker.error for worker in request.workers}
    (result,) = (
        offload.result for offload in request.offloads
        if (offload.carrier, offload.worker.title, offload.own.title)
        == ("device", "device", "robot")
    )  # fmt: skip
    trips = round_trips_us(evidence.usable)
    true = true_break_even(trips["reference", "echo"], planted.saved_us)
    shown = (
        (result.estimate, result.low, result.high)
        if isinstance(result, Interval)
        else (str(result), math.nan, math.nan)
    )
    warnings = [worker.title for worker in request.workers if not worker.is_additive]
    return Outcome(planted, true, *shown, additive_errors(trips, planted), reported, warnings)


def round_trips_us(runs: pl.DataFrame) -> dict[tuple[str, str], dict[float, float]]:
    """Return (variant, reply) → blocks → geometric mean of the runs' median round trips."""
    trips: dict[tuple[str, str], dict[float, list[float]]] = {}
    for row in runs.to_dicts():
        count = (float(row["factor.payload_bytes"]) - FRAME_BYTES) / BLOCK_BYTES
        side = trips.setdefault((row["factor.variant"], row["factor.reply"]), {})
        side.setdefault(count, []).append(float(row["latency_p50_us"]))
    return {
        key: {count: float(np.exp(np.mean(np.log(values)))) for count, values in side.items()}
        for key, side in trips.items()
    }


def additive_errors(
    trips: Mapping[tuple[str, str], Mapping[float, float]], planted: Planted
) -> dict[str, float]:
    """Return worker → largest relative error of round trip + planted time."""
    return {
        worker: max(
            abs((trips[worker, "echo"][count] + count * block_us) / busy_us - 1.0)
            for count, busy_us in trips[worker, "encrypt"].items()
        )
        for worker, block_us in planted.per_block_us().items()
    }


def measure_seeds(seeds: Iterable[int], journal: Path) -> None:
    """Measure the seeds that the journal lacks, and add a line for each."""
    known = read_journal(journal)
    missing = [seed for seed in seeds if seed not in known]
    for number, seed in enumerate(missing):
        try:
            with tempfile.TemporaryDirectory(prefix="wattwire-bench-") as folder:
                result = measure(planted_times(seed), seed, BLOCKS, Path(folder))
        except BROKEN as error:
            lose_pair("planted break-even", number, len(missing), error)
            continue
        with journal.open("a") as file:
            file.write(json.dumps({"seed": seed, **result._asdict()}) + "\n")
        print(f"  {row(seed, result)}", file=sys.stderr, flush=True)


# -- report ----------------------------------------------------------------------------------------


def row(seed: int, result: Outcome) -> str:
    """Return a seed as a row of the table."""
    planted = result.planted
    contains_true = "yes" if result.contains_true_within_tolerance else "no"
    errors = ", ".join(f"{worker} {error:.1%}" for worker, error in result.errors.items())
    interval = f"{result.low:.2f} to {result.high:.2f}"
    if isinstance(result.estimate, str):
        interval = result.estimate
    return (
        f"| {seed} | {planted.robot_ns} | {planted.device_ns} | {result.true:.2f} | {interval} "
        f"| {contains_true} | {result.ratio:.2f} | {errors} "
        f"| {', '.join(result.not_additive) or '–'} |"
    )


def summary(results: Sequence[Outcome]) -> str:
    """Return the promises with their verdicts as a Markdown table."""
    count = len(results)
    within_tolerance = sum(result.contains_true_within_tolerance for result in results)
    exact = sum(result.contains_true for result in results)
    narrow = sum(result.ratio <= RATIO_MAX for result in results)
    additive_or_warned = sum(result.is_additive_or_warned for result in results)
    largest = max(result.ratio for result in results)
    error = max(max(result.errors.values()) for result in results)
    return "\n".join(
        [
            "| quantity | measured | promised | verdict |",
            "|---|---|---|---|",
            f"| intervals that hold the true break-even ± {TRUE_VALUE_TOLERANCE:.0%} "
            f"| {within_tolerance} of {count} | ≥ {HELD_MIN} of {SEEDS} "
            f"| {verdict_of(within_tolerance, count, HELD_MIN, SEEDS)} |",
            f"| intervals that hold it without this tolerance | {exact} of {count} | – | |",
            f"| upper by lower end, largest | {largest:.2f} ({narrow} of {count} within) "
            f"| ≤ {RATIO_MAX:g} | {verdict_of(narrow, count, SEEDS, SEEDS)} |",
            f"| seeds with round trip + planted time within {ADDITIVE_MAX:.0%}, or a warning "
            f"| {additive_or_warned} of {count} (largest error {error:.1%}) | all "
            f"| {verdict_of(additive_or_warned, count, SEEDS, SEEDS)} |",
        ]
    )


def outcome_of(line: Mapping[str, Any]) -> Outcome:
    """Return the outcome of a line of the journal."""
    fields = {name: value for name, value in line.items() if name != "seed"}
    return Outcome(**{**fields, "planted": Planted(*fields["planted"])})


def report(first_seed: int, seeds: int, journal: Path) -> None:
    """Measure the seeds, and print the verdict over all seeds of the journal."""
    with real_time_on_last_core() as is_real_time:
        print("" if is_real_time else NO_REAL_TIME_NOTICE, end="")
        measure_seeds(range(first_seed, first_seed + seeds), journal)
    results = {seed: outcome_of(line) for seed, line in sorted(read_journal(journal).items())}
    print(f"\n## Break-even of planted times per block: intervals over {BLOCKS} blocks of runs\n")
    print(
        "| seed | robot, ns/block | device, ns/block | true k | interval "
        f"| holds true k ± {TRUE_VALUE_TOLERANCE:.0%} | upper/lower "
        "| error of round trip + planted time | page: not additive |"
        "\n|---|---|---|---|---|---|---|---|---|"
    )
    for seed, result in results.items():
        print(row(seed, result))
    if results:
        print(f"\n{summary(list(results.values()))}", flush=True)

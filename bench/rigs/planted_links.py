"""Compare wattwire's intervals for a planted link with the emulator's log of all frames.

Each seed has three campaigns of udp/cpp between two namespaces, with five runs each: paced for
delay, delay variation and loss; saturating for the rate; and paced over a link without delay. The
functions of the report compute their intervals over runs. An interval holds if it contains the
value of the log. A file of JSON lines keeps the results, so a measurement can be continued.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from bench.pairs import BROKEN, lose_pair
from bench.rigs.links import inside, start
from wattwire import stats
from wattwire.hosts import Hosts
from wattwire.model.derived import column, with_derived
from wattwire.model.errors import WattwireError
from wattwire.model.rig import read_rig
from wattwire.rig.emulator_log import LOST, Fate, read_log
from wattwire.store import Campaign
from wattwire.store.campaign import frame_of

SEEDS = 60
HELD_MIN = 52
"""Of 60. An honest 95 % interval holds fewer with a probability of 0.3 %."""
RUNS = 5
PAYLOAD_BYTES, FRAME_BYTES = 1000, 1042
ABOVE = "delay above that of a link without delay"
HANG_S = 60.0
HALF_WIDTH_MAX = {"loss share": 0.20}
OTHER_HALF_WIDTH_MAX = 0.05
RIG: dict[str, Any] = {
    "hosts": {"near": {"kind": "netns"}, "far": {"kind": "netns"}},
    "networks": {
        "planted": {"link": "planted", "near": ["near"]},
        "no-delay": {"link": "no-delay", "near": ["near"]},
    },
    "placements": {"apart": {"sender": "near", "receiver": "far"}},
}
STUDY = """
title = "A planted link"
[factors]
network = ["{network}"]
[fixed]
cell = "udp/cpp"
pattern = "topic"
payload_bytes = {payload_bytes}
rate_hz = {rate_hz}
[plan]
blocks = {runs}
seed = {seed}
controls = false
duration_s = {duration_s}
warmup_s = 0.0
baseline_s = 0.1
quiet_ms = 20
quiet_wait_s = 0.0
"""


class Load(NamedTuple):
    """The runs of a campaign."""

    network: str
    rate_hz: int
    duration_s: float


LOADS = {
    "paced": Load("planted", 1000, 10.0),
    "saturating": Load("planted", 3000, 2.0),
    "plain": Load("no-delay", 1000, 2.0),
}


class Values(NamedTuple):
    """A quantity per run: by wattwire, and by the emulator's log. Shape (runs,) each."""

    measured: np.ndarray
    logged: np.ndarray


# -- log -------------------------------------------------------------------------------------------


def delays_us(records: np.ndarray) -> np.ndarray:
    """Return the time of each delivered frame in the emulator, shape (frames,)."""
    delivered = records[records["fate"] == Fate.DELIVERED]
    delays: np.ndarray = (delivered["out_ns"] - delivered["in_ns"]) / 1e3
    return delays


def logged_values(records: np.ndarray) -> dict[str, float]:
    """Return what a log says of its messages: delay, its variation, loss and rate."""
    delay_us = delays_us(records)
    outs_ns = records["out_ns"][records["fate"] == Fate.DELIVERED]
    return {
        "delay": float(delay_us.mean()),
        "delay variation": float(np.median(delay_us - delay_us.min())),
        "loss share": float(np.isin(records["fate"], LOST).mean()),
        "rate": rate_mbit_s(outs_ns),
    }


def rate_mbit_s(times_ns: np.ndarray) -> float:
    """Return the rate of frames at these times, without the first: its transmission is earlier."""
    duration_ns = float(times_ns.max() - times_ns.min())
    return (len(times_ns) - 1) * FRAME_BYTES * 8e3 / duration_ns


def messages_only(records: np.ndarray) -> np.ndarray:
    """Return the records of the messages, without frames such as those of ARP."""
    chosen: np.ndarray = records[(records["size_bytes"] == FRAME_BYTES) & (records["source"] == 0)]
    return chosen


# -- wattwire --------------------------------------------------------------------------------------


def run_campaign(load: Load, seed: int, folder: Path) -> dict[str, Values]:
    """Measure a campaign through the command line; return the values of its valid runs."""
    folder.mkdir()
    study, campaign = folder / "study.toml", folder / "campaign"
    study.write_text(
        STUDY.format(seed=seed, runs=RUNS, payload_bytes=PAYLOAD_BYTES, **load._asdict())
    )
    rig = folder / "rig.toml"
    rig.write_text(toml(RIG))
    subprocess.run(
        [sys.executable, "-m", "wattwire", "run", str(study), "--rig", str(rig), "--campaign",
         str(campaign), "--look", "--yes", "--no-report", "--plain"],
        check=True, stdout=subprocess.DEVNULL, env=dict(os.environ),
    )  # fmt: skip
    stored = Campaign(campaign)
    try:
        rows = [row for row in stored.rows() if row["verdict"] == "valid"]
        measured: dict[str, list[float]] = {}
        logged: dict[str, list[float]] = {}
        for row in rows:
            place = stored.folder(row["run"])
            log = messages_only(read_log(place / "frames.log"))
            for name, value in logged_values(log).items():
                logged.setdefault(name, []).append(value)
            arrivals = stored.messages(row["run"]).filter(pl.col("end_ns") > 0, pl.col("node") > 0)
            measured.setdefault("rate", []).append(rate_mbit_s(arrivals["end_ns"].to_numpy()))
    finally:
        stored.close()
    frame = with_derived(frame_of(rows))
    for name, response in RESPONSES.items():
        measured[name] = list(column(frame, response))
    return {name: Values(np.array(measured[name]), np.array(logged[name])) for name in logged}


RESPONSES = {
    "delay": "since_send_mean_us", "delay variation": "delay_variation_p50_us",
    "loss share": "loss_share",
}  # fmt: skip
"""Quantity → response of the report. The rate is computed from the stored messages."""


def toml(rig: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """Return a rig as TOML: its tables have only strings and lists of strings."""
    return "\n".join(
        f"[{kind}.{name}]\n" + "\n".join(f"{key} = {json.dumps(v)}" for key, v in table.items())
        for kind, tables in rig.items()
        for name, table in tables.items()
    )


# -- intervals -------------------------------------------------------------------------------------


def estimate(values: Values) -> dict[str, float]:
    """Return the report's 95 % interval over runs, and the mean of the log over the same runs.

    Raises ValueError if there are too few runs.
    """
    data = values.measured
    interval = stats.geometric_mean(data) if (data > 0).all() else stats.mean_interval(data)
    return entry(interval, float(values.logged.mean()))


def estimate_above(values: Values, plain: Values) -> dict[str, float]:
    """Return the difference between the means of two campaigns, of wattwire and of the log.

    The half-widths of both 95 % intervals add in quadrature, which is at least as wide as Welch's
    interval.
    """
    intervals = [stats.mean_interval(sample.measured) for sample in (values, plain)]
    known = [interval for interval in intervals if isinstance(interval, stats.Interval)]
    if len(known) < 2:
        raise ValueError("no interval: fewer than 3 valid runs")
    half = float(np.hypot(*(interval.high - interval.low for interval in known))) / 2
    centre = known[0].estimate - known[1].estimate
    logged = float(values.logged.mean() - plain.logged.mean())
    return {"low": centre - half, "high": centre + half, "log": logged}


def entry(interval: object, logged: float) -> dict[str, float]:
    if not isinstance(interval, stats.Interval):
        raise ValueError(f"no interval: {interval}")
    return {"low": interval.low, "high": interval.high, "log": logged}


def measure_seed(seed: int) -> dict[str, dict[str, float]]:
    """Return the estimates of one seed by quantity. Raises ValueError without enough valid runs."""
    with tempfile.TemporaryDirectory(prefix="wattwire-bench-") as name:
        runs = {load: run_campaign(LOADS[load], seed, Path(name, load)) for load in LOADS}
    estimates = {name: estimate(runs["paced"][name]) for name in RESPONSES}
    estimates["rate"] = estimate(runs["saturating"]["rate"])
    estimates[ABOVE] = estimate_above(runs["paced"]["delay"], runs["plain"]["delay"])
    return estimates


# -- other programs --------------------------------------------------------------------------------


def reference(seed: int) -> dict[str, float | str]:
    """Return what irtt and iperf3 print about the planted link, or why they are absent."""
    absent = [name for name in ("irtt", "iperf3") if shutil.which(name) is None]
    if absent:
        return {"absent": f"{', '.join(absent)} not installed (Debian: apt install irtt iperf3)"}
    with (
        tempfile.TemporaryDirectory(prefix="wattwire-bench-") as name,
        Hosts(read_rig(RIG, "bench"), Path(name, "state")) as hosts,
        hosts.network("planted", Path(name), seed) as network,
        contextlib.ExitStack() as running,
    ):
        near, far = (host.pid for host in hosts.by_name.values())
        address = network.addresses["far"]
        start(running, inside(far, "irtt", "server", "-i", "0", "-b", address))
        start(running, inside(far, "iperf3", "-s", "-B", address))
        output = Path(name, "irtt.json")
        ping = ("irtt", "client", "-Q", "-i", "1ms", "-d", "10s", "-l", str(PAYLOAD_BYTES),
                "-o", str(output), address)  # fmt: skip
        subprocess.run(inside(near, *ping), check=True, timeout=HANG_S)
        stream = ("iperf3", "-c", address, "-u", "-b", "20M", "-t", "2", "-J",
                  "-l", str(PAYLOAD_BYTES))  # fmt: skip
        done = subprocess.run(
            inside(near, *stream), check=True, timeout=HANG_S, capture_output=True, text=True
        )
        return of_other_programs(json.loads(output.read_text()), json.loads(done.stdout))


def of_other_programs(irtt: Mapping[str, Any], iperf3: Mapping[str, Any]) -> dict[str, Any]:
    """Return delay (ms), loss and rate (Mbit/s, of payload) from the output of irtt and iperf3."""
    counts, total = irtt["stats"], iperf3["end"]["sum"]
    return {
        "irtt: mean delay, ms": counts["send_delay"]["mean"] / 1e6,
        "irtt: median delay variation (IPDV), ms": counts["ipdv_send"]["median"] / 1e6,
        "irtt: loss up, share": counts["upstream_loss_percent"] / 100,
        "iperf3: payload received, Mbit/s": total["bits_per_second"]
        / 1e6
        * (1 - total["lost_percent"] / 100),
    }


# -- results ---------------------------------------------------------------------------------------


def read_journal(path: Path) -> dict[int, dict[str, Any]]:
    """Return seed → line of a file, whose last line may be incomplete."""
    lines: dict[int, dict[str, Any]] = {}
    for text in path.read_text().splitlines() if path.exists() else ():
        with contextlib.suppress(json.JSONDecodeError):
            line = json.loads(text)
            lines[line["seed"]] = line
    return lines


def measure(seeds: Iterable[int], journal: Path) -> None:
    """Measure the seeds that the journal lacks, and add a line for each."""
    known = read_journal(journal)
    missing = [seed for seed in seeds if seed not in known]
    for number, seed in enumerate(missing):
        try:
            line: dict[str, Any] = {"seed": seed, "estimates": measure_seed(seed)}
            if number == 0:
                line["reference"] = reference(seed)
        except (*BROKEN, WattwireError) as error:
            lose_pair("planted links", number, len(missing), error)
            continue
        with journal.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(f"  seed {seed}: {words(line['estimates'])}", file=sys.stderr, flush=True)


def words(estimates: Mapping[str, Mapping[str, float]]) -> str:
    return "; ".join(
        f"{name} {e['low']:.4g} to {e['high']:.4g}, log {e['log']:.4g}"
        for name, e in estimates.items()
    )


def holds(value: Mapping[str, float]) -> bool:
    return value["low"] <= value["log"] <= value["high"]


def half_width(value: Mapping[str, float]) -> float:
    """Return the half-width of an interval relative to its centre."""
    return (value["high"] - value["low"]) / (value["high"] + value["low"])


def deviation(value: Mapping[str, float]) -> float:
    """Return the difference of an interval's centre from the log's value, relative to that."""
    return (value["low"] + value["high"]) / 2 / value["log"] - 1


def verdict_of(held: int, seeds: int, held_min: int = HELD_MIN, planned: int = SEEDS) -> str:
    """Return the verdict on the number of seeds that hold; the promise is for `planned` seeds."""
    if seeds - held > planned - held_min and held * planned < held_min * seeds:
        return "failed"
    if seeds < planned:
        return f"undecided (needs {planned} seeds)"
    return "passed" if held * planned >= held_min * seeds else "failed"


def table(lines: Sequence[Mapping[str, Any]]) -> str:
    """Return the verdicts over all seeds as a Markdown table."""
    rows = [
        "| quantity | intervals with the log's value | promised | verdict "
        "| half-width, median | promised | verdict | estimate above the log, median |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in lines[0]["estimates"] if lines else ():
        values = [line["estimates"][name] for line in lines]
        held = sum(map(holds, values))
        width = float(np.median([half_width(value) for value in values]))
        most = HALF_WIDTH_MAX.get(name, OTHER_HALF_WIDTH_MAX)
        narrow = "passed" if width <= most else "failed"
        rows.append(
            f"| {name} | {held} of {len(values)} | ≥ {HELD_MIN} of {SEEDS} "
            f"| {verdict_of(held, len(values))} | {width:.2%} | ≤ {most:.0%} | {narrow} "
            f"| {float(np.median([deviation(value) for value in values])):+.2%} |"
        )
    return "\n".join(rows)


def report(first_seed: int, seeds: int, journal: Path) -> None:
    """Measure the seeds, and print the verdict over all seeds of the journal."""
    measure(range(first_seed, first_seed + seeds), journal)
    lines = [line for _, line in sorted(read_journal(journal).items())]
    print(f"\n## A planted link: intervals over {RUNS} runs, and the log of frames\n")
    print(table(lines))
    for line in lines:
        for name, value in line.get("reference", {}).items():
            shown = value if isinstance(value, str) else f"{value:.4g}"
            print(f"\nseed {line['seed']}, for reference: {name}: {shown}", end="")
    print(flush=True)

"""Compare bridges with bare loops of the same two libraries, and measure the memory of bridges.

A bridge's folder contains its bare loop (`bare.py`), which replaces the bridge's program in a copy
of the folder. Both are runs of one campaign between two namespaces over veth, with the same nodes,
meters and length, and one run of each per block, in random order.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy import stats

from bench.campaigns import run_study
from bench.pairs import Comparison, compared, lose_pair, table
from wattwire.catalog import Catalog
from wattwire.model.deployment import BRIDGE
from wattwire.store import Campaign

BARE = "bare.py"
STOCK = "zenoh-bridge-ros2dds"
LATENCY_PROMISE, CPU_PROMISE = 1.05, 1.10
SOAK_BYTES, SOAK_HZ, SOAK_DEPTH = 2 << 20, 10, 10
FILLING_S = 60.0
"""Before a soak: the time in which queues and the allocator's free lists grow to their size."""
MEMORY_MIB_MAX, SLOPE_MIB_MAX = 300.0, 1.0
BATCHES = 20
"""Parts of a soak whose means are independent enough for an interval of the slope."""
CONFIDENCE = 0.95
BYTES_PER_MIB, NS_PER_MINUTE = 1 << 20, 60e9
RIG = """
[hosts]
near = { kind = "netns" }
far = { kind = "netns" }
[networks.wire]
[placements.trip]
sender = "near"
relay = "far"
receiver = "near"
service = "far"
"""
STUDY = """
title = "Bridges and bare loops"
[factors]
bridge = [{bridges}]
[fixed]
cell = "{cell}"
pattern = "pipeline"
placement = "trip"
rate_hz = {rate_hz}
payload_bytes = {payload_bytes}
"settings.depth" = {depth}
[plan]
blocks = {blocks}
primary = "bridge"
controls = false
duration_s = {duration_s}
warmup_s = 0.5
baseline_s = 0.1
quiet_ms = 200
linger_ms = 2000
retries = 0
quiet_wait_s = 0.0
"""
PACED: dict[str, Any] = {"rate_hz": 100, "payload_bytes": 64, "depth": 100, "duration_s": 4.0}
"""The queues hold a second, so that other load delays messages but does not drop them."""
ROUND_TRIP, CPU = "round trip", "CPU per message"
PROMISES = {ROUND_TRIP: LATENCY_PROMISE, CPU: CPU_PROMISE}
Sides = tuple[tuple[float, ...], tuple[float, ...]]


class Soak(NamedTuple):
    """The memory of a bridge process over time."""

    process: str
    rss_max_mib: float
    slope_mib_per_min: float
    slope_low: float
    slope_high: float
    """Two-sided 95 % limits of the slope."""


# -- pairs -----------------------------------------------------------------------------------------


def comparisons(pairs: int) -> Iterator[Comparison]:
    """Yield the round trip and the CPU time per message of each bridge against its bare loop."""
    catalog = Catalog()
    for name in sorted(catalog.bridges):
        folder = catalog.bridges[name].parent
        if not (folder / BARE).exists():
            print(f"  {name}: absent: its folder has no {BARE}", flush=True)
            continue
        with tempfile.TemporaryDirectory(prefix="wattwire-bench-") as place:
            bare = with_bare_loop(folder, Path(place) / "root")
            study = {"bridges": [name, bare], "cell": inner_cell(catalog, name), "blocks": pairs}
            rows = campaign_rows(Path(place), {**PACED, **study})
        sides = paired(rows, name, bare, pairs)
        for response, promise in PROMISES.items():
            label = f"{name} against its bare loop, {response}"
            yield from compared(label, "us", sides[response], promise)
    print(f"  {STOCK}: absent: {missing_stock()}", flush=True)


def missing_stock() -> str:
    """Return why the bridge of Zenoh's developers is not measured."""
    if shutil.which(STOCK) is None:
        return "not on PATH"
    return "it keeps no records of messages, which wattwire requires of a bridge"


def with_bare_loop(folder: Path, root: Path) -> str:
    """Copy a bridge's folder below `root` with the bare loop as its program; return its name."""
    name = f"bare-{folder.name}"
    copy = root / "bridges" / name
    shutil.copytree(folder, copy)
    manifest = copy / "bridge.toml"
    text = manifest.read_text(encoding="utf-8")
    program = "{source}/bridge.py"
    if text.count(program) != 1:
        raise ValueError(f"{folder / manifest.name}: found no {program} in argv")
    manifest.write_text(text.replace(program, "{source}/" + BARE), encoding="utf-8")
    return name


def inner_cell(catalog: Catalog, name: str) -> str:
    """Return the cell of the nodes inside the hosts: that whose modules the bridge imports."""
    bridge = catalog.bridge(name)
    assert bridge.inner_folder is not None, f"{name}: no inner_cell"
    return f"{bridge.middleware.name}/{bridge.inner_folder.name}"


def campaign_rows(folder: Path, values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Measure a campaign in `folder`; return the rows of its runs."""
    listed = ", ".join(f'"{name}"' for name in values["bridges"])
    (folder / "rig.toml").write_text(RIG)
    roots = [str(folder / "root"), os.environ.get("WATTWIRE_PATH", "")]
    study = STUDY.format(**{**values, "bridges": listed})
    path = os.pathsep.join(filter(None, roots))
    stored = Campaign(
        run_study(folder, study, "--rig", "rig.toml", output=sys.stderr, WATTWIRE_PATH=path)
    )
    try:
        return stored.rows()
    finally:
        stored.close()


def paired(rows: Sequence[Mapping[str, Any]], ours: str, bare: str, pairs: int) -> dict[str, Sides]:
    """Return response → values of (ours, bare) by block; a block without both is a lost pair."""
    by_block: dict[int, dict[str, Mapping[str, Any]]] = {}
    for row in rows:
        by_block.setdefault(int(row["block"]), {})[str(row["factor.bridge"])] = row
    values: dict[str, tuple[list[float], list[float]]] = {r: ([], []) for r in PROMISES}
    for number, block in enumerate(sorted(by_block)):
        sides = by_block[block]
        faults = {name: fault_of(sides.get(name)) for name in (ours, bare)}
        if any(faults.values()):
            reasons = [f"{name}: {fault}" for name, fault in faults.items() if fault]
            lose_pair(ours, number, pairs, RuntimeError("; ".join(reasons)))
            continue
        for side, name in enumerate((ours, bare)):
            values[ROUND_TRIP][side].append(float(sides[name]["since_send_p50_us"]))
            values[CPU][side].append(cpu_us_per_message(sides[name]))
    return {response: (tuple(v[0]), tuple(v[1])) for response, v in values.items()}


def fault_of(row: Mapping[str, Any] | None) -> str:
    """Return why a run does not count, or "": each message must have made its round trip."""
    if row is None:
        return "no run"
    if row["outcome"] != "completed":
        return str(row["outcome"])
    if not row["sent"] or row["received_unique"] != row["sent"]:
        return f"{row['received_unique']} of {row['sent']} messages arrived"
    return ""


def cpu_us_per_message(row: Mapping[str, Any]) -> float:
    """Return the CPU time (us) of all bridge processes per message."""
    shares = [value for key, value in row.items() if key.startswith(f"cpu_share.{BRIDGE}.")]
    return 1e6 * sum(map(float, shares)) / float(row["rate_hz_achieved"])


# -- memory ----------------------------------------------------------------------------------------


def soaks(seconds: float) -> Iterator[tuple[str, Soak]]:
    """Yield (bridge, memory) for each process of each bridge, at 2 MiB and 10 Hz."""
    catalog = Catalog()
    for name in sorted(catalog.bridges):
        with tempfile.TemporaryDirectory(prefix="wattwire-bench-") as place:
            values = {
                "bridges": [name], "cell": inner_cell(catalog, name), "blocks": 1,
                "rate_hz": SOAK_HZ, "payload_bytes": SOAK_BYTES, "depth": SOAK_DEPTH,
                "duration_s": FILLING_S + seconds,
            }  # fmt: skip
            (row,) = campaign_rows(Path(place), values)
            print(
                f"  {name}: {row['outcome']}, {row['received_unique']} of {row['sent']} messages",
                flush=True,
            )
            stored = Campaign(Path(place) / "campaign")
            try:
                window = stored.run(row["run"])["window"]
                readings = pl.read_parquet(
                    stored.folder(row["run"]) / "quantities.parquet", glob=False
                )
            finally:
                stored.close()
            yield from ((name, soak) for soak in memory_of(readings, window))


def memory_of(
    readings: pl.DataFrame, window: Mapping[str, int], prefix: str = f"{BRIDGE}-"
) -> Iterator[Soak]:
    """Yield the memory of each process of a bridge in the window; the slope excludes FILLING_S.

    The names of the processes begin with `prefix`.
    """
    chosen = readings.filter(
        pl.col("quantity") == "rss",
        pl.col("subject").str.starts_with(prefix),
        pl.col("t_ns").is_between(window["start_ns"], window["end_ns"]),
    )
    series = chosen.sort("subject", "t_ns").group_by("subject", maintain_order=True)
    for (process,), rows in series:
        minutes = (rows["t_ns"].to_numpy() - window["start_ns"]) / NS_PER_MINUTE
        rss_mib = rows["value"].to_numpy() / BYTES_PER_MIB
        filled = minutes >= FILLING_S / 60
        yield Soak(str(process), float(rss_mib.max()), *slope(minutes[filled], rss_mib[filled]))


def slope(minutes: np.ndarray, values: np.ndarray) -> tuple[float, float, float]:
    """Return the slope per minute with its two-sided 95 % limits.

    Successive readings of memory depend on each other, so the limits are those of a regression on
    the means of BATCHES equal parts (batch means). With readings in fewer than three parts, they
    are infinite.
    """
    if not minutes.size:
        return 0.0, -np.inf, np.inf
    edges = np.linspace(minutes[0], minutes[-1], BATCHES + 1)[1:-1]
    part = np.searchsorted(edges, minutes, side="right")
    chosen = [part == number for number in np.unique(part)]
    means = np.array([[minutes[c].mean(), values[c].mean()] for c in chosen])
    if len(means) < 3:
        return 0.0, -np.inf, np.inf
    fitted = stats.linregress(means[:, 0], means[:, 1])
    margin = stats.t.ppf((1 + CONFIDENCE) / 2, len(means) - 2) * fitted.stderr
    return fitted.slope, fitted.slope - margin, fitted.slope + margin


def verdict(soak: Soak, memory_mib_max: float = MEMORY_MIB_MAX) -> str:
    """Return whether the memory and the upper limit of its slope meet their targets."""
    if soak.rss_max_mib > memory_mib_max or soak.slope_low >= SLOPE_MIB_MAX:
        return "failed"
    return "passed" if soak.slope_high < SLOPE_MIB_MAX else "undecided"


# -- report ----------------------------------------------------------------------------------------


def report(pairs: int, soak_s: float | None) -> None:
    """Print the comparisons, or the memory over a soak of `soak_s` seconds."""
    if soak_s is None:
        title = f"Bridges compared with a bare loop of their libraries, {PACED['payload_bytes']} B"
        print(f"\n## {title}, {PACED['rate_hz']} Hz, over veth\n")
        print(table(list(comparisons(pairs))), flush=True)
        return
    print(f"\n## Memory of bridges at {SOAK_BYTES >> 20} MiB and {SOAK_HZ} Hz, {soak_s:g} s\n")
    print_memory(soaks(soak_s), MEMORY_MIB_MAX)


def print_memory(soaks: Iterable[tuple[str, Soak]], memory_mib_max: float) -> None:
    """Print a table of (bridge, memory)."""
    rows = [
        f"| {name} {soak.process} | {soak.rss_max_mib:.0f} | {soak.slope_mib_per_min:.2f} "
        f"({soak.slope_low:.2f} … {soak.slope_high:.2f}) | {verdict(soak, memory_mib_max)} |"
        for name, soak in soaks
    ]
    print(
        f"\n| process | RSS, MiB, at most (≤ {memory_mib_max:g}) | slope, MiB/min, 95 % "
        f"(< {SLOPE_MIB_MAX:g}) | verdict |\n|---|---|---|---|"
    )
    print("\n".join(rows), flush=True)

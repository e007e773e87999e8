"""Plant a delay in one layer of unmodified rclpy scripts, and compare it with the layer's shift.

A second preloaded library spins for a drawn time in one function. The layer with this function
shall be longer by this time, and no other layer.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from scipy import stats

from bench.nodes import Bench
from wattwire.catalog.layer_tables import layer_tables
from wattwire.model.layers import LAYERS
from wattwire.rig.builds import merge_env

ROOT = Path(__file__).resolve().parents[2]
LAUNCH = ROOT / "middleware" / "ros2" / "tests" / "graph" / "launch.sh"
RMW = "rmw_fastrtps_cpp"
"""The RMW that an installation uses without RMW_IMPLEMENTATION."""
CELL, TOPIC = "ros2/python", "/chatter"
MESSAGES = 100
DELAYS_NS = 200_000, 2_000_000
SEED = 34
HANG_S = 120.0
CONFIDENCE, HALF_WIDTH_MAX, OTHER_MAX = 0.95, 0.05, 0.1
DOMAINS = 100


@dataclass(frozen=True)
class Place:
    """A function within a layer. The delay is before or after its call.

    Without a symbol it is each function of the layer's point that the RMW calls.
    """

    layer: str
    symbol: str = ""
    is_after: bool = False

    def symbols(self, environment: Mapping[str, str]) -> list[str]:
        """Return the symbols of the functions, for nodes with these variables."""
        return [self.symbol] if self.symbol else called_symbols(self.layer, environment)


PLACES = (
    Place("rcl_publish", "rcl_publish"),
    Place("rmw_publish", "rmw_publish"),
    Place("dds_write"),
    Place("wake_up", "rmw_wait", is_after=True),
    Place("executor", "rcl_wait", is_after=True),
    Place("rcl_take", "rcl_take"),
    Place("rmw_take", "rmw_take_with_info"),
    Place("dds_take"),
)


@dataclass(frozen=True)
class Slopes:
    """Slope of a layer's shift over the planted delay with its interval, and of the other layers.

    The interval is simultaneous over all places, and those of the other layers over all of these.
    """

    layer: str
    pairs: int
    slope: float
    half_width: float
    other_low: float
    """Largest lower limit of an absolute slope of the other layers; 0 if their intervals have 0."""
    other_high: float
    """Largest upper limit of an absolute slope of the other layers."""

    @property
    def verdict(self) -> str:
        """Return whether the slope is 1 in its narrow interval, and below OTHER_MAX elsewhere."""
        if abs(self.slope - 1) > self.half_width or self.other_low > OTHER_MAX:
            return "failed"
        is_narrow = self.half_width <= HALF_WIDTH_MAX and self.other_high <= OTHER_MAX
        return "passed" if is_narrow else "undecided"

    @property
    def row(self) -> str:
        """Return the row of a Markdown table."""
        return (
            f"| {self.layer} | {self.pairs} | {self.slope:.3f} ± {self.half_width:.3f} | "
            f"{self.other_high:.3f} | {self.verdict} |"
        )


def called_symbols(point: str, environment: Mapping[str, str]) -> list[str]:
    """Return the symbols of a point of the tables of layers that the RMW imports."""
    of_point = {table.symbol for table in layer_tables([ROOT]) if table.point == point}
    name = environment.get("RMW_IMPLEMENTATION") or RMW
    paths = [
        path
        for folder in environment["LD_LIBRARY_PATH"].split(os.pathsep)
        for path in Path(folder).glob(f"lib{name.removesuffix('_cpp')}*.so*")
    ]
    assert paths, f"found no library of {name} in LD_LIBRARY_PATH"
    listed = subprocess.run(
        ["nm", "-D", "--undefined-only", *paths], capture_output=True, text=True, check=True
    ).stdout
    imported = {line.split()[-1].split("@")[0] for line in listed.splitlines() if " U " in line}
    called = sorted(imported & of_point)
    assert called, f"{name} imports no function of the point {point}"
    return called


def library(folder: Path, symbol: str) -> Path:
    """Return the library that delays this function."""
    target = folder / f"libplanted_{hashlib.sha256(symbol.encode()).hexdigest()[:12]}.so"
    source = Path(__file__).parents[1] / "bare" / "planted_delay.c"
    options = ["-O2", "-shared", "-fPIC", f"-DSYMBOL={symbol}"]
    subprocess.run(["cc", *options, "-o", target, source, "-ldl"], check=True)
    return target


def planted(folder: Path, place: Place, symbols: Sequence[str], delay_ns: int) -> dict[str, str]:
    """Return the variables that plant a delay in the functions of a place."""
    after = {"PLANTED_AFTER": "1"} if place.is_after else {}
    preloaded = ":".join(str(library(folder, symbol)) for symbol in symbols)
    return {"LD_PRELOAD": preloaded, "PLANTED_NS": str(delay_ns), **after}


def medians_ns(folder: Path, python: str, domain: int, variables: dict[str, str]) -> np.ndarray:
    """Return the median time (ns) of each layer of TOPIC in one run; NaN for absent layers."""
    options = ["--layers", "--no-report", "--json", "--for", "60s", "--baseline", "0.2s"]
    command = [str(LAUNCH), python, str(MESSAGES)]
    subprocess.run(
        [sys.executable, "-m", "wattwire", "exec", *options, "-o", str(folder), "--", *command],
        env={**os.environ, "ROS_DOMAIN_ID": str(domain), **variables},
        capture_output=True, text=True, check=True, timeout=HANG_S,
    )  # fmt: skip
    runs = [json.loads(path.read_text())["layers"] for path in folder.glob("runs/*/run.json")]
    assert runs and not any(run["lost_events"] for run in runs)
    (table,) = sorted(folder.glob("runs/*/layers.parquet"))[-1:]
    frame = pl.read_parquet(table, glob=False).filter(pl.col("topic") == TOPIC)
    medians = [frame[layer.column].median() for layer in LAYERS]
    return np.array([np.nan if m is None else float(m) for m in medians])  # type: ignore[arg-type]


def slopes(layer: str, delays_ns: np.ndarray, shifts_ns: np.ndarray) -> Slopes:
    """Return the slopes of the shifts, of shape (pairs, layers), over the delays (pairs)."""
    names = [item.name for item in LAYERS]
    slope, half_width = _interval(delays_ns, shifts_ns[:, names.index(layer)], len(PLACES))
    columns = [
        shifts_ns[:, at]
        for at, name in enumerate(names)
        if name != layer and not np.isnan(shifts_ns[:, at]).any()
    ]
    others = [_interval(delays_ns, column, len(PLACES) * len(columns)) for column in columns]
    low = max((max(0.0, abs(other) - width) for other, width in others), default=0.0)
    high = max((abs(other) + width for other, width in others), default=0.0)
    return Slopes(layer, len(delays_ns), slope, half_width, low, high)


def _interval(delays_ns: np.ndarray, shifts_ns: np.ndarray, family: int) -> tuple[float, float]:
    """Return the slope and the half-width of its interval, one of `family` simultaneous ones."""
    level = 1 - (1 - CONFIDENCE) / family
    fit = stats.linregress(delays_ns, shifts_ns)
    quantile = stats.t.ppf((1 + level) / 2, len(delays_ns) - 2)
    return float(fit.slope), float(quantile * fit.stderr)


def results(workbench: Bench, pairs: int, places: Sequence[Place] = PLACES) -> Iterator[Slopes]:
    """Yield the slopes of each place, from pairs of neighbouring runs with and without a delay."""
    cell = workbench.cell(CELL)
    if cell is None:
        return
    draw = np.random.default_rng(SEED)
    for place in places:
        symbols = place.symbols(merge_env(dict(os.environ), cell.env))
        delays_ns = draw.integers(*DELAYS_NS, pairs)
        shifts = []
        for number, delay_ns in enumerate(delays_ns):
            sides = [planted(workbench.folder, place, symbols, int(delay_ns)), {}]
            order = (0, 1) if number % 2 == 0 else (1, 0)
            medians = {}
            for side in order:
                folder = workbench.folder / f"{place.layer}-{number}-{side}"
                domain = 1 + int(draw.integers(DOMAINS))
                medians[side] = medians_ns(folder, cell.argv[0], domain, sides[side])
            shifts.append(medians[0] - medians[1])
        yield slopes(place.layer, delays_ns.astype(float), np.array(shifts))

"""Simulated campaigns for tests of detectors.

A function draws the latencies of each run. A campaign has four payloads, three rates and two
languages in blocks, like a study. Runs and blocks have random effects. Only planted effects depend
on a level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from wattwire.analysis.dataset import Evidence
from wattwire.analysis.topics.findings.detector import Searched
from wattwire.analysis.topics.findings.runs import Run
from wattwire.model.derived import FloatArray
from wattwire.model.setting_purposes import NAGLE_OFF, QUICK_ACK, RECEIVE_BUFFER_BYTES, REPLY_WAIT
from wattwire.model.stored_study import StoredStudy
from wattwire.store import Messages

Draw = Callable[[np.random.Generator, Mapping[str, Any], float], FloatArray]
FACTORS: dict[str, tuple[Any, ...]] = {
    "language": ("one", "other"),
    "payload_bytes": (64, 1024, 16_384, 131_072),
    "rate_hz": (10.0, 100.0, 1000.0),
}
PURPOSES = {
    "made_up": {"at_once": NAGLE_OFF, "ack_now": QUICK_ACK, "room": RECEIVE_BUFFER_BYTES},
    "looping": {"looks": REPLY_WAIT},
}
MESSAGES = 60


class Reader:
    """The purposes of settings and the machine of a campaign, which detectors read."""

    path = Path("made-up")
    study = StoredStudy("made-up")
    plan: list[dict[str, Any]] = []
    machine: dict[str, Any] = {
        "setting_purposes": PURPOSES,
        "hosts": {"local": {"facts": [{"key": "idle_driver", "value": "made_up"}]}},
    }

    def summary(self) -> pl.DataFrame:
        return pl.DataFrame()

    def run(self, run_id: str) -> dict[str, Any]:
        raise KeyError(run_id)

    def documents(self, run_ids: Iterable[str]) -> Iterator[dict[str, Any]]:
        return map(self.run, run_ids)

    def recorded(self, run_id: str) -> Messages:
        raise KeyError(run_id)

    def records_path(self, run_id: str) -> Path:
        raise KeyError(run_id)


def evidence_of(factors: Mapping[str, Sequence[Any]]) -> Evidence:
    """Return the evidence of a campaign with these factors and no runs."""
    empty = pl.DataFrame()
    levels = {name: tuple(known) for name, known in factors.items()}
    primary = next(iter(levels))
    return Evidence(
        Reader(), Reader.study, [], empty, empty, empty, empty, empty, levels, primary, {}
    )


def campaign(
    rng: np.random.Generator,
    draw: Draw,
    blocks: int = 3,
    factors: Mapping[str, Sequence[Any]] = FACTORS,
    effective: Callable[[Mapping[str, Any]], dict[str, Any]] | None = None,
    run_sd: float = 0.1,
    middleware: str = "made_up",
) -> Searched:
    """Return the evidence and the valid runs of a simulated campaign.

    `draw(rng, levels, scale)` returns latencies in µs (lost: +inf). `scale` is the product of the
    effects of the block, the position and the run on the latency.
    """
    runs = []
    for block in range(1, blocks + 1):
        of_block = float(np.exp(rng.normal(0, 0.2)))
        cells = list(product(*factors.values()))
        for place, at in enumerate(rng.permutation(len(cells))):
            levels = dict(zip(factors, cells[at], strict=True))
            drift = 1.0 + 0.2 * place / len(cells)
            scale = of_block * drift * float(np.exp(rng.normal(0, run_sd)))
            values = draw(rng, levels, scale)
            told = {"transport": "tcp/ipv4", **(effective(levels) if effective else {})}
            told = {name: value for name, value in told.items() if value is not None}
            node = {"cell": f"{middleware}/one", "host": "local", "ready": {"effective": told}}
            finite = np.sort(values)[max(0, -(-values.size // 2) - 1)]
            p50 = float(finite) if np.isfinite(finite) else float("inf")
            loss = float(np.mean(np.isinf(values)))
            runs.append(Run(f"b{block}-p{place}", block, levels, values, p50, loss, [node, node]))
    return Searched(evidence_of(factors), runs)


def grown(levels: Mapping[str, Any], base_us: float) -> float:
    """Return a latency in µs that increases with the payload by 1 ns per byte."""
    return base_us + 0.001 * float(levels.get("payload_bytes", 64))


def narrow(rng: np.random.Generator, levels: Mapping[str, Any], scale: float) -> FloatArray:
    """Draw latencies of a quiet machine, which are 80 µs plus the time of the payload, ± 20 %."""
    return scale * grown(levels, 80.0) * np.exp(rng.normal(0, 0.2, MESSAGES))


def heavy(rng: np.random.Generator, levels: Mapping[str, Any], scale: float) -> FloatArray:
    """Draw latencies with a Pareto tail that exceeds 40 ms in one of twenty messages."""
    return scale * (grown(levels, 0.0) + 5000.0 * (1 + rng.pareto(1.5, MESSAGES)))


def wide(rng: np.random.Generator, levels: Mapping[str, Any], scale: float) -> FloatArray:
    """Draw lognormal latencies over two decades with a median near 25 ms."""
    return scale * grown(levels, 25_000.0) * np.exp(rng.normal(0, 1.0, MESSAGES))


def two_modes(rng: np.random.Generator, levels: Mapping[str, Any], scale: float) -> FloatArray:
    """Draw latencies with two modes, at the base latency and at 22 ms (not a delayed ACK)."""
    slow = rng.random(MESSAGES) < 0.3
    values = scale * grown(levels, 150.0) * np.exp(rng.normal(0, 0.2, MESSAGES))
    return np.where(slow, 22_000.0 * np.exp(rng.normal(0, 0.05, MESSAGES)), values)


def drifting(rng: np.random.Generator, levels: Mapping[str, Any], scale: float) -> FloatArray:
    """Draw latencies of a queue that fills. They increase to 200 ms during the run."""
    ramp = np.linspace(0.0, 1.0, MESSAGES)
    noise = np.exp(rng.normal(0, 0.1, MESSAGES))
    return scale * (grown(levels, 100.0) + 200_000.0 * ramp) * noise


def clustered(rng: np.random.Generator, levels: Mapping[str, Any], scale: float) -> FloatArray:
    """Draw autocorrelated latencies, AR(1) with coefficient 0.9 on the log scale, near 40 ms."""
    steps = rng.normal(0, 0.44, MESSAGES)
    state = np.empty(MESSAGES)
    last = rng.normal(0, 1.0)
    for at, step in enumerate(steps):
        last = state[at] = 0.9 * last + step
    return scale * grown(levels, 15_000.0) * np.exp(state)


def uneven(rng: np.random.Generator, levels: Mapping[str, Any], scale: float) -> FloatArray:
    """Draw latencies whose scatter between runs is much larger in half of the treatments."""
    own = 0.6 if levels["language"] == "one" else 0.02
    return float(np.exp(rng.normal(0, own))) * narrow(rng, levels, scale)


def lossy(rng: np.random.Generator, levels: Mapping[str, Any], scale: float) -> FloatArray:
    """Draw latencies in which one of three runs loses a burst, at any payload and rate."""
    values = narrow(rng, levels, scale)
    if rng.random() < 1 / 3:
        begin = rng.integers(0, MESSAGES - 5)
        values[begin : begin + rng.integers(1, 5)] = np.inf
    return values


def working(rng: np.random.Generator, levels: Mapping[str, Any], scale: float) -> FloatArray:
    """Draw latencies of work that always takes between one and two periods of a loop of 10 ms."""
    return 10_050.0 + 700.0 * scale * np.exp(rng.normal(0, 0.3, MESSAGES))


NULLS: dict[str, Draw] = {
    draw.__name__: draw
    for draw in (narrow, heavy, wide, two_modes, drifting, clustered, uneven, lossy, working)
}


SWITCHED: dict[str, tuple[Any, ...]] = {
    "language": ("one", "other"),
    "payload_bytes": (64, 1024, 131_072),
    "settings.at_once": (False, True),
}


def waiting(rng: np.random.Generator, levels: Mapping[str, Any], scale: float) -> FloatArray:
    """Draw latencies in which short payloads wait for an acknowledgement unless sent at once."""
    values = narrow(rng, levels, scale)
    held = not levels.get("settings.at_once", False) and levels["payload_bytes"] < 65_536
    return values + 40_000.0 * held * np.exp(rng.normal(0.03, 0.02, MESSAGES))


def effective_of(levels: Mapping[str, Any]) -> dict[str, Any]:
    return {"at_once": levels.get("settings.at_once", False)}

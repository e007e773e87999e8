"""Compare wattwire with a peer in pairs of measurements in ABBA order, with verdicts."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy import stats

from contract.conformance.cell import Broken

T = TypeVar("T")
PAIRS = 20
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Comparison:
    """The geometric-mean ratio ours/peer of interleaved pairs, and its promise.

    The promise is an upper bound for costs. With `at_least`, it is a lower bound for speeds.
    """

    name: str
    unit: str
    ours: tuple[float, ...]
    peer: tuple[float, ...]
    promise: float | None
    """The promised bound of the ratio; None without a promise."""
    at_least: bool = False

    @property
    def logs(self) -> np.ndarray:
        return np.log(np.array(self.ours) / np.array(self.peer))

    @property
    def ratio(self) -> float:
        return float(np.exp(self.logs.mean()))

    def limit(self, side: int, confidence: float = CONFIDENCE) -> float:
        """Return the one-sided confidence limit of the ratio: upper for side 1, lower for −1.

        It is a t limit over the log ratios of the pairs, with n − 1 degrees of freedom.
        """
        count = len(self.ours)
        error = float(self.logs.std(ddof=1)) / math.sqrt(count)
        return float(np.exp(self.logs.mean() + side * stats.t.ppf(confidence, count - 1) * error))

    @property
    def p(self) -> float:
        """Return the one-sided p-value of the hypothesis that the ratio breaks the promise."""
        assert self.promise is not None
        alternative = "greater" if self.at_least else "less"
        return float(
            stats.ttest_1samp(self.logs, math.log(self.promise), alternative=alternative).pvalue
        )

    @property
    def broken(self) -> bool:
        """Return whether the one-sided limit excludes all ratios that satisfy the promise."""
        assert self.promise is not None
        if self.at_least:
            return self.limit(1) < self.promise
        return self.limit(-1) > self.promise


BROKEN = (Broken, OSError, RuntimeError, ValueError, subprocess.SubprocessError)
"""Errors of a peer that fails, hangs or prints invalid output. Other errors are our faults."""
lost_pairs: list[str] = []
"""Pairs without a result, with the reasons. If there are any, the bench exits with 1."""


def lose_pair(name: str, number: int, pairs: int, error: BaseException) -> None:
    """Record pair `number` (from 0) of a comparison as lost, with the reason."""
    if isinstance(error, subprocess.TimeoutExpired):
        reason = f"no end within {error.timeout:g} s"
    else:
        reason = " ".join(str(error).split())[-300:] or type(error).__name__
    lost_pairs.append(f"{name}, pair {number + 1} of {pairs}: {reason}")
    print(f"  lost: {lost_pairs[-1]}", flush=True)


def abba(
    name: str, ours: Callable[[], float], peer: Callable[[], float], pairs: int = PAIRS
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Measure `pairs` pairs, reversing the order from pair to pair; return (ours, peer)."""
    columns = interleaved(name, (ours, peer), pairs)
    return columns[0], columns[1]


def interleaved(
    name: str, sides: Sequence[Callable[[], T]], pairs: int
) -> tuple[tuple[T, ...], ...]:
    """Measure all sides `pairs` times, reversing their order each time; return a column per side.

    If a side fails, the pair is lost and the others continue.
    """
    rows = []
    for number in range(pairs):
        forward = list(range(len(sides)))
        try:
            values = {side: sides[side]() for side in (forward, forward[::-1])[number % 2]}
        except BROKEN as error:
            lose_pair(name, number, pairs, error)
            continue
        rows.append([values[side] for side in forward])
    return tuple(zip(*rows, strict=True)) if rows else ((),) * len(sides)


def compared(
    name: str,
    unit: str,
    sides: tuple[tuple[float, ...], tuple[float, ...]],
    promise: float | None,
    at_least: bool = False,
) -> Iterator[Comparison]:
    """Yield the comparison of (ours, peer).

    With fewer than two pairs, there is no interval and therefore no comparison.
    """
    if len(sides[0]) < 2:
        print(f"  {name}: absent: {len(sides[0])} of its pairs have a result", flush=True)
        return
    yield Comparison(name, unit, *sides, promise, at_least)


def verdicts(comparisons: Sequence[Comparison]) -> list[str]:
    """Return passed, failed or undecided for each comparison; "" without a promise.

    A comparison has passed if the one-sided limit satisfies the promise at the level of Holm's
    step-down over all promises. It has failed if the opposite limit breaks the promise at 95 %. All
    others are undecided and have not passed.
    """
    promised = [c for c in comparisons if c.promise is not None]
    passed: set[int] = set()
    for step, comparison in enumerate(sorted(promised, key=lambda c: c.p)):
        if comparison.p > (1 - CONFIDENCE) / (len(promised) - step):
            break
        passed.add(id(comparison))
    results = []
    for comparison in comparisons:
        if comparison.promise is None:
            results.append("")
        elif id(comparison) in passed:
            results.append("passed")
        else:
            results.append("failed" if comparison.broken else "undecided")
    return results


def table(comparisons: Sequence[Comparison]) -> str:
    """Return the comparisons as a Markdown table."""
    lines = [
        "| what | ours, median | peer, median | ratio | 95 % limits, one-sided | promised "
        "| verdict |",
        "|---|---|---|---|---|---|---|",
    ]
    for comparison, verdict in zip(comparisons, verdicts(comparisons), strict=True):
        sign = "≥" if comparison.at_least else "≤"
        promise = "–" if comparison.promise is None else f"{sign} {comparison.promise:g}"
        lines.append(
            f"| {comparison.name} | {np.median(comparison.ours):.4g} {comparison.unit} "
            f"| {np.median(comparison.peer):.4g} {comparison.unit} | {comparison.ratio:.3f} "
            f"| {comparison.limit(-1):.3f} … {comparison.limit(1):.3f} | {promise} | {verdict} |"
        )
    return "\n".join(lines)

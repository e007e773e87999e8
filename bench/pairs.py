"""Comparisons of wattwire with a peer: measurements in pairs in ABBA order, and their verdicts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

PAIRS = 20
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Comparison:
    """The geometric-mean ratio ours/peer of interleaved pairs, and its promise.

    The promise is an upper bound (costs: less is better) or, with `at_least`, a lower bound
    (speeds).
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

        It is a t limit over the pairs' log ratios, with n − 1 degrees of freedom.
        """
        count = len(self.ours)
        error = float(self.logs.std(ddof=1)) / math.sqrt(count)
        return float(np.exp(self.logs.mean() + side * stats.t.ppf(confidence, count - 1) * error))

    @property
    def p(self) -> float:
        """Return the one-sided p of the hypothesis that the ratio does not keep the promise."""
        assert self.promise is not None
        alternative = "greater" if self.at_least else "less"
        return float(
            stats.ttest_1samp(self.logs, math.log(self.promise), alternative=alternative).pvalue
        )

    @property
    def broken(self) -> bool:
        """Return whether the one-sided limit excludes all ratios that keep the promise."""
        assert self.promise is not None
        if self.at_least:
            return self.limit(1) < self.promise
        return self.limit(-1) > self.promise


def abba(
    ours: Callable[[], float], peer: Callable[[], float], pairs: int = PAIRS
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Measure `pairs` pairs, with the order reversed from pair to pair; return (ours, peer)."""
    values: tuple[list[float], list[float]] = ([], [])
    for pair in range(pairs):
        for side in ((0, 1), (1, 0))[pair % 2]:
            values[side].append((ours, peer)[side]())
    return tuple(values[0]), tuple(values[1])


def verdicts(comparisons: Sequence[Comparison]) -> list[str]:
    """Return passed, failed or undecided for each comparison, "" without a promise.

    Passed: the one-sided limit keeps the promise at the level of Holm's step-down over all
    promises. Failed: the opposite limit breaks it at 95 %. All others are undecided, which is not
    passed.
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
    """Return the comparisons as a table in Markdown."""
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

"""Ours and a peer, side by side in one run: pairs in ABBA order, and what they allow to say."""

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
    """The geometric-mean ratio ours/peer of interleaved pairs, and the promise it is held to.

    A promise is kept at most (costs: less is better) or, with `at_least`, at least (speeds).
    """

    name: str
    unit: str
    ours: tuple[float, ...]
    peer: tuple[float, ...]
    promise: float | None
    """The ratio promised; None where nothing is promised."""
    at_least: bool = False

    @property
    def logs(self) -> np.ndarray:
        return np.log(np.array(self.ours) / np.array(self.peer))

    @property
    def ratio(self) -> float:
        return float(np.exp(self.logs.mean()))

    def limit(self, side: int, confidence: float = CONFIDENCE) -> float:
        """The one-sided confidence limit of the ratio: upper for side 1, lower for −1.

        A t limit over the pairs' log ratios: n − 1 degrees of freedom.
        """
        count = len(self.ours)
        error = float(self.logs.std(ddof=1)) / math.sqrt(count)
        return float(np.exp(self.logs.mean() + side * stats.t.ppf(confidence, count - 1) * error))

    @property
    def p(self) -> float:
        """One-sided p of "the ratio does not keep the promise"."""
        assert self.promise is not None
        kept = "greater" if self.at_least else "less"
        return float(stats.ttest_1samp(self.logs, math.log(self.promise), alternative=kept).pvalue)

    @property
    def broken(self) -> bool:
        """Whether the ratio misses the promise beyond the one-sided limit of that side."""
        assert self.promise is not None
        if self.at_least:
            return self.limit(1) < self.promise
        return self.limit(-1) > self.promise


def abba(
    ours: Callable[[], float], peer: Callable[[], float], pairs: int = PAIRS
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Measure `pairs` pairs, the order turning round from one to the next."""
    found: tuple[list[float], list[float]] = ([], [])
    for pair in range(pairs):
        for side in ((0, 1), (1, 0))[pair % 2]:
            found[side].append((ours, peer)[side]())
    return tuple(found[0]), tuple(found[1])


def verdicts(comparisons: Sequence[Comparison]) -> list[str]:
    """passed, failed or undecided for each, the passes held together by Holm's step-down.

    Passed: the one-sided limit on the promise's far side meets it at Holm's level; failed: the
    other one at 95 % does not; anything else is undecided, which is not passed.
    """
    promised = [c for c in comparisons if c.promise is not None]
    passed: set[int] = set()
    for step, comparison in enumerate(sorted(promised, key=lambda c: c.p)):
        if comparison.p > (1 - CONFIDENCE) / (len(promised) - step):
            break
        passed.add(id(comparison))
    told = []
    for comparison in comparisons:
        if comparison.promise is None:
            told.append("")
        elif id(comparison) in passed:
            told.append("passed")
        else:
            told.append("failed" if comparison.broken else "undecided")
    return told


def table(comparisons: Sequence[Comparison]) -> str:
    """The comparisons as lines of Markdown."""
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

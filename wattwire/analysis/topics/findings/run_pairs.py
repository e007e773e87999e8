"""Compare a share of messages at two levels of a setting, in pairs of runs of the same block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from wattwire import stats
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.topics.findings.runs import Run, Treatment
from wattwire.model import words

P_MAX = 0.05
LEFT_OVER_MAX = 0.1
PAIRS_NEEDED = 5
BLOCKS, FACTOR, OTHERWISE = "blocks", "factor", "otherwise"
"""What would confirm a suspected cause: more blocks, a factor of the study, or anything else."""


@dataclass(frozen=True)
class ComparedShares:
    """Mean shares of messages at the level with a wait and at the one without, over run pairs.

    In `fell` of `pairs` pairs, the run with the wait has the larger share.
    """

    with_it: float
    without_it: float
    fell: int
    pairs: int

    @property
    def p(self) -> float:
        """The p-value of the sign test: the probability of at least as many decreasing pairs."""
        return stats.sign_p(self.fell, self.pairs)

    @property
    def proves(self) -> bool:
        """Whether the other level removes the wait; a share of LEFT_OVER_MAX may remain."""
        return self.without_it <= LEFT_OVER_MAX * self.with_it and self.p <= P_MAX


def run_pairs(
    evidence: Evidence, runs: Sequence[Run], name: str, with_it: str, without: str
) -> Iterator[tuple[Run, Run]]:
    """Yield the runs at the two levels of the factor `name` that agree in block and other levels.

    `with_it` and `without` are the words of the levels.
    """
    by_rest: dict[tuple[int, Treatment], dict[str, Run]] = {}
    for run in runs:
        rest = (run.block, run.treatment(evidence.varied, (name,)))
        by_rest.setdefault(rest, {})[words.plain(run.levels.get(name))] = run
    for by_level in by_rest.values():
        if with_it in by_level and without in by_level:
            yield by_level[with_it], by_level[without]


def compared(pairs: Sequence[tuple[float, float]]) -> tuple[float, float, int, int]:
    """Return the fields of ComparedShares from at least one pair of shares (with, without)."""
    high, low = (float(np.mean([pair[side] for pair in pairs])) for side in (0, 1))
    return high, low, sum(with_it > without for with_it, without in pairs), len(pairs)

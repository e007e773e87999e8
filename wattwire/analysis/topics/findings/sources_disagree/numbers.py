"""Find two sources of energy that differ by more than the classes of both.

What it detects, how, and what it misses: the topic `source_agreement`. The finding is shown because
two independent meters measured the same runs; it does not say which of them is wrong.

Reference: JCGM 100:2008 (GUM), 4.3.7, on bounds that a vendor states.
"""

from __future__ import annotations

from dataclasses import dataclass

from wattwire.analysis.topics.findings.detector import Detected, Searched
from wattwire.analysis.topics.source_agreement.numbers import Pair, pairs_of


@dataclass(frozen=True)
class Disagreement:
    """A pair of sources that disagree."""

    pair: Pair

    @property
    def is_shown(self) -> bool:
        """Whether the study itself shows the cause: two meters measured the same runs."""
        return True


@dataclass(frozen=True)
class SourcesDisagree(Detected):
    """The pairs that disagree. `compared` is the number of pairs with stated classes."""

    found: tuple[Disagreement, ...] = ()
    compared: int = 0


def sources_disagree(searched: Searched) -> SourcesDisagree:
    """Search the sources of the valid runs."""
    pairs = [p for p in pairs_of(searched.evidence) if p.allowed_w is not None]
    return SourcesDisagree(tuple(Disagreement(p) for p in pairs if p.disagrees), len(pairs))

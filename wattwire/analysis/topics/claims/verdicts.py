"""Define the comparisons of a claim, its verdict, and the verdicts on all claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wattwire import stats
from wattwire.analysis.answering.confidence import CONFIDENCE
from wattwire.model import words
from wattwire.model.publication.claims import Claim

SHOWN, SHOWN_IN_PART = "shown", "shown in part"
REFUTED, REFUTED_IN_PART = "refuted", "refuted in part"
UNDECIDED, NOT_ANSWERABLE = "undecided", "not answerable"
VERDICTS = (SHOWN, SHOWN_IN_PART, REFUTED, REFUTED_IN_PART, UNDECIDED, NOT_ANSWERABLE)
"""Verdicts in the order of the page."""
OUTCOMES = ("lower", "higher", *words.OUTCOMES)
"""Outcomes of a comparison in the order of a sentence."""
Levels = Mapping[str, Any]
Result = stats.Interval | stats.TooFew | stats.NotComputable


@dataclass(frozen=True)
class Comparison:
    """The ratio of `left` to `right`, including the claim's multiples, at the levels `at`.

    `outcome` is "lower", "higher", "equivalent", "within noise", "undecided" or "depends", or ""
    without a ratio. "Depends" means that levels of a factor that the claim does not name contradict
    each other. `decision` is SHOWN, REFUTED, UNDECIDED or NOT_ANSWERABLE. `varied` has the levels
    of the sides that distinguish the comparison from others of its claim.
    """

    left: Levels
    right: Levels
    at: Levels
    result: Result
    outcome: str = ""
    decision: str = NOT_ANSWERABLE
    left_title: str = ""
    right_title: str = ""
    at_title: str = ""
    varied: str = ""

    @property
    def has_ratio(self) -> bool:
        """Whether the comparison has a ratio."""
        return isinstance(self.result, stats.Interval)


@dataclass(frozen=True)
class Group:
    """The comparisons of a claim that have the same outcome."""

    outcome: str
    comparisons: tuple[Comparison, ...]


@dataclass(frozen=True)
class Reason:
    """A reason for comparisons without a ratio. They are empty if it holds for all of the claim."""

    text: str
    comparisons: tuple[Comparison, ...] = ()


@dataclass(frozen=True)
class DecidedClaim:
    """A claim with its comparisons and its verdict.

    `reason` states why the claim has no comparison; it is "" for a claim with comparisons. The
    titles of the sides name all their levels. `where` has those of other factors that all
    comparisons share.
    """

    claim: Claim
    comparisons: tuple[Comparison, ...]
    reason: str = ""
    response_title: str = ""
    left_title: str = ""
    right_title: str = ""
    where: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """SHOWN, REFUTED, either of them in part, UNDECIDED or NOT_ANSWERABLE.

        A comparison without a ratio does not change the verdict of the others.
        """
        decisions = {comparison.decision for comparison in self.comparisons} - {NOT_ANSWERABLE}
        if len(decisions) <= 1:
            return next(iter(decisions), NOT_ANSWERABLE)
        return SHOWN_IN_PART if SHOWN in decisions else REFUTED_IN_PART

    @property
    def groups(self) -> tuple[Group, ...]:
        """The comparisons with a ratio by outcome, in the order of OUTCOMES."""
        groups = (
            Group(outcome, tuple(item for item in self.comparisons if item.outcome == outcome))
            for outcome in OUTCOMES
        )
        return tuple(group for group in groups if group.comparisons)

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The reasons why comparisons have no ratio."""
        by_text: dict[str, list[Comparison]] = {}
        for item in self.comparisons:
            if not item.has_ratio:
                by_text.setdefault(str(item.result), []).append(item)
        return tuple(
            Reason(text, () if len(items) == len(self.comparisons) else tuple(items))
            for text, items in by_text.items()
        )


@dataclass(frozen=True)
class VerdictCount:
    """The number of claims with a verdict."""

    verdict: str
    claims: int


@dataclass(frozen=True)
class Row:
    """A comparison with its claim, which is the study's claim `number` (from 1 on)."""

    number: int
    decided: DecidedClaim
    comparison: Comparison


@dataclass(frozen=True)
class DecidedClaims:
    """All claims of the study. Their `family` of intervals is simultaneous at `confidence`.

    `margin` is the study's margin of equivalence (share).
    """

    items: tuple[DecidedClaim, ...] = ()
    family: int = 1
    level: float = CONFIDENCE
    margin: float | None = None
    confidence: float = CONFIDENCE

    @property
    def counts(self) -> tuple[VerdictCount, ...]:
        """The number of claims with each verdict, in the order of VERDICTS."""
        counted = Counter(item.verdict for item in self.items)
        return tuple(VerdictCount(name, counted[name]) for name in VERDICTS if counted[name])

    @property
    def rows(self) -> tuple[Row, ...]:
        """All comparisons, in the study's order."""
        return tuple(
            Row(number, item, comparison)
            for number, item in enumerate(self.items, 1)
            for comparison in item.comparisons
        )

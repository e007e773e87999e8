"""Define the result of a comparison, from which page, terminal and files for CI print."""

from __future__ import annotations

from dataclasses import dataclass

from wattwire import stats
from wattwire.analysis.answering.confidence import CONFIDENCE
from wattwire.analysis.responses import Response
from wattwire.analysis.topics.comparison.decision import (
    COMPLETED,
    NOT_WORSE,
    UNCLEAR,
    WORSE,
    Completions,
    Item,
    OtherPlacement,
)
from wattwire.analysis.topics.comparison.notes import AcrossMachines, Note

PAIRED_BLOCKS = "paired blocks"
"""Method of t intervals on the log ratios of two runs of the same block."""
TWO_OCCASIONS = "two occasions"
"""Method of Welch's t on the logarithms of unpaired runs."""
NAMED_MAX = 3
"""Maximum number of items that the first line names."""
SIMILAR = 1.05
"""Ratio of the largest to the smallest detectable change up to which one number is stated."""


@dataclass(frozen=True)
class Change:
    """The detectable changes of a response in all treatments, in percent or percentage points.

    They are None if no change of any size would be detected: `smallest` in any treatment, `largest`
    in one treatment. `is_range` is whether treatments differ.
    """

    response: Response
    smallest: float | None
    largest: float | None
    is_range: bool


@dataclass(frozen=True)
class AllCompleted:
    """The number of treatments whose runs all completed, of all treatments, and of their runs."""

    completed: int
    treatments: int
    runs: int


@dataclass(frozen=True)
class Comparison:
    """All items of a comparison, with the confidence level of their intervals.

    `level` is the confidence level of each of the `family` intervals and tests. It is chosen so
    that all of them are simultaneously correct with probability CONFIDENCE over `looks` tests of
    each.
    `notes` state the limits of the comparison. `across` is None for campaigns of the same machine.
    """

    base: str
    heads: tuple[str, ...]
    items: tuple[Item, ...]
    margin: float
    level: float
    family: int = 1
    looks: int = 1
    method: str = PAIRED_BLOCKS
    notes: tuple[Note, ...] = ()
    across: AcrossMachines | None = None

    @property
    def shown(self) -> list[Item]:
        """The items to display: all except those that only report that every run completed."""
        return [item for item in self.items if not item.unremarkable]

    @property
    def worse(self) -> list[Item]:
        """The items that are worse. Failures and losses precede higher costs."""
        return sorted(self.of(WORSE), key=lambda item: not item.response.share)

    @property
    def named(self) -> list[Item]:
        """The worse items that the first line names; `unnamed` is the number of the others."""
        return self.worse[:NAMED_MAX]

    @property
    def unnamed(self) -> int:
        """The number of worse items that the first line does not name."""
        return len(self.worse) - len(self.named)

    @property
    def unclear(self) -> list[Item]:
        """The items that cannot tell."""
        return self.of(UNCLEAR)

    @property
    def common_reason(self) -> stats.TooFew | stats.NotComputable | None:
        """The reason why no undecided item has an interval; None without a common reason."""
        reasons = {item.why for item in self.unclear}
        reason = reasons.pop() if len(reasons) == 1 else None
        return reason if isinstance(reason, (stats.TooFew, stats.NotComputable)) else None

    @property
    def in_other_placements(self) -> int:
        """The number of items whose sides ran in different placements."""
        return sum(isinstance(item.why, OtherPlacement) for item in self.items)

    @property
    def confidence(self) -> float:
        """The confidence level of all intervals together."""
        return CONFIDENCE

    @property
    def different_p(self) -> float:
        """The error probability of the test of equal variances."""
        return stats.paired.DIFFERENT_P

    @property
    def completed(self) -> AllCompleted | None:
        """The treatments in which every run completed; None without such treatments."""
        complete = [item for item in self.items if item.unremarkable]
        if not complete:
            return None
        # Several heads are compared with the same runs of the base, which count once.
        base_runs = {
            item.why.base_treatment: item.base_runs
            for item in complete
            if isinstance(item.why, Completions)
        }
        runs = sum(base_runs.values()) + sum(item.head_runs for item in complete)
        treatments = sum(item.response == COMPLETED for item in self.items)
        return AllCompleted(len(complete), treatments, runs)

    def of(self, verdict: str) -> list[Item]:
        """Return the items with this verdict."""
        return [item for item in self.items if item.verdict == verdict]

    @property
    def verdict(self) -> str:
        """The worst verdict of all items; the order is worse, cannot tell, not worse."""
        if self.of(WORSE):
            return WORSE
        return UNCLEAR if self.of(UNCLEAR) or not self.items else NOT_WORSE

    @property
    def nothing_usable(self) -> bool:
        """Whether nothing was compared because no treatment has valid runs on both sides."""
        return not any(min(item.base_runs, item.head_runs) for item in self.items)

    def detectable(self) -> dict[Response, list[float | None]]:
        """Return the smallest detectable change of each treatment, as a share, by response.

        A response that is 0 in a run has no change as a share.
        """
        by_response: dict[Response, list[float | None]] = {}
        for item in self.items:
            if item.response != COMPLETED and item.values is None:
                by_response.setdefault(item.response, []).append(item.detectable_share(self.margin))
        return by_response

    @property
    def changes(self) -> tuple[Change, ...]:
        """The detectable changes by response; none if nothing was compared."""
        by_response = {} if self.nothing_usable else self.detectable()
        return tuple(_change(response, shares) for response, shares in by_response.items())

    @property
    def increased(self) -> list[Item]:
        """The first items with a larger share of losses or failures that are not worse."""
        increased = [item for item in self.items if item.shares and item.shares[1] > item.shares[0]]
        return [item for item in increased if item.verdict != WORSE][:NAMED_MAX]

    def bad(self, unclear_is_bad: bool) -> bool:
        """Return whether the check fails: an item is worse, or unclear with `unclear_is_bad`."""
        return self.verdict == WORSE or (unclear_is_bad and self.verdict == UNCLEAR)


def _change(response: Response, shares: list[float | None]) -> Change:
    known = sorted(100 * share for share in shares if share is not None)
    if not known:
        return Change(response, None, None, is_range=False)
    all_known = len(known) == len(shares)
    is_similar = all_known and known[-1] <= SIMILAR * known[0]
    is_range = len(shares) > 1 and not is_similar
    return Change(response, known[0], known[-1] if all_known else None, is_range)


@dataclass(frozen=True)
class ComparedVariants:
    """The comparison of a study's variants. Both fields are empty for a study without variants.

    If the variants cannot be compared, `result` is None, and `reason` states why.
    """

    result: Comparison | None = None
    reason: str = ""

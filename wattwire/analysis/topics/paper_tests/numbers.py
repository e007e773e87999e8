"""Apply the tests that papers use to the runs of a campaign.

What it computes: per response and factor of each question, and per requested analysis, the paper's
decision path with all runs and without outliers, its simulated error rates, and interactions by
aligned ranks.
What it misses: every test treats runs as unpaired, so it ignores the blocks of the design. No
answer uses these tests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wattwire import papers
from wattwire.analysis.dataset import Evidence, kept_by, levels_of
from wattwire.analysis.responses import Response, measured, resolve
from wattwire.analysis.topics.paper_tests.walks import (
    Refused,
    Walked,
    key_of,
    walked,
    walks_of,
    with_enough,
)
from wattwire.model import words
from wattwire.model.derived import FloatArray, column
from wattwire.model.paper_path import Walk
from wattwire.papers.path import BlockShare
from wattwire.papers.rates import Rate, rates_for
from wattwire.stats import Interval, NotComputable, TooFew

STEPPED_MAX = 40
"""Maximum number of analyses with tables of their steps. The first table lists all analyses."""
ALL, WITHOUT_OUTLIERS = "all", "outliers removed"
P = float | TooFew | NotComputable | None


@dataclass(frozen=True)
class Grouping:
    """The titles of the factors whose levels form the groups.

    `kept` has the titles of the permitted levels of each factor with a selection.
    """

    factors: tuple[str, ...]
    kept: tuple[str, ...] = ()


@dataclass(frozen=True)
class PairCounts:
    """How many of `pairs` pairs of groups differ, or the reason why none was compared.

    `p_least` is the smallest attainable p of the test over all groups if it cannot reject.
    """

    below: int = 0
    pairs: int = 0
    p_least: float | None = None
    reason: TooFew | NotComputable | None = None


@dataclass(frozen=True)
class OverallTest:
    """The test over all groups. Without a test, `p` is the reason and `name` is empty."""

    p: P
    name: str = ""
    statistic: str = ""
    is_transformed: bool = False
    pairs: PairCounts | None = None


@dataclass(frozen=True)
class Removed:
    """The number of outliers, and their share of all values."""

    values: int
    share: float


@dataclass(frozen=True)
class Fences:
    """Limits beyond which a value is an outlier, on the scale of the analysis."""

    low: float
    high: float


@dataclass(frozen=True)
class Verdict:
    """The decision of a test over all groups, and the method of its p-value."""

    method: str
    is_powerless: bool
    rejects: bool


@dataclass(frozen=True)
class StepRow:
    """A step of an analysis. At most one of `statistic`, `power` and `fences` is its number.

    A check decides `checked`, and the test over all groups `tested`. With neither, there is no
    verdict.
    """

    runs: str
    step: str
    group: str
    p: P = None
    statistic: str = ""
    power: float | None = None
    fences: Fences | None = None
    checked: str | None = None
    tested: Verdict | None = None

    @property
    def numbered(self) -> StepRow | None:
        """The step itself if it has a number other than p."""
        has_number = self.statistic or self.power is not None or self.fences
        return self if has_number else None


@dataclass(frozen=True)
class PairRow:
    """A comparison of two groups, with one p-value per correction of the analysis."""

    runs: str
    first: str
    second: str
    statistic: str
    difference: Interval | None
    p: tuple[float | None, ...]


@dataclass(frozen=True)
class Analysis:
    """The decision path for one response and grouping.

    `without_outliers` and `removed` are None if there are no outliers. `blocks` is None, or the
    reason why the share of the scatter that blocks explain is unknown; `share` is the share.
    `pooled` has the titles of the factors that vary within groups. `missing` is the number of runs
    without the response. `rates` are the simulated error rates for the sizes of the groups.
    """

    response: Response
    grouping: Grouping
    groups: int
    runs: int
    tested: OverallTest
    without_outliers: OverallTest | None
    removed: Removed | None
    blocks: TooFew | NotComputable | None
    share: BlockShare | None
    steps: tuple[StepRow, ...]
    pairs: tuple[PairRow, ...]
    corrections: tuple[str, ...]
    is_transformed: bool
    is_reversed: bool
    is_undecided: bool
    pooled: tuple[str, ...]
    missing: int
    rates: tuple[Rate, ...]

    @property
    def p_kept(self) -> P:
        """The p-value without outliers, the reason for none, or None if there are no outliers."""
        return self.without_outliers.p if self.without_outliers else None

    @property
    def pairs_kept(self) -> PairCounts | None:
        """The pairs of groups that differ without outliers."""
        return self.without_outliers.pairs if self.without_outliers else None

    @property
    def share_of_blocks(self) -> float | None:
        """The share of the scatter within groups that blocks explain."""
        return self.share.share if self.share else None

    @property
    def share_by_chance(self) -> float | None:
        """The share of the scatter that blocks explain by chance."""
        return self.share.by_chance if self.share else None

    @property
    def has_differences(self) -> bool:
        """Whether any pair has an interval of the difference of means."""
        return any(pair.difference is not None for pair in self.pairs)


@dataclass(frozen=True)
class AlignedEffect:
    """An effect of `titles` by aligned ranks. Without titles, `p` is the reason for none."""

    response: Response
    grouping: Grouping
    p: P
    titles: tuple[str, ...] = ()
    statistic: str | None = None


@dataclass(frozen=True)
class PaperTests:
    """The analyses of a campaign; empty if its runs cannot be grouped."""

    analyses: tuple[Analysis, ...] = ()
    refused: tuple[Refused, ...] = ()
    aligned: tuple[AlignedEffect, ...] = ()

    @property
    def stepped(self) -> tuple[Analysis, ...]:
        """The analyses with tables of their steps."""
        return self.analyses[:STEPPED_MAX]

    @property
    def trimmed(self) -> tuple[Analysis, ...]:
        """The analyses with outliers."""
        return tuple(item for item in self.analyses if item.removed)

    @property
    def worst_rate(self) -> float:
        """The largest false-positive rate of the analyses with outliers, after their removal."""
        rates = (rate.without_outliers for item in self.trimmed for rate in item.rates)
        return max(rates, default=0.0)

    @property
    def reversed(self) -> int:
        """The number of analyses whose verdict changes without outliers."""
        return sum(item.is_reversed for item in self.analyses)

    @property
    def undecided(self) -> int:
        """The number of analyses with too few values without outliers."""
        return sum(item.is_undecided for item in self.analyses)

    @property
    def has_blocks(self) -> bool:
        """Whether the share of the scatter that blocks explain is known for any analysis."""
        return any(item.share for item in self.analyses)

    @property
    def pooled(self) -> int:
        """The number of analyses whose groups pool levels of other factors."""
        return sum(bool(item.pooled) for item in self.analyses)

    @property
    def rates(self) -> tuple[Rate, ...]:
        """The error rates for the sizes of the groups of all analyses, by size."""
        by_size = {
            (item.rates[0].groups, item.rates[0].runs): item.rates
            for item in self.analyses
            if item.rates
        }
        return tuple(rate for size in sorted(by_size) for rate in by_size[size])

    @property
    def trials(self) -> int:
        """The largest number of simulated campaigns of an error rate."""
        return max((rate.trials for rate in self.rates), default=0)


def paper_tests(evidence: Evidence) -> PaperTests:
    """Analyse each response of the questions by each factor, and as the study requests."""
    if evidence.usable.height == 0:
        return PaperTests()
    walks, refused = walks_of(evidence)
    if not walks and not refused:
        return PaperTests()
    analyses = tuple(_analysis(evidence, walked(evidence, walk)) for walk in walks)
    return PaperTests(analyses, tuple(refused), tuple(_aligned(evidence)))


def _analysis(evidence: Evidence, result: Walked) -> Analysis:
    path = result.path
    removed = None
    if path.without_outliers is not None:
        removed = Removed(sum(path.removed.values()), path.removed_share)
    blocks = path.blocks
    corrections = _corrections(path)
    sizes = [count for count in path.counts.values() if count]
    return Analysis(
        result.response,
        _grouping(evidence, result.walk),
        len(path.counts),
        sum(path.counts.values()),
        _tested(path.with_all, path),
        _tested(path.without_outliers, path) if path.without_outliers is not None else None,
        removed,
        None if isinstance(blocks, BlockShare) else blocks,
        blocks if isinstance(blocks, BlockShare) else None,
        tuple(_steps(path)),
        tuple(_pairs(path, corrections)),
        corrections,
        path.scale != "as measured",
        path.disagrees,
        path.undecided_without,
        tuple(words.factor_title(name) for name in result.pooled),
        sum(path.missing.values()),
        rates_for(len(sizes), min(sizes)) if len(sizes) > 1 else (),
    )


def _grouping(evidence: Evidence, walk: Walk) -> Grouping:
    kept = tuple(
        words.listed([evidence.title(name, level) for level in levels])
        for name, levels in walk.where.items()
    )
    return Grouping(tuple(words.factor_title(name) for name in walk.by), kept)


def _tested(branch: papers.Branch, path: papers.Path) -> OverallTest:
    test = branch.test
    if not isinstance(test, papers.Significance):
        return OverallTest(test)
    pairs = None
    if test.powerless(path.level):
        pairs = PairCounts(p_least=test.p_least)
    elif isinstance(branch.pairs, tuple):
        below = sum(_headline_p(pair) < path.level for pair in branch.pairs)
        pairs = PairCounts(below, len(branch.pairs))
    elif branch.pairs is not None:
        pairs = PairCounts(reason=branch.pairs)
    return OverallTest(test.p, test.name, _statistic(test), path.scale == "Box–Cox", pairs)


def _statistic(test: papers.Significance) -> str:
    degrees = ", ".join(
        words.count(value) if value == round(value) else words.number(value, 4)
        for value in test.degrees
    )
    return f"{test.symbol}{f'({degrees})' if degrees else ''} = {words.number(test.statistic, 5)}"


def _headline_p(pair: papers.Pair) -> float:
    """Return the corrected p value that papers print.

    The correction is Bonferroni's if available, and otherwise the first correction.
    """
    return pair.p.get("Bonferroni", next(iter(pair.p.values())))


def _branches(path: papers.Path) -> Iterator[tuple[papers.Branch, str]]:
    yield path.with_all, ALL
    if path.without_outliers is not None:
        yield path.without_outliers, WITHOUT_OUTLIERS


def _steps(path: papers.Path) -> Iterator[StepRow]:
    for step in path.steps:
        yield _step(step, "")
    for branch, runs in _branches(path):
        for step in branch.steps:
            yield _step(step, runs)
        yield _test_step(branch, path.level, runs)


def _step(step: papers.Step, runs: str) -> StepRow:
    outcome, names = step.result, (runs, step.name, step.group)
    if isinstance(outcome, papers.Significance):
        statistic = _statistic(outcome)
        return StepRow(*names, outcome.p, statistic=statistic, checked=step.decision)
    if isinstance(outcome, papers.BoxCox):
        return StepRow(*names, power=outcome.power, checked=step.decision)
    if isinstance(outcome, papers.Outliers):
        return StepRow(*names, fences=Fences(outcome.low, outcome.high), checked=step.decision)
    return StepRow(*names, outcome, checked=step.decision)


def _test_step(branch: papers.Branch, level: float, runs: str) -> StepRow:
    test = branch.test
    sizes = " + ".join(str(count) for count in branch.counts.values())
    if not isinstance(test, papers.Significance):
        return StepRow(runs, "no test", sizes, test)
    decision = Verdict(test.method, test.powerless(level), test.rejects(level))
    return StepRow(runs, test.name, sizes, test.p, statistic=_statistic(test), tested=decision)


def _corrections(path: papers.Path) -> tuple[str, ...]:
    """Return the names of the corrections of the pairs' p-values, in their order."""
    names: dict[str, None] = {}
    for branch, _ in _branches(path):
        for pair in branch.pairs if isinstance(branch.pairs, tuple) else ():
            names |= dict.fromkeys(pair.p)
    return tuple(names)


def _pairs(path: papers.Path, corrections: Sequence[str]) -> Iterator[PairRow]:
    for branch, runs in _branches(path):
        for pair in branch.pairs if isinstance(branch.pairs, tuple) else ():
            statistic = f"{pair.symbol} = {words.number(pair.statistic, 4)}"
            p_values = tuple(pair.p.get(name) for name in corrections)
            yield PairRow(runs, pair.first, pair.second, statistic, pair.interval, p_values)


def _aligned(evidence: Evidence) -> Iterator[AlignedEffect]:
    """Yield the effects by aligned ranks of each question and of each requested analysis."""
    wanted: dict[Any, Walk] = {}
    for question in evidence.study.questions:
        for name in question.responses:
            walk = Walk(name, question.factors)
            wanted.setdefault(key_of(evidence, walk), walk)
    for walk in evidence.study.paper_path:
        wanted.setdefault(key_of(evidence, walk), walk)
    for walk in wanted.values():
        response = resolve(walk.response, evidence.described)
        frame = kept_by(with_enough(evidence.usable, response), walk.where)
        levels = {name: levels_of(frame, name) for name in walk.by}
        factors = {
            name: run_levels
            for name, run_levels in levels.items()
            if len({evidence.word(name, level) for level in run_levels}) > 1
        }
        if len(factors) > 1 and measured(frame, response):
            yield from _effects(evidence, walk, column(frame, response.column), factors)


def _effects(
    evidence: Evidence, walk: Walk, values: FloatArray, factors: Mapping[str, Sequence[Any]]
) -> Iterator[AlignedEffect]:
    known = ~np.isnan(values)
    response, grouping = resolve(walk.response, evidence.described), _grouping(evidence, walk)
    effects = papers.aligned_ranks(
        values[known],
        {
            name: [
                evidence.word(name, level)
                for level, keep in zip(levels, known, strict=True)
                if keep
            ]
            for name, levels in factors.items()
        },
    )
    if isinstance(effects, (TooFew, NotComputable)):
        yield AlignedEffect(response, grouping, effects)
        return
    for effect, test in effects.items():
        titles = tuple(words.factor_title(name) for name in effect)
        yield AlignedEffect(response, grouping, test.p, titles, _statistic(test))

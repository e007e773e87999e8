"""Collect the statistical methods of the answers and of the comparison of variants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wattwire import stats
from wattwire.analysis.answering.answer_types import Answer, Answers
from wattwire.analysis.answering.confidence import CONFIDENCE
from wattwire.analysis.dataset import Evidence, order_of
from wattwire.analysis.responses import resolve
from wattwire.analysis.topics.comparison.result import ComparedVariants
from wattwire.analysis.topics.methods.design import Level, named_levels
from wattwire.analysis.topics.ranking.order import factors_of
from wattwire.stats.blocked import GROUPED

TREATMENTS, BLOCKS, POOLED = "treatments", "blocks", "pooled"


@dataclass(frozen=True)
class Model:
    """The model of the ratios: its responses, whether its terms are treatments, and its error.

    The error is that of TREATMENTS (one each), of BLOCKS (the scatter of a ratio between blocks),
    or POOLED.
    """

    response_titles: tuple[str, ...]
    has_treatments: bool
    error: str


@dataclass(frozen=True)
class Bound:
    """A limit of the study on a response, in its unit; `where` are the levels that it is for."""

    response_title: str
    unit: str
    max: float | None
    min: float | None
    where: tuple[Level, ...]


@dataclass(frozen=True)
class Statistics:
    """How the answers were computed. Each of the `family` has an interval at `level`.

    `model` is None without ratios. `difference_titles` are the responses that are compared by
    differences. `margin` is a share; None without a margin.
    """

    model: Model | None = None
    difference_titles: tuple[str, ...] = ()
    family: int = 0
    level: float = CONFIDENCE
    confidence: float = CONFIDENCE
    has_ranks: bool = False
    margin: float | None = None
    has_ranking: bool = False
    looks: int = 1
    limits: tuple[Bound, ...] = ()

    @property
    def has_numbers(self) -> bool:
        """Whether any answer has a number."""
        return self.model is not None or bool(self.difference_titles)

    @property
    def margin_percent(self) -> float | None:
        """The margin in percent."""
        return None if self.margin is None else 100 * self.margin


@dataclass(frozen=True)
class VariantMethod:
    """The method of the comparison of variants: its margin (share), and its intervals at `level`.

    The variances of treatments are pooled unless they differ at the level `different_p`.
    """

    margin: float
    level: float
    family: int
    looks: int
    confidence: float = CONFIDENCE
    different_p: float = stats.paired.DIFFERENT_P

    @property
    def are_joint(self) -> bool:
        """Whether several intervals are simultaneous."""
        return self.family * self.looks > 1

    @property
    def margin_percent(self) -> float:
        """The margin in percent."""
        return 100 * self.margin


def statistics(evidence: Evidence, answers: Answers) -> Statistics:
    """Return the statistical methods of the answers."""
    computed, differences = answers.computed(), answers.differences()
    if not computed and not differences:
        return Statistics()
    return Statistics(
        _model(evidence, computed) if computed else None,
        tuple(dict.fromkeys(item.response.title for item in differences)),
        answers.family,
        answers.level,
        CONFIDENCE,
        any(isinstance(item.by_ranks, stats.Interval) for item in computed),
        answers.margin,
        bool(factors_of(evidence)),
        evidence.study.answers.looks,
        tuple(_limits(evidence)),
    )


def _model(evidence: Evidence, computed: Sequence[Answer]) -> Model:
    kinds = {item.result.kind for item in computed}  # type: ignore[union-attr]
    has_treatments = kinds == {"treatments"}
    error = TREATMENTS
    if has_treatments and order_of(evidence) == GROUPED:
        error = BLOCKS
    elif not has_treatments and len(evidence.varied) > 1:
        error = POOLED
    titles = dict.fromkeys(item.response.title for item in computed)
    return Model(tuple(titles), has_treatments, error)


def _limits(evidence: Evidence) -> Iterator[Bound]:
    for limit in evidence.study.limits:
        response = resolve(limit.response, evidence.described)
        where = named_levels(limit.where.items())
        yield Bound(response.title, response.unit, limit.max, limit.min, where)


def variant_method(compared: ComparedVariants) -> VariantMethod | None:
    """Return the method of a comparison of variants; None without a comparison."""
    result = compared.result
    if result is None:
        return None
    return VariantMethod(result.margin, result.level, result.family, result.looks)

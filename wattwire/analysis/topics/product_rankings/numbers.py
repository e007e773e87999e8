"""Rank treatments by the product of two measured responses, such as energy and delay.

What it computes: the geometric mean over runs of the product, with a t interval, the product of the
printed numbers, and Spearman's correlation of both.
What it misses: an estimate is not a response, so it is never ranked. A saturated treatment has no
rank, because its latency depends on the length of the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from wattwire import stats
from wattwire.analysis import not_compared
from wattwire.analysis.dataset import Evidence, by_treatment, levels_of
from wattwire.analysis.metrics_by_role import BOTH, is_measured, values_of
from wattwire.analysis.published_values import Printed, printed_of
from wattwire.analysis.responses import Response, resolve
from wattwire.model.output_requests import ShownRanking
from wattwire.stats import Interval, NotComputable, TooFew, association


@dataclass(frozen=True)
class RankedTreatment:
    """A treatment with its products and ranks, which are None if it has none.

    `mean` is the geometric mean of the product over runs, and `interval` its interval if there are
    enough runs. `printed` is the product of the printed numbers.
    """

    treatment: tuple[str, ...]
    mean: float | None = None
    interval: Interval | None = None
    printed: float | None = None
    rank: int | None = None
    rank_printed: int | None = None

    @property
    def product(self) -> Interval | float | None:
        """The mean with its interval, or the mean alone."""
        return self.interval or self.mean


@dataclass(frozen=True)
class Agreement:
    """Spearman's correlation of both rankings over `treatments`, or the reason for none."""

    treatments: int = 0
    rho: float = 0.0
    p: float = 1.0
    interval: Interval | None = None
    reason: TooFew | NotComputable | None = None


@dataclass(frozen=True)
class ProductRanking:
    """A requested ranking.

    `missing` has the titles of unmeasured responses; `is_energy_missing` states whether an energy
    is among them. `unranked` has the titles of saturated treatments. `source` is the title of the
    printed table, "" if none is requested, and `columns` are the names of its factors.
    """

    title: str
    note: str
    unit: str
    missing: tuple[str, ...]
    is_energy_missing: bool
    rows: tuple[RankedTreatment, ...]
    unranked: tuple[str, ...]
    agreement: Agreement | None
    source: str
    columns: tuple[str, ...]

    @property
    def is_measured(self) -> bool:
        """Whether any treatment has our product."""
        return any(row.mean is not None for row in self.rows)


@dataclass(frozen=True)
class ProductRankings:
    """The rankings that a study requests."""

    rankings: tuple[ProductRanking, ...] = ()


def product_rankings(evidence: Evidence) -> ProductRankings:
    """Return each requested ranking; none if no run is valid."""
    requests = evidence.study.shown.rankings
    if not requests or evidence.usable.height == 0:
        return ProductRankings()
    printed = printed_of(evidence)
    return ProductRankings(tuple(_ranking(evidence, printed, spec) for spec in requests))


def _ranking(evidence: Evidence, printed: Printed, spec: ShownRanking) -> ProductRanking:
    first, second = (resolve(name, evidence.described) for name in spec.product)
    missing = [
        response for response in (first, second) if not is_measured(evidence, response, BOTH)
    ]
    rows = _ranked(list(_treatments(evidence, printed, spec, (first, second))))
    unranked = [
        evidence.title_of_key(key)
        for key, frame in by_treatment(evidence, evidence.usable).items()
        if _is_void(evidence, frame, (first, second))
    ]
    return ProductRanking(
        spec.title,
        spec.note,
        f"{first.unit}·{second.unit}",
        tuple(response.title for response in missing),
        any(response.energy for response in missing),
        rows,
        tuple(unranked),
        _agreement(rows),
        printed.source(spec.published) if spec.published else "",
        tuple(name.replace("_", " ") for name in spec.published_product),
    )


def _is_void(evidence: Evidence, frame: pl.DataFrame, responses: Sequence[Response]) -> bool:
    """Return whether saturation takes one of the responses from a treatment."""
    return any(
        bool(not_compared.void_not_left_out(evidence, frame, response).any())
        for response in responses
    )


def _treatments(
    evidence: Evidence, printed: Printed, spec: ShownRanking, responses: Sequence[Response]
) -> Iterator[RankedTreatment]:
    """Yield each treatment with its products, and without ranks."""
    for key, frame in by_treatment(evidence, evidence.usable).items():
        row = RankedTreatment(key)
        product = np.ones(frame.height)
        for response in responses:
            is_left_out = not_compared.left_out(evidence, frame, response)
            product *= np.where(is_left_out, np.nan, values_of(evidence, frame, response, BOTH))
        product = product[np.isfinite(product) & (product > 0)]
        if product.size and not _is_void(evidence, frame, responses):
            mean = stats.geometric_mean(product)
            row = replace(
                row,
                mean=float(np.exp(np.mean(np.log(product)))),
                interval=mean if isinstance(mean, Interval) else None,
            )
        if spec.published:
            levels = {name: levels_of(frame, name)[0] for name in evidence.varied}
            first, second = (
                printed.total(spec.published, levels, name) for name in spec.published_product
            )
            if first is not None and second is not None:
                row = replace(row, printed=first * second)
        yield row


def _ranked(rows: Sequence[RankedTreatment]) -> tuple[RankedTreatment, ...]:
    """Return the treatments with a rank, by our rank and then by the printed one."""
    ranks = _ranks([row.mean for row in rows])
    printed_ranks = _ranks([row.printed for row in rows])
    ranked = [
        replace(row, rank=rank, rank_printed=rank_printed)
        for row, rank, rank_printed in zip(rows, ranks, printed_ranks, strict=True)
        if rank or rank_printed
    ]
    ranked.sort(key=lambda row: (row.rank or np.inf, row.rank_printed or np.inf))
    return tuple(ranked)


def _ranks(values: Sequence[float | None]) -> list[int | None]:
    known = sorted((value, place) for place, value in enumerate(values) if value is not None)
    ranks: list[int | None] = [None] * len(values)
    for rank, (_, place) in enumerate(known, 1):
        ranks[place] = rank
    return ranks


def _agreement(rows: Sequence[RankedTreatment]) -> Agreement | None:
    both = [
        (row.mean, row.printed) for row in rows if row.mean is not None and row.printed is not None
    ]
    if not both:
        return None
    spearman = association.spearman([mean for mean, _ in both], [printed for _, printed in both])
    if not isinstance(spearman, association.Association):
        return Agreement(len(both), reason=spearman)
    interval = spearman.interval if isinstance(spearman.interval, Interval) else None
    return Agreement(len(both), spearman.estimate, spearman.p, interval)

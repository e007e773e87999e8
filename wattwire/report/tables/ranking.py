"""Rank treatments by the product of two measured responses, such as energy and delay."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from wattwire import stats
from wattwire.analysis import not_compared
from wattwire.analysis.dataset import Evidence, by_treatment, levels_of
from wattwire.analysis.metrics_by_role import BOTH, is_measured, values_of
from wattwire.analysis.published_values import Printed
from wattwire.analysis.responses import Response, resolve
from wattwire.model.output_requests import ShownRanking
from wattwire.report.parts import Column, Table, Text
from wattwire.report.tables.factor_columns import factor_columns
from wattwire.report.words.phrases import Phrase, Phrases, joined
from wattwire.stats import association

PHRASES = Phrases(
    "ranking",
    {
        "no_energy": (
            "There is no ranking, because no meter measured energy. A ranking by estimated "
            "energy would only rank CPU time."
        ),
        "not_measured": (
            "There is no ranking, because the campaign did not measure {responses:listed}."
        ),
        "agreement_unknown": "The agreement of the two rankings is unknown: {reason}.",
        "agreement": (
            "Agreement of the two rankings: Spearman's ρ {rho:number} over the {treatments:plural "
            "treatment} in both rankings ({p:p}{interval}; exploratory)."
        ),
        "interval": ", 95 % interval {low:number} to {high:number}",
        "note_here": (
            "“Here”: the geometric mean over runs, with a 95 % t interval if there are three or "
            "more runs. If the intervals of neighbours overlap, their order is uncertain."
        ),
        "saturated": (
            "Not ranked, because the load was above the capacity (saturated): {treatments:listed}."
        ),
        "note_published": (
            "“Published”: the product of the printed {columns:listed}, each summed over the roles "
            "for which the paper prints it. The paper may not print this product."
        ),
    },
)

HERE, PRINTED = "product_here", "product_printed"


def parts(
    evidence: Evidence, printed: Printed, spec: ShownRanking, number: int
) -> list[Text | Table]:
    """Return our ranking and the published ranking, or a warning if ours is not possible.

    Estimates are not responses, so they are never ranked.
    """
    first, second = (resolve(name, evidence.described) for name in spec.product)
    contents: list[Text | Table] = [Text(spec.title, "question")]
    missing = [
        response for response in (first, second) if not is_measured(evidence, response, BOTH)
    ]
    if missing:
        contents.append(Text(_why_not(missing), "warning"))
    rows = _rows(evidence, printed, spec, (first, second))
    measured = [row for row in rows if row.get("order") is not None]
    _number(rows, "order", "rank_here")
    _number(rows, PRINTED, "rank_printed")
    rows.sort(key=lambda row: (row.get("rank_here") or np.inf, row.get("rank_printed") or np.inf))
    rows = [row for row in rows if row.get("rank_here") or row.get("rank_printed")]
    if not rows:
        return contents
    unranked = [
        evidence.treatment_title(dict(zip(evidence.varied, key, strict=True)))
        for key, frame in by_treatment(evidence, evidence.usable).items()
        if _is_void(evidence, frame, (first, second))
    ]
    if unranked:
        contents.append(Text(PHRASES("saturated", treatments=unranked), "warning"))
    agreement = _agreement(rows)
    if agreement:
        contents.append(Text(agreement))
    source = printed.source(spec.published) if spec.published else ""
    unit = f"{first.unit}·{second.unit}"
    columns = [*factor_columns(evidence)]
    if measured:
        columns += [
            Column("rank_here", "rank", "measured", group="here"),
            Column(HERE, "product", "measured", unit, group="here"),
        ]
    if spec.published:
        columns += [
            Column("rank_printed", "rank", "published", group=source),
            Column(PRINTED, "product", "published", group=source),
        ]
    note = joined([spec.note, *_notes(spec, bool(measured))])
    contents.append(Table(f"ranking-{number}", spec.title, columns, rows, note))
    return contents


def _is_void(evidence: Evidence, frame: pl.DataFrame, responses: tuple[Response, Response]) -> bool:
    """Return whether saturation takes one of the responses from a treatment."""
    return any(
        bool(not_compared.void_not_left_out(evidence, frame, response).any())
        for response in responses
    )


def _why_not(missing: list[Response]) -> Phrase:
    if any(response.energy for response in missing):
        return PHRASES("no_energy")
    return PHRASES("not_measured", responses=[response.title for response in missing])


def _rows(
    evidence: Evidence, printed: Printed, spec: ShownRanking, responses: tuple[Response, Response]
) -> list[dict[str, Any]]:
    rows = []
    for key, frame in by_treatment(evidence, evidence.usable).items():
        row: dict[str, Any] = dict(zip(evidence.varied, key, strict=True))
        product = np.ones(frame.height)
        for response in responses:
            is_left_out = not_compared.left_out(evidence, frame, response)
            product *= np.where(is_left_out, np.nan, values_of(evidence, frame, response, BOTH))
        product = product[np.isfinite(product) & (product > 0)]
        if product.size and not _is_void(evidence, frame, responses):
            row["order"] = float(np.exp(np.mean(np.log(product))))
            mean = stats.geometric_mean(product)
            row[HERE] = mean if isinstance(mean, stats.Interval) else row["order"]
        if spec.published:
            levels = {name: levels_of(frame, name)[0] for name in evidence.varied}
            first, second = (
                printed.total(spec.published, levels, name) for name in spec.published_product
            )
            row[PRINTED] = None if first is None or second is None else first * second
        rows.append(row)
    return rows


def _number(rows: list[dict[str, Any]], key: str, rank: str) -> None:
    known = sorted((row for row in rows if row.get(key) is not None), key=lambda row: row[key])
    for place, row in enumerate(known, 1):
        row[rank] = place


def _agreement(rows: list[dict[str, Any]]) -> Phrase:
    both = [row for row in rows if row.get("rank_here") and row.get("rank_printed")]
    if not both:
        return Phrase()
    spearman = association.spearman([row["order"] for row in both], [row[PRINTED] for row in both])
    if not isinstance(spearman, association.Association):
        return PHRASES("agreement_unknown", reason=spearman)
    interval = Phrase()
    if isinstance(spearman.interval, stats.Interval):
        interval = PHRASES("interval", low=spearman.interval.low, high=spearman.interval.high)
    return PHRASES(
        "agreement", rho=spearman.estimate, treatments=len(both), p=spearman.p, interval=interval
    )


def _notes(spec: ShownRanking, measured: bool) -> Iterator[Phrase]:
    if measured:
        yield PHRASES("note_here")
    if spec.published:
        columns = [name.replace("_", " ") for name in spec.published_product]
        yield PHRASES("note_published", columns=columns)

"""Treatments ranked by a product of two measured responses, such as energy times delay."""

from __future__ import annotations

from typing import Any

import numpy as np

from wattwire import stats
from wattwire.analysis.dataset import Evidence, by_treatment, levels_of
from wattwire.analysis.metrics_by_role import BOTH, capital, is_measured, values_of
from wattwire.analysis.responses import Response, resolve
from wattwire.model import words
from wattwire.model.output_requests import ShownRanking
from wattwire.report.parts import Column, Table, Text
from wattwire.report.tables.factor_columns import factor_columns
from wattwire.report.tables.published_values import Printed
from wattwire.stats import association

HERE, PRINTED = "product_here", "product_printed"


def parts(
    evidence: Evidence, printed: Printed, spec: ShownRanking, number: int
) -> list[Text | Table]:
    """The ranking beside the published one; a sentence says why where there is none of ours.

    Estimates are no responses, so they are never ranked.
    """
    first, second = (resolve(name, evidence.described) for name in spec.product)
    told: list[Text | Table] = [Text(spec.title, "question")]
    missing = [one for one in (first, second) if not is_measured(evidence, one, BOTH)]
    if missing:
        told.append(Text(_why_not(missing), "warning"))
    rows = _rows(evidence, printed, spec, (first, second))
    measured = [row for row in rows if row.get("order") is not None]
    _number(rows, "order", "rank_here")
    _number(rows, PRINTED, "rank_printed")
    rows.sort(key=lambda row: (row.get("rank_here") or np.inf, row.get("rank_printed") or np.inf))
    rows = [row for row in rows if row.get("rank_here") or row.get("rank_printed")]
    if not rows:
        return told
    agreement = _agreement(rows)
    if agreement:
        told.append(Text(agreement))
    where = printed.source(spec.published) if spec.published else ""
    unit = f"{first.unit}·{second.unit}"
    columns = [*factor_columns(evidence)]
    if measured:
        columns += [
            Column("rank_here", "rank", "measured", group="here"),
            Column(HERE, "product", "measured", unit, group="here"),
        ]
    if spec.published:
        columns += [
            Column("rank_printed", "rank", "published", group=where),
            Column(PRINTED, "product", "published", group=where),
        ]
    note = " ".join(filter(None, (spec.note, _note(spec, bool(measured)))))
    told.append(Table(f"ranking-{number}", spec.title, columns, rows, note))
    return told


def _why_not(missing: list[Response]) -> str:
    names = words.listed([one.title for one in missing])
    if any(one.energy for one in missing):
        return (
            "Nothing of this campaign can be ranked: no meter measured energy. An estimate of "
            "energy from CPU time would rank CPU time, so none is ranked."
        )
    return f"Nothing of this campaign can be ranked: {names} was not measured."


def _rows(
    evidence: Evidence, printed: Printed, spec: ShownRanking, two: tuple[Response, Response]
) -> list[dict[str, Any]]:
    rows = []
    for key, frame in by_treatment(evidence, evidence.usable).items():
        row: dict[str, Any] = dict(zip(evidence.varied, key, strict=True))
        product = values_of(evidence, frame, two[0], BOTH) * values_of(
            evidence, frame, two[1], BOTH
        )
        product = product[np.isfinite(product) & (product > 0)]
        if product.size:
            row["order"] = float(np.exp(np.mean(np.log(product))))
            found = stats.geometric_mean(product)
            row[HERE] = found if isinstance(found, stats.Interval) else row["order"]
        if spec.published:
            levels = {name: levels_of(frame, name)[0] for name in evidence.varied}
            one, other = (
                printed.total(spec.published, levels, name) for name in spec.published_product
            )
            row[PRINTED] = None if one is None or other is None else one * other
        rows.append(row)
    return rows


def _number(rows: list[dict[str, Any]], key: str, rank: str) -> None:
    known = sorted((row for row in rows if row.get(key) is not None), key=lambda row: row[key])
    for place, row in enumerate(known, 1):
        row[rank] = place


def _agreement(rows: list[dict[str, Any]]) -> str:
    both = [row for row in rows if row.get("rank_here") and row.get("rank_printed")]
    if not both:
        return ""
    found = association.spearman([row["order"] for row in both], [row[PRINTED] for row in both])
    if not isinstance(found, association.Association):
        return f"How far the two rankings agree: {found}."
    among = words.plural(len(both), "treatment")
    reach = ""
    if isinstance(found.interval, stats.Interval):
        low, high = words.number(found.interval.low), words.number(found.interval.high)
        reach = f", 95 % interval {low} to {high}"
    return (
        f"{capital('the')} two rankings agree by Spearman's ρ of {words.number(found.estimate)} "
        f"among the {among} that both have ({words.p_equals(found.p)}{reach}; exploratory)."
    )


def _note(spec: ShownRanking, measured: bool) -> str:
    told = []
    if measured:
        told.append(
            "Here: geometric mean over runs, with a 95 % t interval from three runs on; neighbours "
            "whose intervals overlap may stand in either order."
        )
    if spec.published:
        columns = words.listed([name.replace("_", " ") for name in spec.published_product])
        told.append(
            f"Published: the product of the printed {columns}, each added up over the roles that "
            "it is printed of; the paper itself need not print such a product."
        )
    return " ".join(told)

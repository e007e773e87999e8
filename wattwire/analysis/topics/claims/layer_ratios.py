"""Compare the layers of messages in the runs that record them, for a claim."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from wattwire import stats
from wattwire.analysis.dataset import (
    Evidence,
    all_levels,
    has_levels,
    is_within,
    planned_levels,
    rows_at,
)
from wattwire.analysis.topics.claims.verdicts import Comparison, Result
from wattwire.analysis.topics.layers.profiled import medians_us, run_document
from wattwire.model import words
from wattwire.model.layers import LAYERS, OPTIONAL
from wattwire.model.publication.claims import Claim
from wattwire.model.study import PROFILED

RESPONSE_TITLE = "median time per hop"


def requested(evidence: Evidence, claim: Claim) -> Iterator[Comparison]:
    """Yield a comparison without a result for each level of `by` that records layers."""
    recorded = [all_levels(e) for e in evidence.plan if e.get("control") == PROFILED]
    levels_of_by = [
        claim.where.get(factor) or planned_levels(evidence, factor) for factor in claim.by
    ]
    for combination in itertools.product(*levels_of_by):
        at = dict(zip(claim.by, combination, strict=True))
        if any(has_levels(levels, at) and is_within(levels, claim.where) for levels in recorded):
            yield Comparison(
                {},
                {},
                at,
                stats.NotComputable("not computed"),
                left_title=words.listed(list(claim.left_layers)),
                right_title=words.listed(list(claim.right_layers)),
                at_title=", ".join(evidence.title(*level) for level in at.items()),
            )


def why_none(evidence: Evidence) -> str:
    """Return the reason why no treatment of a claim records layers."""
    if not any(entry.get("control") == PROFILED for entry in evidence.plan):
        return "no run of this campaign records layers; set plan.layer_runs"
    return "this campaign records no layers of the treatments that the claim names"


def ratio(evidence: Evidence, claim: Claim, item: Comparison, level: float) -> Result:
    """Return the ratio of the left to the right layers at confidence `level`, or why there is none.

    A side is the sum of the medians of its layers. The ratio is the geometric mean over the valid
    recording runs of the treatments, times the claim's multiples. Differences between the
    treatments widen its interval.
    """
    frame = evidence.profiled
    is_used = (frame["verdict"] == "valid").to_numpy() & rows_at(frame, item.at)
    for factor, levels in claim.where.items():
        is_used &= np.any([rows_at(frame, {factor: value}) for value in levels], axis=0)
    rows = frame.filter(pl.Series(is_used))
    if not rows.height:
        return stats.NotComputable("no run that records layers is valid")
    ratios = []
    for row in rows.iter_rows(named=True):
        document = run_document(evidence, row)
        if title := _lacking(document):
            return stats.NotComputable(f"a run records no {title}, whose time is in other layers")
        times_us = medians_us(document)
        left_us, right_us = (
            sum(times_us.get(layer.name, 0.0) for layer in LAYERS if layer.category in parts)
            for parts in (claim.left_layers, claim.right_layers)
        )
        if not left_us or not right_us:
            return stats.NotComputable("a run has no such layers")
        ratios.append(left_us / right_us)
    result = stats.geometric_mean(ratios, level)
    if not isinstance(result, stats.Interval):
        return result
    times = claim.left_times / claim.right_times
    return replace(
        result,
        estimate=times * result.estimate,
        low=times * result.low,
        high=times * result.high,
    )


def _lacking(document: Mapping[str, Any]) -> str:
    """Return the title of a layer that each message has and that a hop lacks; "" without one."""
    hops = [hop["layer_medians_ns"] for hop in document["layers"]["topics"] if hop["deliveries"]]
    lacking = (
        layer.title
        for layer in LAYERS
        if layer.name not in OPTIONAL and any(hop[layer.name] is None for hop in hops)
    )
    return next(lacking, "")

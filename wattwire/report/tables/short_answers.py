"""Build the table of short answers for page and terminal, with decided answers first."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from wattwire.analysis.answering.confidence import has_few_degrees
from wattwire.model import words
from wattwire.report.parts import Column, Table
from wattwire.report.words.phrases import Phrases

PHRASES = Phrases(
    "short_answers",
    {
        "title": "Summary of answers",
        "note": (
            "The table lists decided answers first and sorts answers by the distance of their "
            "ratio from 1. Intervals are at {confidence:confidence}{family}. Questions, models and "
            "reasons are below."
        ),
        "family": " (simultaneous over {answers:plural answer})",
    },
)

Row = tuple[str, str, str, str]
KEYS = ("response", "contrast", "estimate", "outcome")


def rows(document: Mapping[str, Any]) -> list[Row]:
    """Return response, sides, estimate with interval, and outcome of each contrast.

    `document` is report/analysis.json. Contrasts without a number are omitted, except shares ("none
    in any of 18 runs"). The page lists the omitted contrasts separately.
    """
    contrasts = document["contrasts"]
    known = [
        contrast
        for contrast in contrasts
        if contrast["kind"] != "none" and contrast["estimate"] is not None
    ]
    shares = [
        contrast
        for contrast in contrasts
        if contrast["kind"] == "none" and contrast.get("is_share")
    ]
    none = dict.fromkeys(
        (contrast["response_title"], "", contrast["reason"], "") for contrast in shares
    )
    return [*(_row(contrast) for contrast in sorted(known, key=place)), *none]


def place(contrast: Mapping[str, Any]) -> tuple[int, float]:
    """Return a sort key that places decided contrasts first.

    Within an outcome, ratios precede differences. Ratios are sorted by distance from 1, in
    descending order.
    """
    order = list(words.OUTCOMES).index(contrast["outcome"])
    if has_few_degrees(contrast.get("degrees")):
        order = len(words.OUTCOMES)
    if contrast["kind"] == "ratio":
        return order, -abs(math.log(contrast["estimate"]))
    return order, 0.0


def _row(contrast: Mapping[str, Any]) -> Row:
    values = contrast["estimate"], contrast["low"], contrast["high"]
    level, baseline = contrast["level_title"], contrast["baseline_title"]
    if contrast["kind"] == "ratio":
        # As in sentences, the larger side stands first, so that no reader has to invert a ratio.
        if values[0] < 1 and (contrast["low"] or 0) > 0:
            level, baseline = baseline, level
            values = 1 / values[0], 1 / values[2] if values[2] else 0.0, 1 / values[1]
        finite = [math.inf if value is None else value for value in values]
        estimate, low, high = words.limits(finite[0], finite[1], finite[2])
        interval = f"{estimate} [{low}, {high}]"
        sides = f"{level} / {baseline}"
    else:
        estimate, low, high = (words.number(value) for value in values)
        interval = f"{estimate} [{low}, {high}] {contrast['unit']}".rstrip()
        sides = f"{level} − {baseline}"
    outcome = words.OUTCOMES[contrast["outcome"]]
    if has_few_degrees(contrast.get("degrees")):  # the headline does not claim it either
        outcome = "too few repetitions"
    return contrast["response_title"], sides, interval, outcome


def table(document: Mapping[str, Any]) -> Table | None:
    """Return the table for the page, or None for fewer than two answers."""
    all_rows = rows(document)
    if len(all_rows) < 2:
        return None
    family = document["family"]
    family_note = PHRASES("family", answers=family) if family > 1 else ""
    return Table(
        "short-answers",
        PHRASES("title"),
        [
            Column("response", "response"),
            Column("contrast", "contrast"),
            Column("estimate", "estimate [interval]"),
            Column("outcome", "outcome"),
        ],
        [dict(zip(KEYS, row, strict=True)) for row in all_rows],
        PHRASES("note", confidence=document["confidence"], family=family_note),
    )

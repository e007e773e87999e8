"""Every answer in a line, decided ones first: what page and terminal begin with."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from wattwire.model import words
from wattwire.report.parts import Column, Table

Row = tuple[str, str, str, str]
KEYS = ("response", "contrast", "estimate", "outcome")


def rows(document: Mapping[str, Any]) -> list[Row]:
    """Return response, sides, estimate with its interval, and outcome of each contrast.

    `document` is report/analysis.json. Of contrasts without a number only shares are among them,
    as "none in any of 18 runs"; lines of their own name the others.
    """
    contrasts = document["contrasts"]
    known = [one for one in contrasts if one["kind"] != "none" and one["estimate"] is not None]
    shares = [one for one in contrasts if one["kind"] == "none" and one.get("is_share")]
    none = dict.fromkeys((one["response_title"], "", one["reason"], "") for one in shares)
    return [*(_row(one) for one in sorted(known, key=place)), *none]


def place(contrast: Mapping[str, Any]) -> tuple[int, float]:
    """Decided ones first; among them ratios by how far they lie from 1, then differences."""
    order = list(words.OUTCOMES).index(contrast["outcome"])
    if contrast["kind"] == "ratio":
        return order, -abs(math.log(contrast["estimate"]))
    return order, 0.0


def _row(contrast: Mapping[str, Any]) -> Row:
    values = contrast["estimate"], contrast["low"], contrast["high"]
    level, baseline = contrast["level_title"], contrast["baseline_title"]
    if contrast["kind"] == "ratio":
        finite = [math.inf if value is None else value for value in values]
        estimate, low, high = words.limits(finite[0], finite[1], finite[2])
        told = f"{estimate} [{low}, {high}]"
        sides = f"{level} / {baseline}"
    else:
        estimate, low, high = (words.number(value) for value in values)
        told = f"{estimate} [{low}, {high}] {contrast['unit']}".rstrip()
        sides = f"{level} − {baseline}"
    return contrast["response_title"], sides, told, words.OUTCOMES[contrast["outcome"]]


def table(document: Mapping[str, Any]) -> Table | None:
    """Return the page's table; None where one sentence says it all."""
    every = rows(document)
    if len(every) < 2:
        return None
    level, family = words.confidence(document["confidence"]), document["family"]
    together = f" ({family} together)" if family > 1 else ""
    return Table(
        "short-answers",
        "In short",
        [
            Column("response", "response"),
            Column("contrast", "contrast"),
            Column("estimate", "estimate [interval]"),
            Column("outcome", "outcome"),
        ],
        [dict(zip(KEYS, row, strict=True)) for row in every],
        f"Decided answers first, among them the largest effect. Intervals at {level}{together}; "
        "questions, models and reasons are below.",
    )

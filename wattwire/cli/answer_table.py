"""The table of answers that `run` and `report` print: decided ones first, largest effect first."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from wattwire.model import words

ROWS_MAX = 12
OUTCOMES = {
    "different": "different",
    "equivalent": "equivalent",
    "within noise": "not larger than the A/A noise",
    "undecided": "no difference detected",
}
"""What a contrast's outcome is called, in the order in which the table has them."""
Row = tuple[str, str, str, str]


def rows(document: Mapping[str, Any]) -> list[Row]:
    """Return response, sides, estimate with its interval, and outcome of each contrast.

    `document` is report/analysis.json. Of contrasts without a number only shares are among them,
    as "none in any of 18 runs"; lines of their own name the others.
    """
    contrasts = document["contrasts"]
    known = [one for one in contrasts if one["kind"] != "none" and one["estimate"] is not None]
    shares = [one for one in contrasts if one["kind"] == "none" and one.get("is_share")]
    none = dict.fromkeys((one["response_title"], "", one["reason"], "") for one in shares)
    return [*(_row(one) for one in sorted(known, key=_place)), *none]


def _place(contrast: Mapping[str, Any]) -> tuple[int, float]:
    """Decided ones first; among them ratios by how far they lie from 1, then differences."""
    order = list(OUTCOMES).index(contrast["outcome"])
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
    return contrast["response_title"], sides, told, OUTCOMES[contrast["outcome"]]


def lines(document: Mapping[str, Any], width: int) -> list[str]:
    """Return the table as text of this width; nothing where one sentence says it all."""
    every = rows(document)
    if len(every) < 2:
        return []
    from rich.console import Console  # noqa: PLC0415 - slow to import
    from rich.table import Table

    level = words.confidence(document["confidence"])
    family = document["family"]
    together = f", all {family} together" if family > 1 else ""
    table = Table(box=None, pad_edge=False, header_style="", padding=(0, 2, 0, 0))
    for heading in ("response", "", f"estimate [{level} CI{together}]", ""):
        table.add_column(heading)
    for row in every[:ROWS_MAX]:
        table.add_row(*row)
    console = Console(width=width, color_system=None, highlight=False, markup=False)
    with console.capture() as captured:
        console.print(table)
    text = [line.rstrip() for line in captured.get().splitlines()]
    more = len(every) - ROWS_MAX
    return [*text, *([f"{more} more on the page"] if more > 0 else [])]

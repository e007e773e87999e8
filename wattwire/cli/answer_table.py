"""The table of answers that `run` and `report` print: decided ones first, largest effect first."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from wattwire.model import words
from wattwire.report.words.changes import change_sentence

ROWS_MAX, CHANGES_MAX = 12, 3
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
    text += [f"{more} more on the page"] if more > 0 else []
    return [*text, *_depending(document.get("changes", []), width)]


def _depending(changes: Sequence[Mapping[str, Any]], width: int) -> list[str]:
    """Which ratios above do not stand for all levels of another factor, the largest first."""
    told = [f"Not one number: {change_sentence(one)}" for one in changes[:CHANGES_MAX]]
    more = len(changes) - CHANGES_MAX
    told += [f"{more} more such changes are on the page."] if more > 0 else []
    return [line for text in told for line in textwrap.wrap(text, width, break_on_hyphens=False)]

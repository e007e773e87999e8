"""The table of answers that `run` and `report` print: decided ones first, largest effect first."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from wattwire.model import words
from wattwire.report.tables.short_answers import rows
from wattwire.report.words.changes import change_sentence

ROWS_MAX, CHANGES_MAX = 12, 3


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

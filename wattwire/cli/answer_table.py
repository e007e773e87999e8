"""Format the table of answers for `run` and `report`.

Decided answers and large effects come first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wattwire.cli.wrap import beside, table
from wattwire.model import words
from wattwire.report.tables.short_answers import rows
from wattwire.report.words.changes import change_sentence

ROWS_MAX, CHANGES_MAX = 12, 3


def lines(document: Mapping[str, Any], width: int) -> list[str]:
    """Return the lines of the table, at most `width` columns wide.

    The result is empty for fewer than two answers, because the headline contains a single answer.
    """
    answer_rows = rows(document)
    if len(answer_rows) < 2:
        return []
    level = words.confidence(document["confidence"])
    family = document["family"]
    simultaneous = f", all {family} together" if family > 1 else ""
    headings = ("response", "", f"estimate [{level} CI{simultaneous}]", "")
    table_lines = table([headings, *answer_rows[:ROWS_MAX]], "<<<<", width, indent="")
    hidden_count = len(answer_rows) - ROWS_MAX
    table_lines += [f"and {hidden_count} more on the page"] if hidden_count > 0 else []
    return [*table_lines, *_change_lines(document.get("changes", []), width)]


def _change_lines(changes: Sequence[Mapping[str, Any]], width: int) -> list[str]:
    """Return one line per ratio that depends on another factor's level, largest change first."""
    sentences = [f"Interaction: {change_sentence(change)}" for change in changes[:CHANGES_MAX]]
    hidden_count = len(changes) - CHANGES_MAX
    sentences += (
        [f"The page has {words.plural(hidden_count, 'more interaction')}."]
        if hidden_count > 0
        else []
    )
    return [line for sentence in sentences for line in beside("", sentence, width)]

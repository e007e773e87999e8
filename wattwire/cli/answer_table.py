"""Format the table of answers for `run` and `report`.

Decided answers and large effects come first.
"""

from __future__ import annotations

from collections.abc import Sequence

from wattwire.analysis.document import Document
from wattwire.analysis.topics.answers.numbers import AnsweredStudy
from wattwire.analysis.topics.answers.tables import Short
from wattwire.analysis.topics.interactions.numbers import Change, Interactions
from wattwire.cli.wrap import beside, table
from wattwire.model import words
from wattwire.report.topic_page import Sentences

ROWS_MAX, CHANGES_MAX = 12, 3
ANSWERS, INTERACTIONS = Sentences("answers"), Sentences("interactions")


def lines(document: Document, width: int) -> list[str]:
    """Return the lines of the table, at most `width` columns wide.

    The result is empty for fewer than two answers, because the headline contains a single answer.
    """
    study = document.result(AnsweredStudy)
    answer_rows = [_row(short) for short in study.shorts]
    if len(answer_rows) < 2:
        return []
    level, family = words.confidence(study.confidence), study.contrasts.family
    simultaneous = f", all {family} together" if family > 1 else ""
    headings = ("response", "", f"estimate [{level} interval{simultaneous}]", "")
    table_lines = table([headings, *answer_rows[:ROWS_MAX]], "<<<<", width, indent="")
    hidden_count = len(answer_rows) - ROWS_MAX
    table_lines += [f"and {hidden_count} more on the page"] if hidden_count > 0 else []
    return [*table_lines, *_change_lines(document.result(Interactions).changes, width)]


def _row(short: Short) -> tuple[str, str, str, str]:
    """Return response, sides, estimate with interval, and outcome."""
    texts = (ANSWERS.short_sides(short), ANSWERS.short_estimate(short))
    return short.response.title, *texts, ANSWERS.short_outcome(short)


def _change_lines(changes: Sequence[Change], width: int) -> list[str]:
    """Return one line per ratio that depends on another factor's level, largest change first."""
    sentences = [f"Interaction: {INTERACTIONS.change(change)}" for change in changes[:CHANGES_MAX]]
    hidden_count = len(changes) - CHANGES_MAX
    sentences += (
        [f"The page has {words.plural(hidden_count, 'more interaction')}."]
        if hidden_count > 0
        else []
    )
    return [line for sentence in sentences for line in beside("", sentence, width)]

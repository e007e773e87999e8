"""Format a comparison and the limits of its study for the terminal."""

from __future__ import annotations

from wattwire.analysis.topics.comparison.result import Comparison
from wattwire.analysis.topics.limits.numbers import Limits
from wattwire.cli.wrap import table
from wattwire.report.print.comparison import (
    NO_LIMITS,
    first_line,
    limit_sentences,
    remarks,
    rows,
)


def lines(judged: Comparison | None, limits: Limits = NO_LIMITS) -> list[str]:
    """Return the comparison and the limits as plain lines. The first line states the result.

    Lines of the table begin with spaces. They do not wrap, so that a log can be searched.
    """
    text_lines = [first_line(judged, limits), ""]
    if judged is not None:
        text_lines += [*table(rows(judged), "<<<<"), ""]
    return [*text_lines, *limit_sentences(limits), *remarks(judged)]

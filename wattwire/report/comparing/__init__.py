"""Worse, not worse, or cannot tell: two campaigns, or the variants of one, against a margin."""

from wattwire.report.comparing.inside import compare_variants, suspect_keys
from wattwire.report.comparing.judged import NOT_WORSE, UNCLEAR, WORSE, Item, Judged
from wattwire.report.comparing.output import (
    first_line,
    junit,
    markdown,
    nothing_usable,
    text_lines,
)
from wattwire.report.comparing.sides import Wanted
from wattwire.report.comparing.two import Source, compare_two

__all__ = [
    "NOT_WORSE",
    "UNCLEAR",
    "WORSE",
    "Item",
    "Judged",
    "Source",
    "Wanted",
    "compare_two",
    "compare_variants",
    "first_line",
    "junit",
    "markdown",
    "nothing_usable",
    "suspect_keys",
    "text_lines",
]

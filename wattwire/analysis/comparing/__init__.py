"""Worse, not worse, or cannot tell: two campaigns, or the variants of one, against a margin."""

from wattwire.analysis.comparing.inside import compare_variants, suspect_keys
from wattwire.analysis.comparing.judged import NOT_WORSE, UNCLEAR, WORSE, Item, Judged
from wattwire.analysis.comparing.sides import Wanted
from wattwire.analysis.comparing.two import Source, compare_two

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
    "suspect_keys",
]

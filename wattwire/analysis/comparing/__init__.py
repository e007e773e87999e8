"""Worse, not worse, or cannot tell: two campaigns, or the variants of one, against a margin."""

from wattwire.analysis.comparing.common import Wanted
from wattwire.analysis.comparing.decision import NOT_WORSE, UNCLEAR, WORSE, Item, Judged
from wattwire.analysis.comparing.two_campaigns import Source, compare_two
from wattwire.analysis.comparing.within_campaign import compare_variants, suspect_keys

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

"""Compare two campaigns, or the variants of a campaign, against a margin.

The verdicts are worse, not worse and cannot tell.
"""

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

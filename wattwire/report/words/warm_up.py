"""The sentence on how settling runs determined the warm-up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wattwire.model import words
from wattwire.model.warm_up import SETTLING_CALLS, SETTLING_S
from wattwire.stats.series.settling import TOLERANCE


def ruled(found: Mapping[str, Any]) -> str:
    """Return how the number of warm-up calls was determined, for a page's methods."""
    return (
        f"Settling runs before the first block ({words.count(len(found['cells']))} cells, "
        f"{SETTLING_CALLS:,} calls or {SETTLING_S:g} s each; excluded from all answers) determined "
        f"after how many calls each cell's median latency stays within {100 * TOLERANCE:g} % of "
        f"its last quarter: the largest of these numbers, {words.plural(found['calls'], 'call')} "
        "of each client, is the warm-up of all treatments"
    )

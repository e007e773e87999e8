"""Explain how settling runs determined the warm-up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wattwire.model.warm_up import SETTLING_CALLS, SETTLING_S
from wattwire.report.words.phrases import Phrase, Phrases
from wattwire.stats.series.settling import TOLERANCE

PHRASES = Phrases(
    "warm_up",
    {
        "ruled": (
            "Settling runs before the first block ({cells:plural cell}, {calls_max:count} calls or "
            "{seconds_max:g} s each; excluded from all answers) determined for each cell the "
            "number of calls after which its median latency stays within {percent:g} % of the "
            "median over the run's last quarter. The largest of these numbers, "
            "{calls:plural call} of each client, is the warm-up of all treatments"
        ),
    },
)


def ruled(warm_up: Mapping[str, Any]) -> Phrase:
    """Return a sentence on how settling runs determined the number of warm-up calls."""
    return PHRASES(
        "ruled",
        cells=len(warm_up["cells"]),
        calls_max=SETTLING_CALLS,
        seconds_max=SETTLING_S,
        percent=100 * TOLERANCE,
        calls=warm_up["calls"],
    )

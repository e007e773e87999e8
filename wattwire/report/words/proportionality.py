"""Phrases on whether the exponent of a power law shows proportionality."""

from __future__ import annotations

from typing import Any

from wattwire import stats
from wattwire.report.words.phrases import Phrase, Phrases

PHRASES = Phrases(
    "proportionality",
    {
        "grows": "grows, but not proportionally",
        "falls": "falls",
        "not_in_proportion": "not proportional",
        "in_proportion": "about proportional",
        "cannot_tell": "cannot tell",
    },
)

PROPORTION = (0.8, 1.2)
"""Range that must contain the exponent's interval for the conclusion "about proportional"."""


def proportionality(power: Any) -> Phrase:
    """Return the conclusion from the interval of an exponent, or "" if there is no interval."""
    if not isinstance(power, stats.Interval):
        return Phrase()
    if power.excludes(1.0):
        if power.excludes(0.0):
            return PHRASES("grows" if power.estimate > 0 else "falls")
        return PHRASES("not_in_proportion")
    return PHRASES("in_proportion" if power.within(*PROPORTION) else "cannot_tell")

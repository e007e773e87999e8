"""Sentences on ratios that depend on another factor."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from wattwire.report.words.phrases import Phrase, Phrases

PHRASES = Phrases(
    "changes",
    {
        "depends": (
            "{level} / {baseline} in {response} depends on {other}: {lowest:interval} at "
            "{lowest_at} and {highest:interval} at {highest_at}{between}. Exploratory."
        ),
        "between": " ({levels:plural level} in between)",
    },
)


def change_sentence(change: Mapping[str, Any]) -> Phrase:
    """Return a sentence on the lowest and the highest ratio over the levels of another factor.

    `change` is an entry of `changes` in report/analysis.json.
    """
    levels = sorted(change["levels"], key=lambda level: level["estimate"])
    lowest, highest = levels[0], levels[-1]
    return PHRASES(
        "depends",
        level=change["level_title"],
        baseline=change["baseline_title"],
        response=change["response_title"],
        other=change["other_title"],
        lowest=SimpleNamespace(**lowest),
        lowest_at=lowest["level_title"],
        highest=SimpleNamespace(**highest),
        highest_at=highest["level_title"],
        between=PHRASES("between", levels=len(levels) - 2) if len(levels) > 2 else "",
    )

"""Sentences on ratios that depend on another factor, where one number would hide differences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wattwire.model import words


def change_sentence(change: Mapping[str, Any]) -> str:
    """Return what a ratio is at the two levels where it differs most.

    `change` is an entry of `changes` in report/analysis.json.
    """
    levels = sorted(change["levels"], key=lambda level: level["estimate"])
    ends = (levels[0], levels[-1])
    extremes = " and ".join(f"{_interval(level)} at {level['level_title']}" for level in ends)
    between = f" ({words.plural(len(levels) - 2, 'level')} between)" if len(levels) > 2 else ""
    return (
        f"{change['level_title']} / {change['baseline_title']} in {change['response_title']} "
        f"depends on {change['other_title']}: {extremes}{between}. Exploratory."
    )


def _interval(level: Mapping[str, Any]) -> str:
    estimate, low, high = words.limits(level["estimate"], level["low"], level["high"])
    return f"{estimate} [{low}, {high}]"

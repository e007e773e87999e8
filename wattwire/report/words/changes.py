"""Ratios that depend on another factor, in words: one number would hide what differs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wattwire.model import words


def change_sentence(change: Mapping[str, Any]) -> str:
    """Say what a ratio is at the two levels where it differs most.

    `change` is an entry of `changes` in report/analysis.json.
    """
    levels = sorted(change["levels"], key=lambda one: one["estimate"])
    ends = (levels[0], levels[-1])
    told = " and ".join(f"{_interval(one)} at {one['level_title']}" for one in ends)
    between = f" ({words.plural(len(levels) - 2, 'level')} between)" if len(levels) > 2 else ""
    return (
        f"{change['level_title']} / {change['baseline_title']} in {change['response_title']} "
        f"depends on {change['other_title']}: {told}{between}. Exploratory."
    )


def _interval(one: Mapping[str, Any]) -> str:
    estimate, low, high = words.limits(one["estimate"], one["low"], one["high"])
    return f"{estimate} [{low}, {high}]"

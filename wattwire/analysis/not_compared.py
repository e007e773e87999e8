"""Treatments that stay out of a response's model, whole: a run of theirs has no value to compare.

A latency among messages that were lost has no bound, a percentile of too few messages is none,
and costs per message of a server that fails its calls are the costs of failing. Never is such a
run left out alone: what remains of its treatment would be its better runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wattwire import stats
from wattwire.analysis import carried
from wattwire.analysis.dataset import Evidence, by_treatment, levels_of, same_level
from wattwire.analysis.responses import Response
from wattwire.model import words
from wattwire.model.derived import after_warmup, column

Mask = NDArray[np.bool_]
FAILED_MAX = 0.05
"""With a larger share of calls failed or lost, costs per message are not those of answers."""
CALLED = ("service", "action", "pingpong")
"""Patterns whose messages are answered; the loss of a topic is a property of its transport."""

TOLD_MAX = 6
"""Up to so many of them stand in the page's first lines."""


def without_value(frame: pl.DataFrame, response: Response) -> Mask:
    """Which runs have the response, but nothing of it that can be compared, shape (runs,)."""
    values = column(frame, response.column)
    found: Mask = np.isposinf(values)
    found |= ~np.isnan(values) & carried.too_few(frame, response.column)
    if "_per_message" in response.column:
        found |= ~np.isnan(values) & (_failed_share(frame) > FAILED_MAX)
    return found


def _failed_share(frame: pl.DataFrame) -> NDArray[np.float64]:
    """Share of calls failed or lost after the warm-up, shape (runs,); 0 for what are no calls."""
    expected, gone = after_warmup(frame, "expected"), _gone(frame)
    are_calls = np.array([one in CALLED for one in levels_of(frame, "pattern")], dtype=np.bool_)
    known = are_calls & (expected > 0) & ~np.isnan(gone)
    return np.where(known, gone / np.where(expected > 0, expected, 1.0), 0.0)


def _gone(frame: pl.DataFrame) -> NDArray[np.float64]:
    """Messages lost and calls failed after the warm-up, shape (runs,).

    Campaigns from before failed calls were told apart have them among the lost.
    """
    return after_warmup(frame, "lost") + np.nan_to_num(after_warmup(frame, "failed"))


def compared(evidence: Evidence, frame: pl.DataFrame, response: Response) -> Mask:
    """Which runs a model of the response is fitted to, shape (runs,).

    They know the response, and no run of their treatment is without a value of it.
    """
    known: Mask = ~np.isnan(column(frame, response.column))
    without = without_value(frame, response)
    if not without.any():
        return known
    sides = [
        [evidence.word(name, one) for one in levels_of(frame, name)] for name in evidence.varied
    ]
    treatments = list(zip(*sides, strict=True)) or [()] * frame.height
    left_out = {treatments[at] for at in np.flatnonzero(without)}
    return known & np.array([one not in left_out for one in treatments], dtype=np.bool_)


def why_not(
    evidence: Evidence, frame: pl.DataFrame, response: Response, levels: Mapping[str, Any]
) -> stats.NotComputable | None:
    """Why runs at these levels have no answer in the response; None where all have a value."""
    without = without_value(frame, response)
    if not without.any():
        return None
    mine = np.ones(frame.height, dtype=np.bool_)
    for name, level in levels.items():
        mine &= np.array([same_level(level, one) for one in levels_of(frame, name)], dtype=np.bool_)
    if not (without & mine).any():
        return None
    name = " ".join(evidence.title(*one) for one in levels.items()) or "the only treatment"
    return stats.NotComputable(f"{name}: {_reason(frame, response, without, mine)}")


def _reason(frame: pl.DataFrame, response: Response, without: Mask, mine: Mask) -> str:
    here = frame.filter(pl.Series(without & mine))
    few = carried.why_not(here, response.column)
    if few and not np.isposinf(column(here, response.column)).any():
        return f"{response.title}: {few}"
    runs = f"{words.count(here.height)} of {words.plural(int(mine.sum()), 'run')}"
    gone, expected = np.nansum(_gone(here)), np.nansum(after_warmup(here, "expected"))
    calls = any(one in CALLED for one in levels_of(here, "pattern"))
    what = "calls failed or were lost" if calls else "messages were lost"
    share = f"{words.percent(float(gone / expected))} of the {what}" if expected > 0 else what
    if not np.isposinf(column(here, response.column)).any():
        return (
            f"no {response.title} to compare in {runs}, where {share}: that of a call that fails "
            "is not that of an answer"
        )
    quantile = carried.share_of(response.column)
    if quantile:
        share += f" (finite up to {words.percent(1.0 - quantile)})"
    return f"no finite {response.title} in {runs}, where {share}"


def headline(evidence: Evidence, responses: Sequence[Response]) -> str:
    """Whose runs ended badly, then whose have no value in a response; "" for none."""
    groups = by_treatment(evidence, evidence.usable)
    told = [_ended(evidence, group) for group in groups.values()]
    for response in responses:
        few = carried.too_few(evidence.usable, response.column)
        if few.any() and few.all():
            reason = carried.why_not(evidence.usable, response.column)
            told.append(f"No {response.title}: {reason}.")
        elif without_value(evidence.usable, response).any():
            told += [_of_treatment(evidence, group, response) for group in groups.values()]
    told = [one for one in told if one]
    more = words.plural(len(told) - TOLD_MAX, "more such statement")
    return " ".join([*told[:TOLD_MAX], *([f"{more}: see the answers."] * (len(told) > TOLD_MAX))])


def _ended(evidence: Evidence, group: pl.DataFrame) -> str:
    """As "CELL died in 4 of 4 runs."."""
    counts = Counter(group["outcome"].to_list())
    ends = [
        f"{str(outcome).replace('_', ' ')} in {words.count(count)}"
        for outcome, count in counts.most_common()
        if outcome != "completed"
    ]
    if not ends:
        return ""
    return f"{_name(evidence, group)} {words.listed(ends)} of {words.plural(group.height, 'run')}."


def _of_treatment(evidence: Evidence, group: pl.DataFrame, response: Response) -> str:
    levels = {name: levels_of(group, name)[0] for name in evidence.varied}
    reason = why_not(evidence, evidence.usable, response, levels)
    return f"{reason}." if reason else ""


def _name(evidence: Evidence, group: pl.DataFrame) -> str:
    named = (evidence.title(name, levels_of(group, name)[0]) for name in evidence.varied)
    return " ".join(named) or "The only treatment"

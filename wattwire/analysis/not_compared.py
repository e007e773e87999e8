"""Determine the treatments that the model of a response excludes.

A treatment is excluded if one of its runs has no comparable value. A latency percentile among lost
messages is unbounded. A percentile of too few messages is unreliable. Costs per message of a server
that fails its calls are the costs of failures. The latency of a saturated run depends on its
length. A one-way latency between hosts is not known if the band of their clocks is too wide. Such a
run is never excluded alone, because only the better runs of its treatment would remain.

A treatment of which less than half of the runs were saturated is the exception: a busy machine can
stop one run, which must not remove the answers about all others. Only these runs are left out, and
the first lines of the page count them and say that the answers describe the other runs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wattwire import stats
from wattwire.analysis import carried
from wattwire.analysis.dataset import Evidence, by_treatment, levels_of, rows_at
from wattwire.analysis.emulated import is_emulated
from wattwire.analysis.responses import Response
from wattwire.model import words
from wattwire.model.deployment import has_replies
from wattwire.model.derived import (
    after_warmup,
    column,
    due_after_warmup,
    flow_suffix,
    without_arrival,
)
from wattwire.model.flows import COLUMN, FLOWS, has_flow_of
from wattwire.model.verdict import Outcome

Mask = NDArray[np.bool_]
FAILED_MAX = 0.05
"""Maximum share of failed or lost calls at which costs per message describe answered calls."""
ONE_WAY = re.compile(
    r"(?:(?:latency|since_send)_(?:p\d+|max|mean)_us|(?:soft|hard)_deadline_missed_share)"
    r"(?P<part>\.hop\.\d+|\.flow\..+)?"
)
"""Responses that need one clock for both ends of a message."""
LEFT_OUT_BELOW = 0.5
"""Share of saturated runs of a treatment from which the treatment is excluded entirely."""
BAND, MEDIAN = "clock_band_us", "latency_p50_us"
BAND_SHARE_MAX = 1.0
"""Largest share of the band in the median latency for a study without `answers.margin`. A wider
band leaves even the sign of a latency unknown.
"""


def too_wide(evidence: Evidence, frame: pl.DataFrame, name: str) -> Mask:
    """Return whether the clocks' band is too wide for the column `name` of each run, shape (runs,).

    The band must not exceed the study's `answers.margin` of the run's median latency.
    """
    one_way = ONE_WAY.fullmatch(name)
    part = (one_way["part"] or "") if one_way else ""
    if not one_way or f"{BAND}{part}" not in frame.columns:
        return np.zeros(frame.height, dtype=np.bool_)
    band_us, median_us = column(frame, f"{BAND}{part}"), column(frame, f"{MEDIAN}{part}")
    is_within = band_us <= _band_share_max(evidence) * median_us
    return np.asarray((band_us > 0) & ~np.isnan(median_us) & ~is_within, dtype=np.bool_)


def _band_share_max(evidence: Evidence) -> float:
    margin = evidence.study.answers.margin
    return BAND_SHARE_MAX if margin is None else margin


def _why_too_wide(evidence: Evidence, frame: pl.DataFrame, response: Response, runs: int) -> str:
    """Return the reason against the runs of `frame`, of `runs` runs, whose band is too wide."""
    one_way = ONE_WAY.fullmatch(response.column)
    part = (one_way["part"] or "") if one_way else ""
    band_us, median_us = column(frame, f"{BAND}{part}"), column(frame, f"{MEDIAN}{part}")
    widest = int(np.argmax(band_us / np.maximum(median_us, 1e-3)))
    return (
        f"no {response.title} in {words.count(frame.height)} of {words.plural(runs, 'run')}, "
        f"because the hosts' clocks agree only within ± {words.number(float(band_us[widest]))} µs, "
        f"more than {words.percent(_band_share_max(evidence))} of the median of "
        f"{words.number(float(median_us[widest]))} µs (round trips and delay variation need no "
        "common clock)"
    )


def without_value(evidence: Evidence, frame: pl.DataFrame, response: Response) -> Mask:
    """Return whether each run lacks a comparable value of a response, shape (runs,).

    Runs whose nodes died before any latency was measured are included. Otherwise, only the better
    runs of the treatment would remain. Runs that are `left_out` are not included.
    """
    values = column(frame, response.column)
    is_excluded: Mask = np.isposinf(values) | too_wide(evidence, frame, response.column)
    if carried.share_of(response.column) and "outcome" in frame.columns:
        ended = frame["outcome"].is_in([Outcome.DIED.value, Outcome.TIMED_OUT.value]).to_numpy()
        is_excluded |= np.isnan(values) & ended
    is_excluded |= ~np.isnan(values) & carried.too_few(frame, response.column)
    is_excluded |= carried.void(frame, response.column)
    if "_per_message" in response.column:
        is_excluded |= ~np.isnan(values) & (_failed_share(frame) > FAILED_MAX)
    return is_excluded & ~left_out(evidence, frame, response)


def left_out(evidence: Evidence, frame: pl.DataFrame, response: Response) -> Mask:
    """Return the saturated runs that the response's model leaves out alone, shape (runs,).

    Less than LEFT_OUT_BELOW of the runs of their treatment in `frame` are saturated.
    """
    void = carried.void(frame, response.column)
    if not void.any():
        return void
    treatments = _treatments(evidence, frame)
    runs = Counter(treatments)
    saturated = Counter(
        treatment for treatment, is_void in zip(treatments, void, strict=True) if is_void
    )
    is_minority = [saturated[key] < LEFT_OUT_BELOW * runs[key] for key in treatments]
    return np.asarray(void & np.array(is_minority, dtype=np.bool_), dtype=np.bool_)


def void_not_left_out(evidence: Evidence, frame: pl.DataFrame, response: Response) -> Mask:
    """Return the runs whose saturation takes the response from their treatment, shape (runs,)."""
    return carried.void(frame, response.column) & ~left_out(evidence, frame, response)


def comparable_values(
    evidence: Evidence, frame: pl.DataFrame, response: Response
) -> NDArray[np.float64]:
    """Return the response of each run, shape (runs,); NaN for runs that are `left_out`."""
    values = column(frame, response.column)
    return np.where(left_out(evidence, frame, response), np.nan, values)


def _treatments(evidence: Evidence, frame: pl.DataFrame) -> list[tuple[str, ...]]:
    """Return the words of the varied levels of each run."""
    words_by_factor = [
        [evidence.word(name, level) for level in levels_of(frame, name)] for name in evidence.varied
    ]
    return list(zip(*words_by_factor, strict=True)) or [()] * frame.height


def _failed_share(frame: pl.DataFrame) -> NDArray[np.float64]:
    """Return the share of failed or lost calls after the warm-up, shape (runs,).

    It is 0 for patterns without replies, where loss is a property of the transport.
    """
    expected, missing = due_after_warmup(frame), without_arrival(frame)
    are_calls = np.array(
        [has_replies(pattern) for pattern in levels_of(frame, "pattern")], dtype=np.bool_
    )
    known = are_calls & (expected > 0) & ~np.isnan(missing)
    return np.where(known, missing / np.where(expected > 0, expected, 1.0), 0.0)


def compared(evidence: Evidence, frame: pl.DataFrame, response: Response) -> Mask:
    """Return the runs to which a model of the response is fitted, as a mask of shape (runs,).

    These runs have the response, and all runs of their treatment that are not `left_out` have a
    comparable value.
    """
    known: Mask = ~np.isnan(comparable_values(evidence, frame, response))
    without = without_value(evidence, frame, response)
    if not without.any():
        return known
    treatments = _treatments(evidence, frame)
    excluded = {treatments[row] for row in np.flatnonzero(without)}
    return known & np.array([treatment not in excluded for treatment in treatments], dtype=np.bool_)


def why_not(
    evidence: Evidence, frame: pl.DataFrame, response: Response, levels: Mapping[str, Any]
) -> stats.NotComputable | None:
    """Return the reason why the runs at these levels are not comparable, else None."""
    without = without_value(evidence, frame, response)
    if not without.any():
        return None
    at_levels = rows_at(frame, levels)
    if not (without & at_levels).any():
        return None
    name = " ".join(evidence.title(*item) for item in levels.items()) or "the only treatment"
    return stats.NotComputable(
        f"{name}: {_reason(evidence, frame, response, without & at_levels, at_levels)}"
    )


def _reason(
    evidence: Evidence, frame: pl.DataFrame, response: Response, without: Mask, at_levels: Mask
) -> str:
    """Return the reason against the runs `without`, which are some of those in `at_levels`."""
    is_too_wide = without & too_wide(evidence, frame, response.column)
    if is_too_wide.any():
        unknown = frame.filter(pl.Series(is_too_wide))
        return _why_too_wide(evidence, unknown, response, int(at_levels.sum()))
    is_void = without & carried.void(frame, response.column)
    if is_void.any():
        return carried.saturated_in(int(is_void.sum()), int(at_levels.sum()))
    excluded = frame.filter(pl.Series(without))
    has_value = ~np.isnan(column(excluded, response.column))
    too_few = carried.why_not(excluded.filter(pl.Series(has_value)), response.column)
    if too_few and not np.isposinf(column(excluded, response.column)).any():
        return f"{response.title}: {too_few}"
    runs = f"{words.count(excluded.height)} of {words.plural(int(at_levels.sum()), 'run')}"
    if np.isnan(column(excluded, response.column)).all():
        return f"no {response.title} in {runs}, because nodes ended early"
    suffix = flow_suffix(response.column)
    missing, expected = (
        np.nansum(without_arrival(excluded, suffix)),
        np.nansum(due_after_warmup(excluded, suffix)),
    )
    has_calls = any(has_replies(pattern) for pattern in levels_of(excluded, "pattern"))
    undelivered = np.nansum(after_warmup(excluded, "undelivered", suffix)) > 0
    lost = "messages were lost or undelivered" if undelivered else "messages were lost"
    subject = "calls failed or were lost" if has_calls else lost
    if np.nansum(after_warmup(excluded, "unsent", suffix)) > 0:
        subject += " or never sent"
    share_text = (
        f"{words.percent(float(missing / expected))} of the {subject}" if expected > 0 else subject
    )
    if not np.isposinf(column(excluded, response.column)).any():
        return (
            f"no {response.title} to compare in {runs}, because {share_text} and the "
            "values of failed and answered calls are not comparable"
        )
    quantile = carried.share_of(response.column)
    if quantile:
        share_text += f" (finite up to {words.percent(1.0 - quantile)})"
    return f"no finite {response.title} in {runs}, because {share_text}"


def why_emulated(
    evidence: Evidence, frame: pl.DataFrame, response: Response, levels: Mapping[str, Any]
) -> stats.NotComputable | None:
    """Return the reason if all runs at these levels have an emulated device, else None.

    Responses that do not depend on time have values in these runs, so there is no reason.
    """
    at_levels = rows_at(frame, levels)
    is_unknown = np.isnan(column(frame, response.column))
    if not at_levels.any() or not (is_emulated(frame) & is_unknown)[at_levels].all():
        return None
    name = " ".join(evidence.title(*item) for item in levels.items())
    return stats.NotComputable(
        f"{name}: the device is emulated, and emulated time is not the device's time"
    )


def why_absent(
    evidence: Evidence, frame: pl.DataFrame, response: Response, levels: Mapping[str, Any]
) -> stats.NotComputable | None:
    """Return the reason if the runs at these levels have no value but other runs have, else None.

    A model drops a factor with one remaining level, so it cannot tell which level has the values.
    """
    at_levels = rows_at(frame, levels)
    is_unknown = np.isnan(column(frame, response.column))
    if not at_levels.any() or is_unknown.all() or not is_unknown[at_levels].all():
        return None
    name = " ".join(evidence.title(*item) for item in levels.items())
    of_flow = COLUMN.fullmatch(response.column)
    if of_flow and FLOWS in levels and not has_flow_of(response.column, levels):
        return stats.NotComputable(f"{name} sends no {of_flow['flow']}")
    return stats.NotComputable(f"no run of {name} has a value")


def excluded(
    evidence: Evidence, response: Response, with_saturated: bool = True
) -> list[stats.NotComputable]:
    """Return the reason for each treatment that the response's model excludes.

    `with_saturated` is false where a caller names the saturated treatments itself.
    """
    if not without_value(evidence, evidence.usable, response).any():
        return []
    reasons = (
        why_not(evidence, evidence.usable, response, _levels(evidence, group))
        for group in by_treatment(evidence, evidence.usable).values()
        if with_saturated or not carried.void(group, response.column).any()
    )
    return [reason for reason in reasons if reason]


def _levels(evidence: Evidence, group: pl.DataFrame) -> dict[str, Any]:
    return {name: levels_of(group, name)[0] for name in evidence.varied}

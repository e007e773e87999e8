"""Check the study's upper and lower limits on responses."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wattwire import stats
from wattwire.analysis import carried
from wattwire.analysis.answering.confidence import CONFIDENCE, interval_confidence
from wattwire.analysis.dataset import Evidence, all_levels
from wattwire.analysis.json_values import finite
from wattwire.analysis.responses import Response, measured, resolve
from wattwire.model.derived import FloatArray, column, share_of_due
from wattwire.model.flows import has_flow_of
from wattwire.model.limits import Limit
from wattwire.model.variants import FACTOR

RUNS_MIN = 3
NAMED_MAX = 3
"""Maximum number of broken limits that the summary names."""
HOLDS, BROKEN, UNCLEAR = "holds", "broken", "cannot tell"
Estimate = stats.Interval | stats.TooFew | stats.NotComputable | float


@dataclass(frozen=True)
class Check:
    """Result of one limit at one treatment.

    `response` is a column; `max` and `min` are in its unit. `value` is an interval, the common
    value of all runs, or the reason why there is none. `base` is the same treatment in the base
    variant; it is displayed but not judged. `unsent_share` is the share of the due messages that
    were never sent, which a share of lost messages or failed calls excludes.
    """

    response: str
    response_title: str
    unit: str
    max: float | None
    min: float | None
    treatment: str
    value: Estimate
    runs: int
    verdict: str = UNCLEAR
    base: Check | None = None
    unsent_share: float = 0.0

    @property
    def unsent(self) -> float:
        """The due messages that were never sent, in percent."""
        return 100 * self.unsent_share


@dataclass(frozen=True)
class Limits:
    """Results of the study's limits, empty if the study has none.

    The intervals are simultaneous over all limits at `confidence`.
    """

    checks: tuple[Check, ...] = ()
    confidence: float = CONFIDENCE

    @property
    def broken(self) -> tuple[Check, ...]:
        """The checks of broken limits."""
        return tuple(check for check in self.checks if check.verdict == BROKEN)

    @property
    def unclear(self) -> tuple[Check, ...]:
        """The checks without a clear verdict."""
        return tuple(check for check in self.checks if check.verdict == UNCLEAR)

    @property
    def named(self) -> tuple[Check, ...]:
        """The broken limits that the summary names; `unnamed` is the number of the others."""
        return self.broken[:NAMED_MAX]

    @property
    def unnamed(self) -> int:
        """The number of broken limits that the summary does not name."""
        return len(self.broken) - len(self.named)

    @property
    def verdict(self) -> str:
        """The verdict on all limits: a broken limit precedes an unclear one."""
        return BROKEN if self.broken else UNCLEAR if self.unclear else HOLDS

    @property
    def nothing_usable(self) -> bool:
        """Whether the study has limits, but none of their treatments has a valid run."""
        return bool(self.checks) and all(check.runs == 0 for check in self.checks)

    @property
    def has_unsent(self) -> bool:
        """Whether any due message was never sent."""
        return any(check.unsent_share for check in self.checks)

    @property
    def has_bases(self) -> bool:
        """Whether any check has a base variant."""
        return any(check.base for check in self.checks)


def limits(evidence: Evidence) -> Limits:
    """Check every limit of the study at each treatment that it applies to.

    What it computes: whether the typical run is within the limit.

    How: a t interval of the geometric mean over run summaries, or of the mean if a value is not
    positive. The intervals are Bonferroni-corrected to the simultaneous level CONFIDENCE. The
    verdict is "holds" if the whole interval is within the limit, and "broken" if no part of it is.

    A saturated run breaks an upper limit on latency or cost: its latency grows for as long as it
    lasts, so a longer run exceeds any limit.

    What it misses: a single run beyond the limit does not break the limit. It appears only in the
    table of runs.
    """
    cases = [case for limit in evidence.study.limits for case in _cases(evidence, limit)]
    level = stats.bonferroni(interval_confidence(evidence), max(1, len(cases)))
    return Limits(tuple(_checked(evidence, case, level) for case in cases))


def stored(result: Limits) -> dict[str, Any]:
    """Return the checks as JSON values. Missing and infinite numbers are null."""
    return {"limits": [_entry(check) for check in result.checks]}


def _entry(check: Check) -> dict[str, Any]:
    value = check.value
    interval = value if isinstance(value, stats.Interval) else None
    has_number = isinstance(value, (float, stats.Interval))
    return {
        "response": check.response,
        "max": check.max,
        "min": check.min,
        "treatment": check.treatment,
        "verdict": check.verdict,
        "runs": check.runs,
        "estimate": finite(interval.estimate if interval else value),
        "low": finite(interval.low if interval else None),
        "high": finite(interval.high if interval else None),
        "reason": "" if has_number else str(value),
    }


@dataclass(frozen=True)
class _Case:
    """A limit at a treatment, with the values of its runs, shape (runs,), or a reason."""

    limit: Limit
    title: str
    values: FloatArray | stats.TooFew | stats.NotComputable
    runs: int
    base: _Case | None = None
    is_saturated: bool = False
    unsent_share: float = 0.0


def _base_variant(evidence: Evidence, limit: Limit) -> str | None:
    """Return the base variant, to which limits do not apply.

    The result is None without variants, or if the limit names variants.
    """
    variants = [str(level) for level in evidence.factors.get(FACTOR, ())]
    if evidence.imported or len(variants) < 2 or FACTOR in limit.where:
        return None
    named = evidence.study.answers.baseline.get(FACTOR)
    return str(named) if named is not None else variants[0]


def _cases(evidence: Evidence, limit: Limit) -> Iterator[_Case]:
    """Yield the limit at each treatment that it applies to, in the order of the first block."""
    response = resolve(limit.response, evidence.described)
    planned = {entry["run"]: all_levels(entry) for entry in evidence.designed}
    values = column(evidence.usable, response.column)
    concerned = [
        levels
        for levels in planned.values()
        if limit.concerns(levels) and has_flow_of(limit.response, levels)
    ]
    rows_by_title: dict[str, list[int]] = {
        evidence.treatment_title(levels): [] for levels in concerned
    }
    levels_by_title = {evidence.treatment_title(levels): levels for levels in concerned}
    for row, run in enumerate(evidence.usable["run"].to_list()):
        levels = planned.get(run)
        title = "" if levels is None else evidence.treatment_title(levels)
        if title in rows_by_title and levels in concerned:
            rows_by_title[title].append(row)
    base = _base_variant(evidence, limit)
    unmeasured = _not_measured(evidence, response)
    cases = {}
    for title, title_rows in rows_by_title.items():
        frame = evidence.usable[title_rows]
        why_void = carried.why_void(frame, response.column)
        too_few = carried.why_not(frame, response.column)
        runs = why_void or unmeasured or too_few or values[title_rows]
        is_broken = limit.max is not None and why_void is not None
        unsent = share_of_due(frame, "unsent")
        cases[title] = _Case(limit, title, runs, len(title_rows), None, is_broken, unsent)
    is_skipped = any(limit.concerns(all_levels(entry)) for entry in evidence.skipped)
    if not cases and is_skipped:  # nothing shows that the limit holds
        yield _Case(limit, "", stats.NotComputable("no treatment of this limit was measured"), 0)
    bases = {
        _without_variant(levels_by_title[title]): replace(case, title=evidence.title(FACTOR, base))
        for title, case in cases.items()
        if base is not None and str(levels_by_title[title].get(FACTOR)) == base
    }
    for title, case in cases.items():
        if base is None or str(levels_by_title[title].get(FACTOR)) != base:
            yield replace(case, base=bases.get(_without_variant(levels_by_title[title])))


def _not_measured(evidence: Evidence, response: Response) -> stats.NotComputable | None:
    if evidence.usable.height == 0:
        return stats.NotComputable("no valid run")
    known = measured(evidence.usable, response)
    return None if known else stats.NotComputable("not measured in this campaign")


def _without_variant(levels: Mapping[str, Any]) -> str:
    return repr(sorted((k, v) for k, v in levels.items() if k != FACTOR))


def _checked(evidence: Evidence, case: _Case, level: float) -> Check:
    limit = case.limit
    response = resolve(limit.response, evidence.described)
    base = _checked(evidence, case.base, level) if case.base else None
    if isinstance(case.values, np.ndarray):
        value, runs = _estimate(case.values, level), int(case.values.size)
        verdict = _verdict(limit, value)
    else:
        value, runs = case.values, case.runs
        verdict = BROKEN if case.is_saturated else UNCLEAR
    return Check(
        limit.response, response.title, response.unit, limit.max, limit.min,
        case.title, value, runs, verdict, base, case.unsent_share,
    )  # fmt: skip


def _estimate(values: FloatArray, level: float) -> Estimate:
    if values.size < RUNS_MIN:
        return stats.TooFew(values.size, RUNS_MIN, "runs")
    missing = int(np.isnan(values).sum())
    if missing:
        return stats.NotComputable(f"missing in {missing} of {values.size} runs")
    if (values == values[0]).all():  # infinite values need no interval
        return float(values[0])
    unbounded = int(np.isinf(values).sum())
    if unbounded:
        return stats.NotComputable(f"unbounded in {unbounded} of {values.size} runs (loss)")
    if (values > 0).all():
        return stats.geometric_mean(values, level)
    return stats.mean_interval(values, level)


def _verdict(limit: Limit, estimate: Estimate) -> str:
    if isinstance(estimate, (stats.TooFew, stats.NotComputable)):
        return UNCLEAR
    low, high = (
        (estimate, estimate) if isinstance(estimate, float) else (estimate.low, estimate.high)
    )
    upper = float("inf") if limit.max is None else limit.max
    lower = float("-inf") if limit.min is None else limit.min
    if low > upper or high < lower:
        return BROKEN
    if not math.isfinite(low):  # an unbounded response is beyond a maximum, but shows no minimum
        return UNCLEAR
    kept = (high <= upper or limit.max is None) and (low >= lower or limit.min is None)
    return HOLDS if kept else UNCLEAR

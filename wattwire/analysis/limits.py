"""Limits: what the study says a response may be at most or at least, judged by its runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wattwire import stats
from wattwire.analysis import carried
from wattwire.analysis.dataset import Evidence, all_levels
from wattwire.analysis.responses import Response, measured, resolve
from wattwire.model import words
from wattwire.model.derived import FloatArray, column
from wattwire.model.limits import Limit, parse_limits
from wattwire.model.variants import FACTOR

CONFIDENCE = 0.95
RUNS_MIN = 3
NAMED_MAX = 3
HOLDS, BROKEN, UNCLEAR = "holds", "broken", "cannot tell"
Estimate = stats.Interval | stats.TooFew | stats.NotComputable | float


@dataclass(frozen=True)
class Checked:
    """One limit at one treatment. `found` is the interval, or the one value of all runs.

    `base` is the same treatment in the base variant, which is shown beside and not judged.
    """

    limit: Limit
    response: Response
    treatment: str
    found: Estimate
    runs: int
    verdict: str = UNCLEAR
    base: Checked | None = None

    @property
    def sure(self) -> bool:
        """Whether it could be told."""
        return self.verdict != UNCLEAR

    def what(self) -> str:
        """The limit in words: response, bounds, treatment."""
        unit = f" {self.response.unit}" if self.response.unit else ""
        bounds = []
        if self.limit.max is not None:
            bounds.append(f"at most {words.number(self.limit.max)}{unit}")
        if self.limit.min is not None:
            bounds.append(f"at least {words.number(self.limit.min)}{unit}")
        at = f", {self.treatment}" if self.treatment else ""
        return f"{self.response.title} {' and '.join(bounds)}{at}"

    def value(self) -> str:
        """What was found, with its interval and runs, and beside it what the base has."""
        own = self._own_value()
        return f"{own}; {self.base_value()}" if self.base else own

    def base_value(self) -> str:
        """The base's value with its name and whether it keeps the limit; "" without a base."""
        if self.base is None:
            return ""
        return f"{self.base.treatment} {self.base._own_value()}, {self.base.verdict} there"

    def _own_value(self) -> str:
        runs = words.plural(self.runs, "run")
        if isinstance(self.found, stats.Interval):
            low, high = words.number(self.found.low), words.number(self.found.high)
            level = words.confidence(self.found.level)
            return f"{words.number(self.found.estimate)} ({low} to {high} at {level}, {runs})"
        if isinstance(self.found, float):
            return f"{words.number(self.found)} in each of {runs}"
        return f"{self.found}"

    def sentence(self) -> str:
        """Limit, verdict and value in one line."""
        return f"{self.verdict}: {self.what()}: {self.value()}."


def check_limits(evidence: Evidence) -> list[Checked]:
    """Every limit of the study at every treatment that it is for.

    What: whether the typical run keeps the limit. How: a t interval over run summaries (of the
    geometric mean; of the mean where a run may have 0), all limits' together at CONFIDENCE by
    Bonferroni. Holds: the whole interval keeps it; broken: none of it does. What it misses: a
    single run beyond the limit is no breach, and says so in the table of runs.
    """
    # The study's own levels: a limit may name one of the part that was not asked for.
    levels = evidence.study.get("factors", {})
    limits = parse_limits(evidence.study.get("limit", []), levels, "study")
    cases = [case for limit in limits for case in _cases(evidence, limit)]
    level = stats.bonferroni(CONFIDENCE, max(1, len(cases)))
    return [_checked(evidence, case, level) for case in cases]


def any_broken(checked: Sequence[Checked]) -> bool:
    """Whether any limit is known to be broken."""
    return any(one.verdict == BROKEN for one in checked)


def any_unclear(checked: Sequence[Checked]) -> bool:
    """Whether any limit can be called neither kept nor broken."""
    return any(not one.sure for one in checked)


def in_short(checked: Sequence[Checked]) -> str:
    """How many limits are broken, in one sentence that names them."""
    broken = [one for one in checked if one.verdict == BROKEN]
    unclear = sum(not one.sure for one in checked)
    limits = words.plural(len(checked), "limit")
    if broken:
        named = "; ".join(f"{one.what()}: {one.value()}" for one in broken[:NAMED_MAX])
        more = len(broken) - NAMED_MAX
        named += f"; and {more} more" if more > 0 else ""
        return f"{len(broken)} of {limits} broken: {named}."
    if unclear:
        return f"None of {limits} is known to be broken; of {unclear} it cannot be told."
    return f"{limits} of the study hold." if len(checked) > 1 else "The study's limit holds."


@dataclass(frozen=True)
class _Case:
    """A limit at a treatment, with the values of its runs, shape (runs,), or why there are none."""

    limit: Limit
    title: str
    values: FloatArray | stats.TooFew | stats.NotComputable
    base: _Case | None = None


def _base_variant(evidence: Evidence, limit: Limit) -> str | None:
    """The variant that the others are compared with, which a limit does not judge.

    None without variants, and where the limit names variants by itself.
    """
    variants = [str(level) for level in evidence.factors.get(FACTOR, ())]
    if len(variants) < 2 or FACTOR in limit.where:
        return None
    named = evidence.study.get("answers", {}).get("baseline", {}).get(FACTOR)
    return str(named) if named is not None else variants[0]


def _cases(evidence: Evidence, limit: Limit) -> Iterator[_Case]:
    """The limit at each treatment that it judges, in the order of the plan's first block."""
    response = resolve(limit.response, evidence.described)
    planned = {entry["run"]: all_levels(entry) for entry in evidence.designed}
    values = column(evidence.usable, response.column)
    concerned = [levels for levels in planned.values() if limit.concerns(levels)]
    rows: dict[str, list[int]] = {evidence.treatment_title(one): [] for one in concerned}
    levels_of = {evidence.treatment_title(one): one for one in concerned}
    for row, run in enumerate(evidence.usable["run"].to_list()):
        levels = planned.get(run)
        if levels is not None and limit.concerns(levels):
            rows[evidence.treatment_title(levels)].append(row)
    base = _base_variant(evidence, limit)
    unmeasured = _not_measured(evidence, response)
    cases = {}
    for title, mine in rows.items():
        few = carried.why_not(evidence.usable[mine], response.column)
        cases[title] = _Case(limit, title, unmeasured or few or values[mine])
    bases = {
        _without_variant(levels_of[title]): replace(case, title=evidence.title(FACTOR, base))
        for title, case in cases.items()
        if base is not None and str(levels_of[title].get(FACTOR)) == base
    }
    for title, case in cases.items():
        if base is None or str(levels_of[title].get(FACTOR)) != base:
            yield replace(case, base=bases.get(_without_variant(levels_of[title])))


def _not_measured(evidence: Evidence, response: Response) -> stats.NotComputable | None:
    known = measured(evidence.usable, response)
    return None if known else stats.NotComputable("not measured in this campaign")


def _without_variant(levels: Mapping[str, Any]) -> str:
    return repr(sorted((k, v) for k, v in levels.items() if k != FACTOR))


def _checked(evidence: Evidence, case: _Case, level: float) -> Checked:
    response = resolve(case.limit.response, evidence.described)
    base = _checked(evidence, case.base, level) if case.base else None
    if not isinstance(case.values, np.ndarray):
        return Checked(case.limit, response, case.title, case.values, 0, base=base)
    found, runs = _estimate(case.values, level), int(case.values.size)
    verdict = _verdict(case.limit, found)
    return Checked(case.limit, response, case.title, found, runs, verdict, base)


def _estimate(values: FloatArray, level: float) -> Estimate:
    if values.size < RUNS_MIN:
        return stats.TooFew(values.size, RUNS_MIN, "runs")
    missing = int(np.isnan(values).sum())
    if missing:
        return stats.NotComputable(f"missing in {missing} of {values.size} runs")
    if (values == values[0]).all():  # infinite in all, too: no interval is needed to tell
        return float(values[0])
    unbounded = int(np.isinf(values).sum())
    if unbounded:
        return stats.NotComputable(f"unbounded in {unbounded} of {values.size} runs (loss)")
    if (values > 0).all():
        return stats.geometric_mean(values, level)
    return stats.mean_interval(values, level)


def _verdict(limit: Limit, found: Estimate) -> str:
    if isinstance(found, (stats.TooFew, stats.NotComputable)):
        return UNCLEAR
    low, high = (found, found) if isinstance(found, float) else (found.low, found.high)
    upper = float("inf") if limit.max is None else limit.max
    lower = float("-inf") if limit.min is None else limit.min
    if low > upper or high < lower:
        return BROKEN
    kept = (high <= upper or limit.max is None) and (low >= lower or limit.min is None)
    return HOLDS if kept else UNCLEAR

"""Whether a question's responses go along with what it sets beside them, in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from wattwire import stats
from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.analysis.metrics_by_role import BOTH, NOT_MEASURED, capital, is_measured, values_of
from wattwire.analysis.responses import Response, resolve
from wattwire.model import words
from wattwire.report.parts import Text
from wattwire.report.sections import syscalls
from wattwire.report.sections.proportion import reading
from wattwire.stats import association

Medians = dict[tuple[str, ...], float]
TREATMENTS_MIN = 4
COUNTED = ("syscalls_per_message", *syscalls.FIGURES)


def sentences(evidence: Evidence, question: Mapping[str, Any]) -> list[Text]:
    """One for each response and each quantity beside it; nothing where none is set beside.

    Medians of treatments are the points: runs of one treatment are no further ones.
    """
    beside = [resolve(name, evidence.described) for name in question.get("beside", [])]
    if not beside or evidence.usable.height == 0:
        return []
    medians = {one: _medians(evidence, one) for one in beside}
    absent = [one for one, found in medians.items() if not found]
    told, measured_any = [], False
    for name in dict.fromkeys(question.get("responses", [])):
        response = resolve(name, evidence.described)
        if not is_measured(evidence, response, BOTH):
            energy = "cannot be answered here: no meter measured energy"
            what = energy if response.energy else NOT_MEASURED
            told.append(f"{capital(response.title)}: {what}.")
            continue
        measured_any = True
        others = [one for one in beside if one != response and one not in absent]
        ours = _medians(evidence, response)
        told += [_sentence(response, ours, other, medians[other]) for other in others]
    if measured_any and absent:
        told.append(_unmeasured(absent))
    if measured_any and len(absent) < len(beside):
        told.append(
            "Points are medians of treatments; intervals are 95 %, each alone; exploratory. To go "
            "along is not to be in proportion, and neither says what causes what."
        )
    return [Text(one, "item") for one in told]


def _unmeasured(absent: Sequence[Response]) -> str:
    titles = words.listed([one.title for one in absent])
    counted = any(one.column in COUNTED for one in absent)
    how = "; plan.syscall_runs = 1 counts system calls, in runs of their own" if counted else ""
    return f"{capital(titles)}: not measured{how}."


def _sentence(response: Response, ours: Medians, other: Response, theirs: Medians) -> str:
    both = [key for key in ours if key in theirs and ours[key] > 0 and theirs[key] > 0]
    if len(both) < TREATMENTS_MIN:
        return (
            f"{capital(response.title)} beside {other.title}: "
            f"{stats.TooFew(len(both), TREATMENTS_MIN, 'treatments that hold both')}."
        )
    up = np.array([ours[key] for key in both])
    across = np.array([theirs[key] for key in both])
    found, power = association.spearman(across, up), association.exponent(across, up)
    if not isinstance(found, association.Association) or not isinstance(power, stats.Interval):
        why = found if not isinstance(found, association.Association) else power
        return f"{capital(response.title)} beside {other.title}: {why}."
    rank = found.interval
    if isinstance(rank, stats.Interval):
        sure = rank.excludes(0.0)
        reach = f"{words.number(rank.low)} to {words.number(rank.high)}"
    else:
        sure, reach = found.p < 0.05, words.p_equals(found.p)
    verb = "does not show to go along with"
    if sure:
        verb = "goes along with" if found.estimate > 0 else "falls with"
    return (
        f"{capital(response.title)} {verb} {other.title}: Spearman's ρ "
        f"{words.number(found.estimate)} ({reach}) over {words.plural(len(both), 'treatment')}; "
        f"as a power of it {words.number(power.estimate)} ({words.number(power.low)} to "
        f"{words.number(power.high)}): {reading(power)}."
    )


def _medians(evidence: Evidence, response: Response) -> Medians:
    """Median of each treatment, from runs of the design, else from those that count calls."""
    for frame in (evidence.usable, evidence.traced):
        found = _of(evidence, frame, response)
        if found:
            return found
    return {}


def _of(evidence: Evidence, frame: pl.DataFrame, response: Response) -> Medians:
    if frame.height == 0:
        return {}
    found = {}
    for key, part in by_treatment(evidence, frame).items():
        values = values_of(evidence, part, response, BOTH)
        values = values[np.isfinite(values)]
        if values.size:
            found[key] = float(np.median(values))
    return found

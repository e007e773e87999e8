"""What is common to all comparisons: treatments of a campaign, its responses, its noise."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wattwire import stats
from wattwire.analysis.carried import carried
from wattwire.analysis.comparing.decision import CONFIDENCE, MARGIN, margin_words
from wattwire.analysis.controls import noise_floor, pairs
from wattwire.analysis.dataset import Evidence, all_levels
from wattwire.analysis.responses import Response, resolve
from wattwire.model import metrics
from wattwire.model.derived import FloatArray, column
from wattwire.model.errors import UsageError
from wattwire.model.study import DEFAULT_LEVELS

DEFAULTS = ("cpu_us_per_message", "wire_bytes_per_message", "system_calls_per_message")
"""What is compared unless something else is asked for: costs that scatter little, and no tails."""


@dataclass(frozen=True)
class Wanted:
    """What was asked of a comparison. Without `margin` the study's own is taken."""

    responses: tuple[str, ...] = ()
    margin: float | None = None
    across_machines: bool = False


@dataclass(frozen=True)
class Runs:
    """One treatment's usable runs in the order of the summary: row numbers and blocks."""

    levels: Mapping[str, Any]
    rows: tuple[int, ...]
    blocks: tuple[int, ...]


def treatments_of(evidence: Evidence) -> dict[str, Runs]:
    """The usable runs of every planned treatment, by `treatment_key`; some may have none."""
    levels = {entry["run"]: all_levels(entry) for entry in evidence.designed}
    places: dict[str, list[tuple[int, int]]] = {treatment_key(one): [] for one in levels.values()}
    named = {treatment_key(one): one for one in levels.values()}
    usable = evidence.usable
    for at, run in enumerate(usable["run"].to_list()):
        if run in levels:
            places[treatment_key(levels[run])].append((at, int(usable["block"][at])))
    return {
        key: Runs(named[key], tuple(at for at, _ in found), tuple(block for _, block in found))
        for key, found in places.items()
    }


def treatment_key(levels: Mapping[str, Any], without: Sequence[str] = ()) -> str:
    """All levels as one text, defaults filled in: an older campaign does not state new ones."""
    full = {**DEFAULT_LEVELS, **levels}
    return json.dumps({k: v for k, v in full.items() if k not in without}, sort_keys=True)


def values_of(evidence: Evidence, runs: Runs, response: Response) -> FloatArray:
    """The response of the treatment's usable runs, shape (runs,).

    NaN where a run gave none, or had too few messages for a percentile.
    """
    return carried(evidence.usable, response.column)[list(runs.rows)]


def outcomes_of(evidence: Evidence, runs: Runs) -> list[str]:
    """How the treatment's usable runs ended."""
    outcomes = evidence.usable["outcome"].to_list()
    return [str(outcomes[at]) for at in runs.rows]


def first_reason(*sides: tuple[Evidence, Runs]) -> str:
    """Why the first run of these that did not complete ended so; "" where none is on record."""
    for evidence, runs in sides:
        names = evidence.usable["run"].to_list()
        for at in runs.rows:
            document = evidence.runs.get(names[at], {})
            if document.get("outcome", "completed") != "completed":
                ended = str(document["outcome"]).replace("_", " ")
                detail = document.get("outcome_detail")
                return f"{ended}, {detail}" if detail else ended
    return ""


def chosen_responses(
    sides: Sequence[Evidence], wanted: Wanted, defaults: Sequence[str] = DEFAULTS
) -> list[Response]:
    """The responses to compare: those asked for, else those of `defaults` that are measured.

    Raises UsageError for one that no side has, or where none of the default ones is there.
    """
    known = sorted(set().union(*(_numeric(side) for side in sides)))
    if wanted.responses:
        found = [resolve(name, sides[0].described) for name in wanted.responses]
        for response, name in zip(found, wanted.responses, strict=True):
            if known and response.column not in known:
                raise _not_there(name, response, known)
        return list(dict.fromkeys(found))
    responses = [resolve(name) for name in defaults]
    if any(side.usable.height == 0 for side in sides):
        return responses[:1]  # of which it will say that there are too few runs
    taken = [r for r in responses if all(_positive(side, r) for side in sides)]
    if not taken:
        raise UsageError(
            f"nothing is compared by default here: not every run has {' or '.join(defaults)}. Name "
            f"what to compare with --response; there is: {', '.join(known) or 'nothing'}"
        )
    return taken


def _not_there(name: str, response: Response, known: Sequence[str]) -> UsageError:
    """The error for a response that no run has: unknown, or known and not measured."""
    listed = ", ".join(known)
    if metrics.find(name) is not None:
        return UsageError(f"--response: no run has {response.column} here; there is: {listed}")
    hint = metrics.suggestion(name, known) or f" There is: {listed}"
    return UsageError(f'--response: unknown response "{name}".{hint}')


def _numeric(evidence: Evidence) -> list[str]:
    frame = evidence.usable
    ruled_out = ("block", "position", "attempt", "used")
    return [
        name
        for name, kind in frame.schema.items()
        if kind.is_numeric() and "." not in name and name not in ruled_out
    ]


def _positive(evidence: Evidence, response: Response) -> bool:
    """Whether a ratio can be taken of what is known, and anything is known at all."""
    values = column(evidence.usable, response.column)
    known = values[~np.isnan(values)]
    return bool(known.size) and bool((known > 0).all())


def noise_of(evidence: Evidence, response: Response) -> float | None:
    """The noise floor as a |log ratio|; None where the campaign has no pair of identical labels."""
    return noise_floor(np.log(pairs(evidence, response, "b", "a")))


def noise_words(name: str, evidence: Evidence, response: Response) -> str:
    """By how much two identical labels may differ in one campaign, in words."""
    found = noise_of(evidence, response)
    if found is None:
        return f"{name} has no pair of identical labels for it"
    count = pairs(evidence, response, "b", "a").size
    return f"up to {100 * math.expm1(found):.2g} % in {name} ({count} pairs)"


def constant(values: FloatArray) -> bool:
    """Whether three runs or more all gave the very same positive number."""
    return values.size >= 3 and bool(np.ptp(values) == 0) and bool(values[0] > 0)


def single_level(family: int, looks: int) -> float:
    """The confidence of each interval, so that `family` of them hold together over all looks."""
    return stats.bonferroni(stats.bonferroni(CONFIDENCE, looks), max(1, family))


def margin_of(wanted: Wanted, sides: Sequence[Evidence]) -> tuple[float, str]:
    """The margin and where it is from: given, frozen alike in every study, or the default."""
    if wanted.margin is not None:
        return wanted.margin, f"The margin of {margin_words(wanted.margin)} was given."
    frozen = {side.study.get("answers", {}).get("margin") for side in sides}
    own = frozen.pop()
    if own is not None and not frozen:
        return float(own), f"The margin of {margin_words(float(own))} is the study's own."
    return MARGIN, f"The margin of {margin_words(MARGIN)} is the default; --margin gives another."

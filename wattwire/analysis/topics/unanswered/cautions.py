"""Find failed runs, treatments without a comparable value, and what qualifies the ratios."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from wattwire.analysis import carried, not_compared
from wattwire.analysis.dataset import Evidence, all_levels, by_treatment
from wattwire.analysis.emulated import DEVICE
from wattwire.analysis.responses import Response
from wattwire.analysis.topics.unanswered.failed_runs import (
    Failed,
    failed_treatments,
    too_few_in_all,
)
from wattwire.model.deployment import without_send_time
from wattwire.model.derived import column
from wattwire.model.flows import flow_parts
from wattwire.model.treatment import Treatment

NAMED_MAX = 3
"""Maximum number of treatments with the same outcomes that have a sentence each."""


@dataclass(frozen=True)
class OutcomeRuns:
    """The number of runs with an outcome."""

    outcome: str
    runs: int


@dataclass(frozen=True)
class Uncompared:
    """Treatments that failed, or a reason why a response or a treatment is not compared.

    Failed treatments have `outcomes`, of `runs` runs; a single one has a title, which is "" for the
    only treatment. `reason` is about the response if it has a title, about send times if
    `is_send_time`, and else about a treatment that it names.
    """

    title: str = ""
    treatments: int = 0
    outcomes: tuple[OutcomeRuns, ...] = ()
    runs: int = 0
    response_title: str = ""
    is_send_time: bool = False
    reason: str = ""


@dataclass(frozen=True)
class SaturatedRuns:
    """A treatment of which `saturated` of `runs` runs were saturated. "" is the only treatment."""

    title: str
    saturated: int
    runs: int


@dataclass(frozen=True)
class LeftOut:
    """The saturated runs that are left out alone, of all valid `runs`."""

    treatments: tuple[SaturatedRuns, ...]
    runs: int

    @property
    def saturated(self) -> int:
        """The number of saturated runs."""
        return sum(treatment.saturated for treatment in self.treatments)


@dataclass(frozen=True)
class Lossy:
    """The treatments whose costs refer to sent messages, and the largest lost share of them."""

    treatments: tuple[str, ...]
    share: float


@dataclass(frozen=True)
class Emulated:
    """The valid runs with an emulated device, and the devices."""

    runs: int
    devices: tuple[str, ...]


def uncompared(evidence: Evidence, responses: Sequence[Response]) -> Iterator[Uncompared]:
    """Yield the failed treatments, then what is not compared, with the reasons."""
    yield from _failed(evidence)
    yield from _without_send_time(evidence)
    for response in responses:
        too_few = too_few_in_all(evidence, response)
        if too_few:
            yield Uncompared(response_title=response.title, reason=str(too_few))
            continue
        for reason in not_compared.excluded(evidence, response, with_saturated=False):
            yield Uncompared(reason=str(reason))


def _failed(evidence: Evidence) -> Iterator[Uncompared]:
    """Yield each treatment with failed runs, or many with the same outcomes together."""
    by_outcomes: dict[tuple[str, ...], list[Failed]] = {}
    for failed in failed_treatments(evidence):
        if not failed.saturated_minority:
            names = tuple(outcome for outcome, _ in failed.outcomes)
            by_outcomes.setdefault(names, []).append(failed)
    for members in by_outcomes.values():
        if len(members) > NAMED_MAX:
            counted: Counter[str] = Counter()
            for failed in members:
                counted.update(dict(failed.outcomes))
            runs = sum(failed.runs for failed in members)
            yield Uncompared("", len(members), _outcomes(counted.items()), runs)
        else:
            for failed in members:
                outcomes = _outcomes(failed.outcomes)
                yield Uncompared(_title(evidence, failed), 1, outcomes, failed.runs)


def _outcomes(counted: Iterable[tuple[str, int]]) -> tuple[OutcomeRuns, ...]:
    return tuple(OutcomeRuns(outcome.replace("_", " "), runs) for outcome, runs in counted)


def _title(evidence: Evidence, failed: Failed) -> str:
    return " ".join(evidence.title(*item) for item in failed.levels.items())


def _without_send_time(evidence: Evidence) -> Iterator[Uncompared]:
    """Yield the reason for each kind of message that is too short for its send time."""
    if evidence.imported:  # Its columns may have the names of levels, but no node sent a message.
        return
    treatments = (
        Treatment.of({}, all_levels(evidence.runs[group["run"][0]]))
        for group in by_treatment(evidence, evidence.usable).values()
    )
    parts = (part.treatment for treatment in treatments for part in flow_parts(treatment))
    for reason in dict.fromkeys(filter(None, map(without_send_time, parts))):
        yield Uncompared(is_send_time=True, reason=str(reason))


def left_out(evidence: Evidence) -> LeftOut | None:
    """Return the saturated runs that are left out alone, with their treatments."""
    treatments = tuple(
        SaturatedRuns(_title(evidence, failed), failed.saturated_minority, failed.runs)
        for failed in failed_treatments(evidence)
        if failed.saturated_minority
    )
    return LeftOut(treatments, evidence.usable.height) if treatments else None


def lossy(evidence: Evidence, responses: Sequence[Response]) -> Lossy | None:
    """Return the treatments that lost messages without reply, if a cost per message is compared.

    The cost of a call whose reply was lost is not compared at all (`not_compared.FAILED_MAX`).
    """
    if not any(carried.COST.fullmatch(response.column) for response in responses):
        return None
    shares = {}
    for key, frame in by_treatment(evidence, evidence.usable).items():
        share = float(np.nanmax(np.nan_to_num(column(frame, "loss_share")), initial=0.0))
        if share > not_compared.FAILED_MAX:
            levels = dict(zip(evidence.varied, key, strict=True))
            shares[evidence.treatment_title(levels)] = share
    return Lossy(tuple(shares), max(shares.values())) if shares else None


def emulated(evidence: Evidence) -> Emulated | None:
    """Return the runs with emulated devices; None without any."""
    runs = evidence.emulated.height
    devices = dict.fromkeys(evidence.emulated[DEVICE].to_list()) if runs else {}
    return Emulated(runs, tuple(devices)) if runs else None

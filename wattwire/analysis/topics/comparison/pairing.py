"""Define what is compared: the runs of a treatment on two sides, and how a pairing pairs them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from wattwire.analysis.carried import carried
from wattwire.analysis.dataset import CampaignReader, Evidence, all_levels
from wattwire.analysis.responses import Response
from wattwire.analysis.topics.comparison.decision import Estimate
from wattwire.analysis.topics.comparison.notes import (
    AcrossMachines,
    FiguresOfOne,
    Named,
    NoiseNote,
    Note,
)
from wattwire.model.cores import CORES, FREE
from wattwire.model.derived import FloatArray, column
from wattwire.model.metrics import is_printed
from wattwire.model.study import DEFAULT_LEVELS

Sides = tuple[FloatArray, FloatArray]
"""The values of base and head."""


@dataclass(frozen=True)
class Runs:
    """The valid runs of one treatment: their row numbers and blocks in the summary's order."""

    evidence: Evidence
    levels: Mapping[str, Any]
    rows: tuple[int, ...]
    blocks: tuple[int, ...]

    def values(self, response: Response) -> FloatArray:
        """Return the response, shape (runs,).

        The value is NaN if a run has no value, or too few messages for a percentile.
        """
        return carried(self.evidence.usable, response.column)[list(self.rows)]

    @property
    def outcomes(self) -> list[str]:
        """The outcome of each run."""
        outcomes = self.evidence.usable["outcome"].to_list()
        return [str(outcomes[row]) for row in self.rows]

    @property
    def cores(self) -> Any:
        """The level of the factor `cores`."""
        return self.levels.get(CORES, FREE)


@dataclass(frozen=True)
class Case:
    """A treatment whose runs on the side of the base are compared with those of a head.

    Cases with the same `base_treatment` have the same runs of the base.
    """

    treatment: str
    base_treatment: str
    head_name: str
    base: Runs
    head: Runs

    @property
    def any_failed(self) -> bool:
        """Whether a run of either side did not complete."""
        return any(outcome != "completed" for outcome in self.base.outcomes + self.head.outcomes)


class Pairing(Protocol):
    """Pairs or groups the runs of a base and its heads. All else is the same for all comparisons.

    `campaigns` are those of the cases, `base` and `heads` the names of the sides.
    `default_responses` are compared unless others are requested. Each interval is tested `tests`
    times. `lists_treatments` is whether results are listed by treatment, or else by response.
    `across` is None for campaigns of the same machine.
    """

    method: ClassVar[str]
    lists_treatments: ClassVar[bool]

    @property
    def campaigns(self) -> Sequence[Named]: ...
    @property
    def base(self) -> str: ...
    @property
    def heads(self) -> tuple[str, ...]: ...
    @property
    def cases(self) -> Sequence[Case]: ...
    @property
    def added_cases(self) -> Sequence[Case]:
        """The cases with only their runs of a second look; none without such runs."""

    @property
    def default_responses(self) -> Sequence[str]: ...
    @property
    def tests(self) -> int: ...
    @property
    def across(self) -> AcrossMachines | None: ...

    def values(self, case: Case, response: Response) -> Sides:
        """Return the values without NaN that enter an interval."""

    def counts(self, case: Case, values: Sides) -> tuple[int, int]:
        """Return the numbers of runs of base and head that an item states."""

    def ratios(self, values: Sequence[Sides], level: float) -> list[Estimate]:
        """Return the ratio of head over base of each case."""

    def difference(self, values: Sides, level: float) -> Estimate:
        """Return the mean of head − base."""

    def by_ranks(self, values: Sides, level: float) -> Estimate | None:
        """Return the ratio by ranks."""

    def notes(self, noises: Sequence[NoiseNote]) -> Iterator[Note]:
        """Yield the limits of the comparison."""


def by_campaign(cases: Iterable[Case]) -> list[list[Runs]]:
    """Return the runs of all cases, one list per campaign; base and head may be of the same."""
    runs_by_campaign: dict[int, list[Runs]] = {}
    for case in cases:
        for runs in (case.base, case.head):
            runs_by_campaign.setdefault(id(runs.evidence), []).append(runs)
    return list(runs_by_campaign.values())


def figures_of_one(base: str, cases: Sequence[Case]) -> Iterator[Note]:
    """Yield the figures of commands, such as those of a path, of which one side has no value."""
    for head in dict.fromkeys(case.head_name for case in cases):
        of_head = [case for case in cases if case.head_name == head]
        names = (base, head)
        sides = [
            list(dict.fromkeys(name for runs in of_side for name in _printed_names(runs)))
            for of_side in ([c.base for c in of_head], [c.head for c in of_head])
        ]
        for index, other in ((0, 1), (1, 0)):
            figures = tuple(name for name in sides[index] if name not in sides[other])
            if figures:
                yield FiguresOfOne(names[index], names[other], figures)


def _printed_names(runs: Runs) -> Iterator[str]:
    """Yield the columns of figures of a command of which a run has a value."""
    frame = runs.evidence.usable[list(runs.rows)]
    for name in frame.columns:
        if is_printed(name.partition(".")[0]) and not np.isnan(column(frame, name)).all():
            yield name


def constant(values: FloatArray) -> bool:
    """Return whether there are at least three values, all equal and positive."""
    return values.size >= 3 and bool(np.ptp(values) == 0) and bool(values[0] > 0)


def identity_of(reader: CampaignReader) -> dict[str, Any]:
    """Return the identity of the campaign's cells and agent; {} for an imported campaign."""
    journal = getattr(reader, "journal", None)
    return (journal.get("identity") or {}) if journal is not None else {}


def treatments_of(evidence: Evidence) -> dict[str, Runs]:
    """Return the valid runs of each planned treatment, by `treatment_key`; possibly none."""
    levels_by_run = {entry["run"]: all_levels(entry) for entry in evidence.designed}
    rows_by_key: dict[str, list[tuple[int, int]]] = {
        treatment_key(levels): [] for levels in levels_by_run.values()
    }
    levels_by_key = {treatment_key(levels): levels for levels in levels_by_run.values()}
    usable = evidence.usable
    for row, run in enumerate(usable["run"].to_list()):
        if run in levels_by_run:
            rows_by_key[treatment_key(levels_by_run[run])].append((row, int(usable["block"][row])))
    return {
        key: Runs(
            evidence,
            levels_by_key[key],
            tuple(row for row, _ in rows),
            tuple(block for _, block in rows),
        )
        for key, rows in rows_by_key.items()
    }


def treatment_key(levels: Mapping[str, Any]) -> str:
    """Return all levels as a JSON text that identifies the treatment.

    The text includes default levels, because imported campaigns do not store them, and a campaign
    does not store `cores` if its study omits the factor.
    """
    return json.dumps({**DEFAULT_LEVELS, CORES: FREE, **levels}, sort_keys=True)

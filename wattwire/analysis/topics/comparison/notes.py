"""Define notes on the limits of a comparison, as typed values, and when they apply.

If two variants of one campaign are compared, `campaign` is None. `kind` distinguishes the notes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wattwire.analysis.answering.confidence import interval_confidence
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.responses import Response
from wattwire.analysis.topics.controls.numbers import differences, noise_floor, pairs
from wattwire.analysis.topics.validity.numbers import Notice, validity

Named = tuple[str | None, Evidence]
"""A campaign with its name; None for a campaign whose variants are compared."""
NAMED_MAX = 4
AGENT_BUILD = "agent build"
REQUEST, STUDY, DEFAULT = "request", "study", "default"
"""Sources of a comparison's margin."""


@dataclass(frozen=True)
class MarginNote:
    """The margin (a share) and its source."""

    kind: ClassVar[str] = "margin"
    margin: float
    source: str


@dataclass(frozen=True)
class SharesNote:
    """The margin on shares of losses and failures; None if no shares were compared.

    `observed` are the columns of the shares that every completed run of both sides has.
    """

    kind: ClassVar[str] = "shares"
    margin: float | None
    observed: tuple[str, ...] = ()

    @property
    def points(self) -> float | None:
        """The margin in percentage points."""
        return None if self.margin is None else 100 * self.margin

    @property
    def is_one_point(self) -> bool:
        """Whether the margin is printed as 1 percentage point."""
        return self.points is not None and f"{self.points:.4g}" == "1"


@dataclass(frozen=True)
class SideNoise:
    """A campaign's noise floor as a |log ratio|, and the number of A/A pairs.

    The floor is None without pairs.
    """

    campaign: str | None
    floor: float | None
    pairs: int

    @property
    def share(self) -> float | None:
        """The floor as an increase; 0.05 is 5 %."""
        return None if self.floor is None else math.expm1(self.floor)


@dataclass(frozen=True)
class NoiseNote:
    """The noise floors of a response in each compared campaign."""

    kind: ClassVar[str] = "noise"
    response: Response
    sides: tuple[SideNoise, ...]
    imported: bool = False

    @property
    def floor(self) -> float | None:
        """The highest floor of the campaigns; None without A/A runs."""
        return max((side.floor for side in self.sides if side.floor is not None), default=None)

    @property
    def share(self) -> float | None:
        """The highest floor as an increase; None without a floor."""
        return max((side.share for side in self.sides if side.share is not None), default=None)


@dataclass(frozen=True)
class EditedNote:
    """Documents of a campaign that were edited after the campaign began."""

    kind: ClassVar[str] = "edited"
    campaign: str | None
    documents: tuple[str, ...]


@dataclass(frozen=True)
class ValidityNote:
    """A notice on a campaign's validity limits."""

    kind: ClassVar[str] = "validity"
    campaign: str | None
    notice: Notice


@dataclass(frozen=True)
class NotMeasured:
    """The number of planned runs without a measurement."""

    kind: ClassVar[str] = "not measured"
    campaign: str | None
    runs: int


@dataclass(frozen=True)
class ExcludedRuns:
    """The number of excluded runs of each campaign."""

    kind: ClassVar[str] = "excluded"
    counts: tuple[tuple[str | None, int], ...]


@dataclass(frozen=True)
class SideBySide:
    """The variants were measured in the same `blocks` blocks."""

    kind: ClassVar[str] = "side by side"
    blocks: int


@dataclass(frozen=True)
class TwoLooks:
    """The study plans additional blocks for comparisons that are worse after `first_blocks`."""

    kind: ClassVar[str] = "looks"
    first_blocks: int
    added_blocks: int


@dataclass(frozen=True)
class UnpairedRuns:
    """The number of runs without a counterpart in their block."""

    kind: ClassVar[str] = "unpaired"
    runs: int


@dataclass(frozen=True)
class UnchangedHead:
    """A head with the same builds and levels as the base."""

    kind: ClassVar[str] = "unchanged"
    head: str
    base: str


@dataclass(frozen=True)
class Occasions:
    """Whether two campaigns were measured during the same boot; None if that is unknown.

    `have_variants` is whether a study could measure both as its variants; commands and imported
    data have none.
    """

    kind: ClassVar[str] = "occasions"
    same_boot: bool | None
    have_variants: bool = True


@dataclass(frozen=True)
class Changes:
    """The builds that differ between two campaigns; None if the builds are not recorded."""

    kind: ClassVar[str] = "changes"
    changed: tuple[str, ...] | None

    @property
    def has_agent(self) -> bool:
        """Whether the agent changed, which performs the measurement."""
        return self.changed is not None and AGENT_BUILD in self.changed


@dataclass(frozen=True)
class LayersOfOne:
    """Only the command of one of two campaigns ran with the library that records layers."""

    kind: ClassVar[str] = "layers"
    recorded: str
    plain: str


@dataclass(frozen=True)
class Unmatched:
    """Treatments of `campaign` that are not in `counterpart`."""

    kind: ClassVar[str] = "unmatched"
    campaign: str
    counterpart: str
    treatments: tuple[str, ...]

    @property
    def named(self) -> tuple[str, ...]:
        """The treatments that the note names; `unnamed` is the number of the others."""
        return self.treatments[:NAMED_MAX]

    @property
    def unnamed(self) -> int:
        """The number of treatments that the note does not name."""
        return len(self.treatments) - len(self.named)


@dataclass(frozen=True)
class FiguresOfOne:
    """Figures of commands, such as those of paths, which only the runs of `side` have."""

    kind: ClassVar[str] = "figures of one"
    side: str
    counterpart: str
    figures: tuple[str, ...]


Note = (
    MarginNote
    | SharesNote
    | NoiseNote
    | EditedNote
    | ValidityNote
    | NotMeasured
    | ExcludedRuns
    | SideBySide
    | TwoLooks
    | UnpairedRuns
    | UnchangedHead
    | Occasions
    | Changes
    | LayersOfOne
    | Unmatched
    | FiguresOfOne
)


@dataclass(frozen=True)
class FactDifference:
    """A fact that differs between two machines, with both values; None if it is not recorded."""

    key: str
    base: object
    head: object


@dataclass(frozen=True)
class AcrossMachines:
    """The campaigns were measured on different machines.

    `unknown` names campaigns without a record of their machine; otherwise, `differences` lists the
    facts that differ.
    """

    unknown: tuple[str, ...] = ()
    differences: tuple[FactDifference, ...] = ()


# -- when the notes apply --------------------------------------------------------------------------


def noise_note(campaigns: Sequence[Named], response: Response) -> NoiseNote:
    """Return the noise floors of a response."""
    is_imported = all(evidence.imported for _, evidence in campaigns)
    sides = tuple(_side_noise(name, evidence, response) for name, evidence in campaigns)
    return NoiseNote(response, sides, is_imported)


def edited_notes(campaigns: Sequence[Named]) -> Iterator[Note]:
    """Yield the documents that were edited, per campaign."""
    for name, evidence in campaigns:
        if evidence.edited:
            yield EditedNote(name, evidence.edited)


def validity_notes(campaigns: Sequence[Named]) -> Iterator[Note]:
    """Yield the notices on validity limits, per campaign."""
    for name, evidence in campaigns:
        for notice in validity(evidence).notices:
            yield ValidityNote(name, notice)


def run_notes(campaigns: Sequence[Named]) -> Iterator[Note]:
    """Yield the numbers of planned runs without a measurement and of excluded runs."""
    for name, evidence in campaigns:
        if untried := evidence.untried(evidence.designed):
            yield NotMeasured(name, untried)
    if any(evidence.excluded.height for _, evidence in campaigns):
        yield ExcludedRuns(tuple((name, evidence.excluded.height) for name, evidence in campaigns))


# -- noise floors ----------------------------------------------------------------------------------


def noise_of(evidence: Evidence, response: Response) -> float | None:
    """Return the noise floor: a |log ratio|, or a difference of shares; None without A/A runs."""
    if response.share:
        return noise_floor(differences(evidence, response), interval_confidence(evidence))
    return noise_floor(np.log(pairs(evidence, response, "b", "a")), interval_confidence(evidence))


def _side_noise(campaign: str | None, evidence: Evidence, response: Response) -> SideNoise:
    """Return the noise floor of one campaign and the number of its A/A pairs."""
    count = pairs(evidence, response, "b", "a").size
    return SideNoise(campaign, noise_of(evidence, response), count)

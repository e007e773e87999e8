"""Define notes on the limits of a comparison, as typed values.

`report/words/comparing_notes.py` defines their sentences. If two variants of one campaign are
compared, `campaign` is None.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from wattwire.analysis.responses import Response
from wattwire.analysis.topics.validity.numbers import Notice


class MarginSource(Enum):
    """Source of a comparison's margin."""

    REQUEST = auto()
    STUDY = auto()
    DEFAULT = auto()


@dataclass(frozen=True)
class MarginNote:
    """The margin (a share) and its source."""

    margin: float
    source: MarginSource


@dataclass(frozen=True)
class SharesNote:
    """The margin on shares of losses and failures; None if no shares were compared.

    `observed` are the columns of the shares that every completed run of both sides has.
    """

    margin: float | None
    observed: tuple[str, ...] = ()


@dataclass(frozen=True)
class SideNoise:
    """A campaign's noise floor as a |log ratio|, and the number of A/A pairs.

    The floor is None without pairs.
    """

    campaign: str | None
    floor: float | None
    pairs: int


@dataclass(frozen=True)
class NoiseNote:
    """The noise floors of a response in each compared campaign."""

    response: Response
    sides: tuple[SideNoise, ...]
    imported: bool = False


@dataclass(frozen=True)
class EditedNote:
    """Documents of a campaign that were edited after the campaign began."""

    campaign: str | None
    documents: tuple[str, ...]


@dataclass(frozen=True)
class ValidityNote:
    """A notice on a campaign's validity limits."""

    campaign: str | None
    notice: Notice


@dataclass(frozen=True)
class NotMeasured:
    """The number of planned runs without a measurement."""

    campaign: str | None
    runs: int


@dataclass(frozen=True)
class ExcludedRuns:
    """The number of excluded runs of each campaign."""

    counts: tuple[tuple[str | None, int], ...]


@dataclass(frozen=True)
class SideBySide:
    """The variants were measured in the same `blocks` blocks."""

    blocks: int


@dataclass(frozen=True)
class TwoLooks:
    """The study plans additional blocks for comparisons that are worse after `first_blocks`."""

    first_blocks: int
    added_blocks: int


@dataclass(frozen=True)
class UnpairedRuns:
    """The number of runs without a counterpart in their block."""

    runs: int


@dataclass(frozen=True)
class UnchangedHead:
    """A head with the same builds and levels as the base."""

    head: str
    base: str


@dataclass(frozen=True)
class Occasions:
    """Whether two campaigns were measured during the same boot; None if that is unknown.

    `have_variants` is whether a study could measure both as its variants; commands and imported
    data have none.
    """

    same_boot: bool | None
    have_variants: bool = True


@dataclass(frozen=True)
class Changes:
    """The builds that differ between two campaigns; None if the builds are not recorded."""

    changed: tuple[str, ...] | None


@dataclass(frozen=True)
class Unmatched:
    """Treatments of `campaign` that are not in `counterpart`."""

    campaign: str
    counterpart: str
    treatments: tuple[str, ...]


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
    | Unmatched
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

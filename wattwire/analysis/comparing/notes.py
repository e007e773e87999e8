"""Define notes on the interpretation of a comparison's numbers, as typed values.

`report/words/comparing_notes.py` has their sentences. `campaign` is None in the comparison of one
campaign's variants.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from wattwire.analysis.responses import Response
from wattwire.analysis.validity import Notice


class MarginSource(Enum):
    """Source of a comparison's margin."""

    REQUEST = auto()
    STUDY = auto()
    DEFAULT = auto()


@dataclass(frozen=True)
class MarginNote:
    """The margin as a share, and its source."""

    margin: float
    source: MarginSource


@dataclass(frozen=True)
class SharesNote:
    """The margin on shares of losses and failures; None if there were none to compare."""

    margin: float | None


@dataclass(frozen=True)
class SideNoise:
    """A campaign's noise floor as a |log ratio|, None without A/A pairs, and their number."""

    campaign: str | None
    floor: float | None
    pairs: int


@dataclass(frozen=True)
class NoiseNote:
    """The noise floors of a response: of both campaigns, or of the campaign of the variants."""

    response: Response
    sides: tuple[SideNoise, ...]


@dataclass(frozen=True)
class EditedNote:
    """Documents of a campaign that were edited after it began."""

    campaign: str | None
    documents: tuple[str, ...]


@dataclass(frozen=True)
class ValidityNote:
    """A notice on a campaign's validity limits."""

    campaign: str | None
    notice: Notice


@dataclass(frozen=True)
class NotMeasured:
    """The number of planned runs that were not measured."""

    campaign: str | None
    runs: int


@dataclass(frozen=True)
class ExcludedRuns:
    """The number of excluded runs of each campaign."""

    counts: tuple[tuple[str | None, int], ...]


@dataclass(frozen=True)
class SideBySide:
    """Variants were measured in `blocks` blocks of one occasion."""

    blocks: int


@dataclass(frozen=True)
class TwoLooks:
    """The study plans a second look, at comparisons that were worse after `first_blocks`."""

    first_blocks: int
    added_blocks: int


@dataclass(frozen=True)
class UnpairedRuns:
    """The number of runs without a neighbour in their block."""

    runs: int


@dataclass(frozen=True)
class UnchangedHead:
    """A head with the same builds and levels as the base."""

    head: str
    base: str


@dataclass(frozen=True)
class Occasions:
    """Two campaigns are two occasions, of one boot or of two; None if that is unknown."""

    same_boot: bool | None


@dataclass(frozen=True)
class Changes:
    """Builds that differ between two campaigns; None if they are not recorded."""

    changed: tuple[str, ...] | None


@dataclass(frozen=True)
class Unmatched:
    """Treatments of `campaign` that `counterpart` does not have."""

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
    """A fact that differs between two machines, with both values; None if not recorded."""

    key: str
    base: object
    head: object


@dataclass(frozen=True)
class AcrossMachines:
    """Two campaigns of different machines: the campaigns without a record, or the differences."""

    unknown: tuple[str, ...] = ()
    differences: tuple[FactDifference, ...] = ()

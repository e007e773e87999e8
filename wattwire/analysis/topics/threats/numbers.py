"""Derive threats to validity from the meters, the verdicts and the answers of a campaign.

Other topics state threats of their own, such as `environment` and `placements`; their parts join
the section.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wattwire.analysis.answering.answer_types import Answers
from wattwire.analysis.dataset import Evidence, held_levels
from wattwire.analysis.topics.threats.conclusion import Conclusion, conclusion
from wattwire.analysis.topics.threats.construct import Construct, construct
from wattwire.analysis.topics.threats.internal import Internal, internal
from wattwire.model import words


@dataclass(frozen=True)
class HeldFactor:
    """A factor that the study holds at one level."""

    name: str
    title: str
    level: str


@dataclass(frozen=True)
class Threats:
    """The threats to validity by their kind; those to external validity are the `held` factors.

    Imported campaigns have no threats to construct and internal validity but that these are
    unknown.
    """

    is_imported: bool = False
    construct: Construct = Construct()
    internal: Internal = Internal()
    conclusion: Conclusion = Conclusion()
    held: tuple[HeldFactor, ...] = ()


def threats(evidence: Evidence, answers: Answers) -> Threats:
    """Return the threats to the validity of the results."""
    return Threats(
        evidence.imported,
        Construct() if evidence.imported else construct(evidence),
        Internal() if evidence.imported else internal(evidence),
        conclusion(evidence, answers),
        tuple(_held(evidence)),
    )


def _held(evidence: Evidence) -> Iterator[HeldFactor]:
    levels = {name: levels[0] for name, levels in evidence.factors.items() if len(levels) == 1}
    levels |= {name: level for name, level in held_levels(evidence).items() if name != "literal"}
    for name, level in levels.items():
        yield HeldFactor(name, words.factor_title(name), evidence.title(name, level))

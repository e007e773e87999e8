"""Find treatments and questions without an answer, and what is not compared.

The page's first lines name the treatments that are missing from a comparison, in addition to the
audit trail.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wattwire.analysis.answering.answer_types import Answers
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.responses import question_responses
from wattwire.analysis.topics.answers.nothing import ended
from wattwire.analysis.topics.unanswered.cautions import (
    Emulated,
    LeftOut,
    Lossy,
    Uncompared,
    emulated,
    left_out,
    lossy,
    uncompared,
)
from wattwire.analysis.topics.unanswered.open_questions import (
    Gap,
    Held,
    Requested,
    gaps_in_questions,
    held_factors,
    lost_answers,
)
from wattwire.analysis.topics.unanswered.treatments import (
    Missing,
    Row,
    treatments_without_answer,
)

NAMED_MAX = 6
"""Maximum number of treatments that the headline names."""
STATEMENTS_MAX = 6
"""Maximum number of statements on what is not compared."""


@dataclass(frozen=True)
class Unanswered:
    """What has no answer or is not compared, and what qualifies the ratios.

    A warning on `lost` answers comes first on the page. `has_flows` is true if the study has flows,
    so that the page's title has no room for what is not compared. `is_command` is true for the
    measurement of a command, whose page has no answers. `has_ended` is true if all nodes ended
    without a record of a message.
    """

    treatments: tuple[Missing, ...] = ()
    held: tuple[Held, ...] = ()
    gaps: tuple[Gap, ...] = ()
    lost: tuple[Requested, ...] = ()
    uncompared: tuple[Uncompared, ...] = ()
    left_out: LeftOut | None = None
    lossy: Lossy | None = None
    emulated: Emulated | None = None
    has_flows: bool = False
    is_command: bool = False
    has_ended: bool = False

    @property
    def named(self) -> tuple[Missing, ...]:
        """The treatments without an answer that the headline names."""
        return tuple(_first(self.treatments))

    @property
    def more(self) -> int:
        """The number of treatments without an answer that the headline does not name."""
        return len(self.rows) - sum(len(missing.names) for missing in self.named)

    @property
    def rows(self) -> tuple[Row, ...]:
        """The treatments without an answer."""
        return tuple(Row(name, missing) for missing in self.treatments for name in missing.names)

    @property
    def statements(self) -> tuple[Uncompared, ...]:
        """The statements on what is not compared that the page's first lines have."""
        return self.uncompared[:STATEMENTS_MAX]

    @property
    def more_statements(self) -> int:
        """The number of other statements."""
        return len(self.uncompared) - len(self.statements)


def _first(treatments: tuple[Missing, ...]) -> Iterator[Missing]:
    """Yield the treatments of which at most NAMED_MAX have a name in the headline."""
    names = 0
    for missing in treatments:
        if names + len(missing.names) <= NAMED_MAX:
            names += len(missing.names)
            yield missing


def unanswered(evidence: Evidence, answers: Answers) -> Unanswered:
    """Return the treatments and questions without an answer, and what is not compared."""
    responses = question_responses(evidence)
    return Unanswered(
        tuple(treatments_without_answer(evidence)),
        tuple(held_factors(evidence)),
        tuple(gaps_in_questions(evidence, answers)),
        tuple(lost_answers(evidence, answers)),
        tuple(uncompared(evidence, responses)),
        left_out(evidence),
        lossy(evidence, responses),
        emulated(evidence),
        bool(evidence.study.flows),
        evidence.study.request is not None,
        ended(evidence) is not None,
    )

"""Find threats to conclusion validity, where a difference may be due to chance."""

from __future__ import annotations

import math
from dataclasses import dataclass

from wattwire.analysis.answering.answer_types import NUMBER, Answers
from wattwire.analysis.dataset import Evidence

FEW_BLOCKS = 5


@dataclass(frozen=True)
class Conclusion:
    """How many answers have a number, and what makes their intervals uncertain.

    `edited` and `limits_changed` are changes after the measurement. `numbers` of the `answers` have
    a number; `unanswered` has the titles of the responses of the others. `noise` is the far end of
    the interval of the A/A control runs as a share, 0 without them.
    """

    edited: tuple[str, ...] = ()
    limits_changed: str = ""
    blocks: int = 0
    has_ratios: bool = False
    differences: tuple[str, ...] = ()
    has_runs: bool = False
    answers: int = 0
    numbers: int = 0
    undecided: int = 0
    unanswered: tuple[str, ...] = ()
    noise: float = 0.0

    @property
    def has_few_blocks(self) -> bool:
        """Whether there are several blocks, but too few to check their independence."""
        return 1 < self.blocks < FEW_BLOCKS

    @property
    def without_number(self) -> int:
        """The number of answers without a number."""
        return self.answers - self.numbers


def conclusion(evidence: Evidence, answers: Answers) -> Conclusion:
    """Return the threats to conclusion validity."""
    computed, differences = answers.computed(), answers.differences()
    numbers = [*computed, *differences]
    others = [item for item in answers.items if not isinstance(item.result, NUMBER)]
    return Conclusion(
        tuple(evidence.edited),
        evidence.validity_changed,
        answers.block_count,
        bool(computed),
        tuple(dict.fromkeys(item.response.title for item in differences)),
        evidence.usable.height > 0,
        len(answers.items),
        len(numbers),
        sum(answers.outcome(item) == "undecided" for item in numbers),
        tuple(dict.fromkeys(item.response.title for item in others)),
        math.expm1(max(answers.noise.values(), default=0.0)),
    )

"""Define the outcomes of nodes and the verdicts on runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any


class Outcome(str, Enum):
    """The outcome of the nodes, which is a result and part of the answer."""

    COMPLETED = "completed"
    SATURATED = "saturated"
    TIMED_OUT = "timed_out"
    DIED = "died"


def ended_unsent(row: Mapping[str, Any]) -> bool:
    """Return whether a run's nodes died or hung and left no record of a sent message.

    `row` is the run's row of the summary: `sent` is 0 where nothing was sent, None where it is
    unknown.
    """
    ended = row.get("outcome") in {Outcome.DIED.value, Outcome.TIMED_OUT.value}
    return ended and not row.get("sent")


class Verdict(str, Enum):
    """The use of a run in the analysis, determined by the worst of its reasons."""

    VALID = "valid"
    INVALID = "invalid"
    FAILED = "failed"


OLD_VERDICTS = {"ok": Verdict.VALID.value, "unknown": Verdict.INVALID.value}
"""Former spellings of the current verdicts, in older campaigns."""


def current_verdict(word: str) -> str:
    """Return the current spelling of a verdict; other words are unchanged."""
    return OLD_VERDICTS.get(word, word)


_SEVERITY = {Verdict.VALID: 0, Verdict.INVALID: 1, Verdict.FAILED: 2}


@dataclass(frozen=True)
class Reason:
    """One piece of evidence against a run, independent of the response."""

    verdict: Verdict
    code: str
    detail: str

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "verdict": self.verdict.value}


def worst(reasons: Iterable[Reason]) -> Verdict:
    """Return the worst verdict of the reasons: failed, then invalid; valid without reasons."""
    return max((r.verdict for r in reasons), key=_SEVERITY.__getitem__, default=Verdict.VALID)

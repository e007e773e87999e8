"""Outcomes of nodes and verdicts on runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any


class Outcome(str, Enum):
    """The outcome of a run's nodes. It is a result, not a reason to exclude the run."""

    COMPLETED = "completed"
    SATURATED = "saturated"
    HELD_UP = "held_up"
    """Calls without a reply, not the load, kept a sender from its schedule."""
    TIMED_OUT = "timed_out"
    DIED = "died"


COMPLETE = (Outcome.COMPLETED, Outcome.SATURATED, Outcome.HELD_UP)
"""Outcomes of runs whose nodes all ended normally."""


def ended_unsent(row: Mapping[str, Any]) -> bool:
    """Return whether a run's nodes died or hung without a record of a sent message.

    `row` is the run's row of the summary. Its `sent` is 0 if nothing was sent, and None if unknown.
    A command, whose row has `ended_by`, need not send messages.
    """
    ended = row.get("outcome") in {Outcome.DIED.value, Outcome.TIMED_OUT.value}
    return ended and not row.get("sent") and not row.get("ended_by")


class Verdict(str, Enum):
    """The verdict on a run, which is the worst verdict of its reasons."""

    VALID = "valid"
    INVALID = "invalid"
    FAILED = "failed"


PORT_IN_USE, PERMISSION, MISSING_LIBRARY = "port_in_use", "permission", "missing_library"
START_CODES = (PORT_IN_USE, PERMISSION, MISSING_LIBRARY)
"""Codes of the reasons why a process ended before GO that its load cannot cause."""
NOT_CARRIED, OTHER_INTERFACE, LEAKED = "not_carried", "other_interface", "leaked"
OTHER_WAYS = frozenset({NOT_CARRIED, OTHER_INTERFACE, LEAKED})
"""Reasons against a run whose messages went another way. A repetition would go the same way, and a
valid one would show only that the way was not noticed, so such a run is not repeated. It measured
another network, so no answer includes it, not even one with the excluded runs."""
_SEVERITY = {Verdict.VALID: 0, Verdict.INVALID: 1, Verdict.FAILED: 2}


@dataclass(frozen=True)
class Reason:
    """Evidence against a run, which is independent of the response."""

    verdict: Verdict
    code: str
    detail: str

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "verdict": self.verdict.value}


def worst(reasons: Iterable[Reason]) -> Verdict:
    """Return the worst verdict of the reasons. Without reasons, the verdict is valid."""
    return max((r.verdict for r in reasons), key=_SEVERITY.__getitem__, default=Verdict.VALID)

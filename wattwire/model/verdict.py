"""What happened to the nodes, and whether a run may be used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any


class Outcome(str, Enum):
    """What happened to the nodes: a result, part of the answer."""

    COMPLETED = "completed"
    SATURATED = "saturated"
    TIMED_OUT = "timed_out"
    DIED = "died"


def ended_unsent(row: Mapping[str, Any]) -> bool:
    """Whether a run's nodes ended or hung and left no record of anything that was sent.

    By its row of the summary: `sent` is 0 where nothing was, None where nobody knows.
    """
    ended = row.get("outcome") in {Outcome.DIED.value, Outcome.TIMED_OUT.value}
    return ended and not row.get("sent")


class Verdict(str, Enum):
    """May the run be used? The worst reason wins."""

    OK = "ok"
    UNKNOWN = "unknown"
    FAILED = "failed"


_SEVERITY = {Verdict.OK: 0, Verdict.UNKNOWN: 1, Verdict.FAILED: 2}


@dataclass(frozen=True)
class Reason:
    """One piece of evidence, independent of the response, against a run."""

    verdict: Verdict
    code: str
    detail: str

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "verdict": self.verdict.value}


def worst(reasons: Iterable[Reason]) -> Verdict:
    """Merge reasons: `failed` before `unknown` before `ok`."""
    return max((r.verdict for r in reasons), key=_SEVERITY.__getitem__, default=Verdict.OK)

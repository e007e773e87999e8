"""Define what a detector of a cause receives and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from wattwire.analysis.dataset import Evidence
from wattwire.analysis.topics.findings.runs import Run


class Finding(Protocol):
    """A cause, with everything that its templates print.

    `is_shown` is true if the study itself shows the cause, which is otherwise only suspected.
    """

    @property
    def is_shown(self) -> bool: ...


@dataclass(frozen=True)
class Detected:
    """The result of a detector: its findings, or what its template needs to say why it has none.

    Results inherit this class, so that a stored result states which detector's it is. Each member
    of `found` is a `Finding`, which a detector's result annotates by its own type.
    """

    found: Sequence[Any] = ()


@dataclass(frozen=True)
class Searched:
    """Input of the detectors, with latencies of valid and of excluded runs in run order.

    `noise` maps responses to their A/A noise floors, as |log ratio|; it is empty without control
    runs.
    """

    evidence: Evidence
    runs: Sequence[Run]
    excluded: Sequence[Run] = ()
    noise: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Detector:
    """A detector, with its function and its position among the findings.

    If it `needs_valid_runs`, it searches no campaign whose runs are all excluded.
    """

    search: Callable[[Searched], Detected]
    place: int
    needs_valid_runs: bool = True

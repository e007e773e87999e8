"""Count what arrives of each flow that loses messages, for the headline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from wattwire.analysis.dataset import Evidence
from wattwire.analysis.topics.flows.results import FlowResult

LOST_MIN = 0.01
"""Smallest lost share of a flow that precedes the latencies."""
FLOWS_NAMED = 3


@dataclass(frozen=True)
class Counted:
    """The messages that were expected in some treatments, and those of them that were received."""

    received: int
    expected: int

    @property
    def lost_share(self) -> float:
        """The share of the expected messages that was lost."""
        return (self.expected - self.received) / self.expected


@dataclass(frozen=True)
class Arrivals:
    """What arrives of a flow in the treatments that lose messages.

    They are `lossy` of as many `treatments` at these `conditions`, which are levels that they
    share. `otherwise` are the messages in other treatments that lose some of them: where nothing
    arrives, a sum with the others describes neither.
    """

    flow: str
    counted: Counted
    lossy: int
    treatments: int
    conditions: tuple[str, ...] = ()
    otherwise: Counted | None = None


def arrivals(evidence: Evidence, results: Iterable[FlowResult]) -> tuple[Arrivals, ...]:
    """Return the FLOWS_NAMED flows with the largest losses, the largest first."""
    of_flows = list(_arrivals(evidence, results))
    of_flows.sort(key=lambda item: -item.counted.lost_share)
    return tuple(of_flows[:FLOWS_NAMED])


def _arrivals(evidence: Evidence, results: Iterable[FlowResult]) -> Iterator[Arrivals]:
    by_flow: dict[str, list[FlowResult]] = {}
    for result in results:
        if result.expected is not None and result.lost is not None and result.expected > 0:
            by_flow.setdefault(result.flow, []).append(result)
    for flow, own in by_flow.items():
        lossy = [item for item in own if _counted([item]).lost_share >= LOST_MIN]
        silent = [item for item in lossy if item.lost == item.expected]
        worst = silent or lossy
        if worst:
            conditions, treatments = _conditions(evidence, worst, own)
            others = [item for item in lossy if item not in worst]
            otherwise = _counted(others) if others else None
            counted = _counted(worst)
            yield Arrivals(flow, counted, len(worst), treatments, conditions, otherwise)


def _counted(items: Sequence[FlowResult]) -> Counted:
    expected, lost = (
        sum(item.expected or 0 for item in items),
        sum(item.lost or 0 for item in items),
    )
    return Counted(expected - lost, expected)


def _conditions(
    evidence: Evidence, lossy: Sequence[FlowResult], own: Sequence[FlowResult]
) -> tuple[tuple[str, ...], int]:
    """Return the levels that only the lossy treatments share, and the treatments at these levels.

    They have no such levels if all treatments are lossy.
    """
    shared, others = [], list(own)
    if len(lossy) < len(own):
        for index, factor in enumerate(evidence.varied):
            levels = {item.treatment[index] for item in lossy}
            if len(levels) == 1 and levels != {item.treatment[index] for item in own}:
                (level,) = levels
                shared.append(evidence.title_of_word(factor, level))
                others = [item for item in others if item.treatment[index] == level]
    return tuple(shared), len(others)

"""Fewer points than runs: what is drawn of a campaign so large that a page would not open.

Tables and answers never come from here: they hold every run.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from wattwire.model import words
from wattwire.report.figures.style import POINTS
from wattwire.report.parts import Figure, Fold

POINTS_MAX = 4000
"""More points of runs in one figure are thinned out: they would only cover each other."""
GROUP_MIN = 5
"""What a group keeps at least, if it has as many: its ends, its middle and its quartiles."""
GROUPED_BY = (("panel", "colour", "treatment", "used"), ("panel", "colour", "used"), ())

Points = Sequence[Mapping[str, Any]]


class Thinner:
    """Thins out figures of one page; figures of the same points stay figures of the same."""

    def __init__(self, most: int = POINTS_MAX) -> None:
        self._most = most
        self._made: dict[int, tuple[Points, list[Any]]] = {}

    def parts(self, parts: Sequence[Any]) -> list[Any]:
        """The same parts, each figure with more points of runs than may be drawn thinned out."""
        return [self._part(part) for part in parts]

    def _part(self, part: Any) -> Any:
        if isinstance(part, Fold):
            return replace(part, parts=self.parts(part.parts))
        if not isinstance(part, Figure):
            return part
        held = part.spec.get("datasets", {}).get(POINTS)
        if not held or "run" not in held[0] or len(held) <= self._most:
            return part
        if id(held) not in self._made:
            self._made[id(held)] = (held, thinned(held, self._most))
        kept = self._made[id(held)][1]
        spec = {**part.spec, "datasets": {POINTS: kept}}
        return replace(part, spec=spec, caption=f"{part.caption} {_told(len(kept), len(held))}")


def thinned(points: Points, most: int) -> list[Any]:
    """About `most` of `points`, in their order.

    Of each group as many as its share, evenly spaced by the rank of their value with the lowest
    and the highest among them: so quartiles, medians and means stay where they are.
    """
    groups: dict[Hashable, list[int]] = {}
    for keys in GROUPED_BY:
        groups = {}
        for at, point in enumerate(points):
            groups.setdefault(tuple(str(point.get(key)) for key in keys), []).append(at)
        if len(groups) * GROUP_MIN <= most:
            break
    kept: list[int] = []
    for places in groups.values():
        wanted = max(GROUP_MIN, round(len(places) * most / len(points)))
        ranked = sorted(places, key=lambda at: _value(points[at]))
        kept += [ranked[at] for at in spread(len(ranked), wanted)]
    return [points[at] for at in sorted(kept)]


def spread(count: int, wanted: int) -> list[int]:
    """`wanted` of the places 0 … `count` - 1, evenly spaced, first and last included."""
    if wanted >= count:
        return list(range(count))
    return np.linspace(0, count - 1, wanted).round().astype(int).tolist()


def _value(point: Mapping[str, Any]) -> float:
    found = point.get("value", point.get("y"))
    return float(found) if isinstance(found, (int, float)) else 0.0


def _told(kept: int, held: int) -> str:
    return (
        f"{words.count(kept)} of {words.count(held)} runs are drawn: of each treatment its share, "
        "evenly spaced by the rank of their value, lowest and highest included. Boxes, curves and "
        "medians in the figure are of those; the tables hold every run."
    )

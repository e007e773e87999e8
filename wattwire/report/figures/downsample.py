"""Downsample figures, because browsers cannot open a page with every run of a large campaign.

Tables and answers contain every run.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from wattwire.analysis.charts import spread
from wattwire.model import words
from wattwire.report.figures.style import POINTS
from wattwire.report.parts import Figure, Fold

POINTS_MAX = 4000
"""Maximum number of run points in a figure. More points would overlap."""
GROUP_MIN = 5
"""Minimum number of points per group, for the extremes, the median and the quartiles."""
GROUPED_BY = (("panel", "colour", "treatment", "used"), ("panel", "colour", "used"), ())

Points = Sequence[Mapping[str, Any]]


class Thinner:
    """Downsamples the figures of a page. Figures that share points continue to share them."""

    def __init__(self, most: int = POINTS_MAX) -> None:
        self._most = most
        self._cache: dict[int, tuple[Points, list[Any]]] = {}

    def parts(self, parts: Sequence[Any]) -> list[Any]:
        """Return the parts, with each figure of more than `most` run points downsampled."""
        return [self._part(part) for part in parts]

    def _part(self, part: Any) -> Any:
        if isinstance(part, Fold):
            return replace(part, parts=self.parts(part.parts))
        if not isinstance(part, Figure):
            return part
        points = part.spec.get("datasets", {}).get(POINTS)
        if not points or "run" not in points[0] or len(points) <= self._most:
            return part
        if id(points) not in self._cache:
            self._cache[id(points)] = (points, thinned(points, self._most))
        kept = self._cache[id(points)][1]
        spec = {**part.spec, "datasets": {POINTS: kept}}
        return replace(
            part, spec=spec, caption=f"{part.caption} {_thinning_note(len(kept), len(points))}"
        )


def thinned(points: Points, most: int) -> list[Any]:
    """Return about `most` of `points`, in the original order.

    Each group keeps a proportional number of points, evenly spaced by rank, including its minimum
    and maximum. Quartiles, medians and means are therefore nearly unchanged.
    """
    groups: dict[Hashable, list[int]] = {}
    for keys in GROUPED_BY:
        groups = {}
        for index, point in enumerate(points):
            groups.setdefault(tuple(str(point.get(key)) for key in keys), []).append(index)
        if len(groups) * GROUP_MIN <= most:
            break
    kept: list[int] = []
    for indices in groups.values():
        size = max(GROUP_MIN, round(len(indices) * most / len(points)))
        ranked = sorted(indices, key=lambda index: _value(points[index]))
        kept += [ranked[index] for index in spread(len(ranked), size)]
    return [points[index] for index in sorted(kept)]


def _value(point: Mapping[str, Any]) -> float:
    value = point.get("value", point.get("y"))
    return float(value) if isinstance(value, (int, float)) else 0.0


def _thinning_note(drawn: int, total: int) -> str:
    return (
        f"The figure shows {words.count(drawn)} of {words.count(total)} runs: a proportional "
        "share of each treatment, evenly spaced by rank, including the lowest and highest "
        "value. Boxes, curves and medians in the figure use these runs. The tables contain "
        "every run."
    )

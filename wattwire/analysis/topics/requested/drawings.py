"""Compute the figures that a study requests: charts, axes and the values of their sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wattwire.analysis.charts import BOX_RUNS_MIN, Chart
from wattwire.analysis.metrics_by_role import BOTH
from wattwire.analysis.response_lines import Group
from wattwire.analysis.responses import Response
from wattwire.stats import NotComputable, TooFew
from wattwire.stats.linear import LinearFit

ALARM = 0.05
"""Significance level of the lack of fit."""
PER_ROW, PANELS_MAX = 2, 12
"""Panels of a requested figure: the number per row, and the maximum number."""
SENTENCES_MAX = 4
"""Maximum number of sentences on lines that the page does not collapse."""


@dataclass(frozen=True)
class Axis:
    """The title of an axis, its unit ("" if it has none), and whether its scale is logarithmic."""

    title: str
    unit: str = ""
    is_log: bool = False


@dataclass(frozen=True)
class FittedLine:
    """A line with its title, or the reason why no line was fitted."""

    title: str
    fit: LinearFit | TooFew | NotComputable

    @property
    def is_fitted(self) -> bool:
        """Whether there is a line."""
        return isinstance(self.fit, LinearFit)

    @property
    def deviates(self) -> bool:
        """Whether the means deviate from the line, or there is none."""
        return not isinstance(self.fit, LinearFit) or self.fit.lack_of_fit.p < ALARM


@dataclass(frozen=True)
class Fits:
    """The lines of a figure over a factor, whose unit is `step`. `unit` is the response's.

    Means are geometric if `is_geometric`. `excluded` has the reason for each treatment without a
    mean.
    """

    lines: tuple[FittedLine, ...]
    is_geometric: bool
    excluded: tuple[NotComputable, ...]
    unit: str
    step: str

    @property
    def is_any_fitted(self) -> bool:
        """Whether any line was fitted."""
        return any(line.is_fitted for line in self.lines)

    @property
    def is_any_connected(self) -> bool:
        """Whether the means of any line are connected, because they deviate from it."""
        return any(line.deviates for line in self.lines)

    @property
    def is_long(self) -> bool:
        """Whether the page collapses the sentences on the lines."""
        return len(self.lines) > SENTENCES_MAX


@dataclass(frozen=True)
class Stack:
    """The segments that stacked bars lack.

    With `has_absent`, a bar has no run with a response. `omitted` names the segments whose median
    is negative or infinite.
    """

    has_absent: bool
    omitted: tuple[str, ...]


@dataclass(frozen=True)
class Drawing:
    """A chart with its axes, and what its caption states on fitted lines or on stacked bars.

    A box plot has a box for at least `treatments_min` treatments.
    """

    chart: Chart
    x: Axis
    y: Axis
    fits: Fits | None = None
    stack: Stack | None = None
    treatments_min: int = BOX_RUNS_MIN


@dataclass(frozen=True)
class Obstacle:
    """Why a figure cannot be drawn.

    `kind` is "not measured", "no pair" (no run has all values of a point), "no value" (or none that
    is comparable), "units" (they differ) or "panels" (there are too many). `titles` are those of
    the responses, or the units.
    """

    kind: str
    titles: tuple[str, ...] = ()
    panels: int = 0
    panels_max: int = PANELS_MAX


@dataclass(frozen=True)
class Substitute:
    """The title of an unmeasured response, and of the one that the figure shows in its place."""

    requested: str
    shown: str
    is_for_energy: bool


@dataclass(frozen=True)
class RequestedFigure:
    """A requested figure, or the obstacle to drawing it. `kind` is that of the study.

    `selection` has the titles of the levels to which the study restricts the figure.
    """

    title: str
    kind: str
    result: Drawing | Obstacle
    selection: tuple[str, ...] = ()
    substitute: Substitute | None = None

    @property
    def drawing(self) -> Drawing | None:
        """The chart, if the figure can be drawn."""
        return self.result if isinstance(self.result, Drawing) else None

    @property
    def obstacle(self) -> Obstacle | None:
        """The reason for a missing chart."""
        return self.result if isinstance(self.result, Obstacle) else None


def axis_of(response: Response, is_log: bool = False) -> Axis:
    """Return the axis of a response."""
    return Axis(response.title, response.unit, is_log)


def group_panels(groups: Sequence[Group]) -> Mapping[Group, str] | Obstacle:
    """Return the title of each group's panel, or the obstacle that there are too many panels.

    A panel has the runs of a role and of a combination of the levels of all other factors.
    """
    panels_by_group = {
        group: ", ".join(
            filter(None, (group.role.replace("_", " ") if group.role != BOTH else "", group.others))
        )
        for group in groups
    }
    count = len(set(panels_by_group.values()))
    return Obstacle("panels", panels=count) if count > PANELS_MAX else panels_by_group


def in_planned_order(planned: Sequence[str], present: Sequence[str]) -> list[str]:
    """Return the titles of levels that are in `present`, in planned order."""
    kept = [title for title in planned if title in set(present)]
    return list(dict.fromkeys([*kept, *present]))

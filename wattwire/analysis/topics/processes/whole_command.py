"""Compute the figures of a whole command: those that it printed, and the costs of its processes."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from wattwire.analysis.streams.figures import ENDS, LAYER_ENDS
from wattwire.analysis.topics.processes.executed import (
    PEAK_IS_BOUND,
    Executed,
    Value,
    mean_of,
)
from wattwire.model.metrics import find, is_printed


@dataclass(frozen=True)
class Cost:
    """A mean over the repeats, or only its lower bound; None if it is unknown."""

    exact: Value = None
    bound: Value = None


@dataclass(frozen=True)
class Figure:
    """A metric of the whole command, with one value per repeat that has one."""

    key: str
    title: str
    unit: str
    values: tuple[float, ...]
    is_bound: bool = False
    is_of_probe: bool = False
    """Whether a probe watched it, which no command printed."""

    @property
    def value(self) -> Value:
        """The mean over the repeats, with its t interval if there are enough repeats."""
        return mean_of(self.values)

    @property
    def mean(self) -> float:
        """The mean over the repeats."""
        return sum(self.values) / len(self.values)

    @property
    def cost(self) -> Cost:
        """The mean over the repeats as an exact value or as a lower bound."""
        return Cost(bound=self.value) if self.is_bound else Cost(self.value)

    @property
    def sd(self) -> float | None:
        """The standard deviation of the repeats; None if there is one repeat."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None

    @property
    def lowest(self) -> float:
        """The lowest value of a repeat."""
        return min(self.values)

    @property
    def highest(self) -> float:
        """The highest value of a repeat."""
        return max(self.values)

    @property
    def repeats(self) -> int:
        """The number of repeats that have a value."""
        return len(self.values)


def printed_figures(executed: Executed) -> list[Figure]:
    """Return the figures that the command printed, and those of a probe or of layers."""
    figures, request = [], executed.request
    ends = (*(ENDS if request.probe else ()), *(LAYER_ENDS if request.layers else ()))
    for name in executed.columns:
        values = executed.values(name) if is_printed(name.partition(".")[0]) else []
        if values and (metric := find(name)):
            title = name.partition(".")[2]
            is_of_probe = title.endswith(ends) and title not in request.printed_names
            figures.append(Figure(name, title, metric.unit, tuple(values), False, is_of_probe))
    return figures


def whole_figures(executed: Executed) -> list[Figure]:
    """Return the printed figures, the costs of all processes together, and the probe's figures.

    A graph has hundreds of figures of the probe, which would hide the costs below them.
    """
    ended = {repeat.get("ended_by") for repeat in executed.repeats}
    is_whole = ended == {"itself"} and not executed.request.warms_up
    is_wall = is_whole and bool(executed.request.command)
    costs = (
        ("window_s", "wall time" if is_wall else "window", "s", 1.0),
        ("cpu_s", "CPU time", "s", 1.0),
        ("cpu_user_s", "user", "s", 1.0),
        ("cpu_system_s", "kernel", "s", 1.0),
        ("memory_peak_kib", "peak memory", "MiB", 1 / 1024),
        ("messages", "messages", "", 1.0),
        ("energy_j", "energy", "J", 1.0),
    )
    figures = [
        Figure(key, title, unit, tuple(factor * value for value in executed.values(key)),
               key == "memory_peak_kib" and any(executed.values(PEAK_IS_BOUND)))
        for key, title, unit, factor in costs
    ]  # fmt: skip
    named = printed_figures(executed)
    return [
        *(figure for figure in named if not figure.is_of_probe),
        *(figure for figure in figures if figure.values),
        *(figure for figure in named if figure.is_of_probe),
    ]

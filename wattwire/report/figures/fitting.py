"""Fit a chart to its size and points by wrapping titles, omitting ticks and shrinking dots.

explore.js does the same for the charts that a reader selects.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wattwire.report.figures.letters import drawable

LETTER_PX = 6.1
"""Mean width of a letter at a font size of 12 px, in px."""
CROWD = 400
DIGITS = ((5.6, (1, 2, 3, 5, 7)), (3.0, (1, 2, 5)), (1.7, (1, 3)), (0.0, (1,)))
"""Minimum width of a decade, in widths of a label → leading digits of the ticks that fit."""
LABEL_PX = {"x": 45.0, "y": 20.0}
TICKS_MIN = 3


def fit(chart: dict[str, Any], points: Sequence[Mapping[str, Any]] | None) -> None:
    """Fit titles, ticks and dots of `chart` to its size and `points`, in place."""
    unit = chart.get("spec", chart)
    for encoding in encodings(unit):
        for channel, side in (("x", "width"), ("y", "height")):
            if channel in encoding and isinstance(unit.get(side), (int, float)):
                _wrap(encoding[channel], unit[side])
                if points and _has_log_axis(encoding[channel]):
                    room = unit[side] / LABEL_PX[channel]
                    _ticks(encoding[channel], room, _axis_values(unit, channel, points))
    if points and len(points) > CROWD:
        for layer in [unit, *unit.get("layer", [])]:
            mark = layer.get("mark", {})
            if mark.get("type") in ("point", "circle") and "crowded" in mark:
                mark["size"] = mark["crowded"]
    for layer in [unit, *unit.get("layer", [])] if points is not None else []:
        layer.get("mark", {}).pop("crowded", None)


def encodings(unit: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the encodings of a chart and its layers."""
    for layer in (unit, *unit.get("layer", ())):
        if "encoding" in layer:
            yield layer["encoding"]


def _wrap(channel: dict[str, Any], room_px: float) -> None:
    title = channel.get("title")
    if isinstance(title, str) and not title.startswith("@"):
        lines = wrapped(title, room_px)
        channel["title"] = lines if len(lines) > 1 else title


def wrapped(title: str, room_px: float) -> list[str]:
    """Wrap a title to lines of at most `room_px` px, without breaks inside brackets."""
    letters = max(8, int(room_px / LETTER_PX))
    if len(title) <= letters:
        return [title]
    lines = [""]
    head, bracket, tail = title.partition(" (")
    for word in [*head.split(" "), *([f"({tail}"] if bracket else [])]:
        longer = f"{lines[-1]} {word}".strip()
        if len(longer) <= letters or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return [drawable(line) for line in lines]


def _axis_values(
    unit: Mapping[str, Any], channel: str, points: Sequence[Mapping[str, Any]]
) -> list[float]:
    """Return the nonzero values of all layers on an axis, including the ends of bars."""
    ends = (channel, f"{channel}2")
    shown = [encoding.get(name, {}) for encoding in encodings(unit) for name in ends]
    fields = {field_encoding["field"] for field_encoding in shown if "field" in field_encoding}
    values = {point.get(field) for field in fields for point in points}
    return [value for value in values if value and isinstance(value, (int, float))]


def _has_log_axis(channel: Mapping[str, Any]) -> bool:
    return channel.get("scale", {}).get("type") == "log" and "axis" in channel


def _ticks(channel: dict[str, Any], room: float, values: Sequence[float]) -> None:
    ticks = log_ticks(min(values), max(values), room) if values else []
    if ticks:
        channel["axis"] = {**channel["axis"], "values": ticks}


def log_ticks(low: float, high: float, room: float) -> list[float]:
    """Return round tick values from `low` to `high` whose labels fit, or [] if too few fit.

    `room` is the length of the axis in label widths.
    """
    if not 0 < low < high:
        return []
    decades = math.log10(high) - math.log10(low)  # high / low may overflow
    digits = next(digits for labels_min, digits in DIGITS if room / decades >= labels_min)
    powers = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1)
    if len(digits) == 1:
        powers = powers[:: max(1, math.ceil(decades / room))]
    ticks = [float(f"{digit}e{power}") for power in powers for digit in digits]
    ticks = [tick for tick in ticks if low <= tick <= high]
    return ticks if len(ticks) >= TICKS_MIN else []

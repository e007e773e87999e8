"""Pack rows as columnar JSON that contains each distinct word once. page.js unpacks them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from wattwire.report.figures.style import POINTS

WORDS_MIN = 4


def packed(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return `rows` by column. Words become {"words": […], "at": […]}, and other values a list.

    Missing keys, infinite numbers and NaN become null, because JSON cannot represent them.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    return packed_columns({name: [row.get(name) for row in rows] for name in names}, len(rows))


def packed_columns(columns: Mapping[str, Sequence[Any]], rows: int) -> dict[str, Any]:
    """Return the same as `packed`, for columns with `rows` values each."""
    return {"rows": rows, "columns": {name: _column(v) for name, v in columns.items()}}


def _column(values: Sequence[Any]) -> Any:
    types = set(map(type, values))
    if float in types and not all(math.isfinite(v) for v in values if type(v) is float):
        values = [None if type(v) is float and not math.isfinite(v) else v for v in values]
    if types - {str, type(None)}:
        return list(values)
    words = dict.fromkeys(value for value in values if value is not None)
    if len(values) < WORDS_MIN or 2 * len(words) > len(values):
        return list(values)
    index_of = {word: index for index, word in enumerate(words)}
    return {"words": list(words), "at": [None if v is None else index_of[v] for v in values]}


def packed_charts(specs: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return charts by name, and their points. Charts with the same points share them.

    The result is {"charts": {name: spec}, "points": [packed, …]}. The `datasets` of a spec contain
    the index of its points.
    """
    index_of: dict[int, int] = {}
    points: list[dict[str, Any]] = []
    charts = {}
    for name, spec in specs.items():
        chart_points = spec.get("datasets", {}).get(POINTS)
        if chart_points is None:
            charts[name] = dict(spec)
            continue
        if id(chart_points) not in index_of:
            index_of[id(chart_points)] = len(points)
            points.append(packed(chart_points))
        charts[name] = {**spec, "datasets": {POINTS: index_of[id(chart_points)]}}
    return {"charts": charts, "points": points}


def script_json(value: Any) -> str:
    """Return JSON that cannot end its script element, with each "<" written as \\u003c."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    return text.replace("<", "\\u003c")

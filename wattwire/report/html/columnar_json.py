"""Rows as a page carries them: by column, each word once. page.js holds the way back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from wattwire.report.figures import POINTS

WORDS_MIN = 4


def packed(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """`rows` by column. A column of words is {"words": […], "at": […]}, any other a plain list.

    A key that a row lacks is null there. An infinite or unknown number is null as well: JSON has
    neither.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    return packed_columns({name: [row.get(name) for row in rows] for name in names}, len(rows))


def packed_columns(columns: Mapping[str, Sequence[Any]], rows: int) -> dict[str, Any]:
    """The same from columns of `rows` values each."""
    return {"rows": rows, "columns": {name: _column(v) for name, v in columns.items()}}


def _column(values: Sequence[Any]) -> Any:
    kinds = set(map(type, values))
    if float in kinds and not all(math.isfinite(v) for v in values if type(v) is float):
        values = [None if type(v) is float and not math.isfinite(v) else v for v in values]
    if kinds - {str, type(None)}:
        return list(values)
    words = dict.fromkeys(value for value in values if value is not None)
    if len(values) < WORDS_MIN or 2 * len(words) > len(values):
        return list(values)
    place = {word: at for at, word in enumerate(words)}
    return {"words": list(words), "at": [None if v is None else place[v] for v in values]}


def packed_charts(specs: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Charts by name, each pointing at its points by number; points that are the same stand once.

    Gives {"charts": {name: spec}, "points": [packed, …]}; a spec's `datasets` hold the number.
    """
    places: dict[int, int] = {}
    points: list[dict[str, Any]] = []
    charts = {}
    for name, spec in specs.items():
        held = spec.get("datasets", {}).get(POINTS)
        if held is None:
            charts[name] = dict(spec)
            continue
        if id(held) not in places:
            places[id(held)] = len(points)
            points.append(packed(held))
        charts[name] = {**spec, "datasets": {POINTS: places[id(held)]}}
    return {"charts": charts, "points": points}


def script_json(value: Any) -> str:
    """JSON that may stand inside a script element: "<" could end it; as \\u003c it is the same."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    return text.replace("<", "\\u003c")

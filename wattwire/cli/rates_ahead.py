"""State the rates that a plan offers, per sender and in total."""

from __future__ import annotations

from collections.abc import Sequence

from wattwire.model.deployment import PATTERNS, sender_count, sender_rate_hz
from wattwire.model.flows import flow_parts
from wattwire.model.treatment import Treatment
from wattwire.model.words import count


def rate_lines(treatments: Sequence[Treatment]) -> list[str]:
    """Return a line per sending role with its rate, or none for closed loops and several flows.

    Each flow of a study states its own rate.
    """
    rates: dict[str, set[tuple[float, int]]] = {}
    for treatment in treatments:
        parts = [part.treatment for part in flow_parts(treatment) if not part.name]
        for part in parts:
            rate_hz = sender_rate_hz(part)
            if rate_hz is not None:
                role = PATTERNS[str(part["pattern"])].sender
                rates.setdefault(role, set()).add((rate_hz, sender_count(part)))
    return [
        f"rate: {_range({rate for rate, _ in pairs})} Hz per {role.replace('_', ' ')} × "
        f"{_range({count for _, count in pairs})} = "
        f"{_range({rate * count for rate, count in pairs})} Hz in total"
        for role, pairs in rates.items()
    ]


def _range(values: set[float] | set[int]) -> str:
    """Return the lowest and the highest value."""
    return " to ".join(dict.fromkeys(map(_number, (min(values), max(values)))))


def _number(value: float) -> str:
    return count(value) if value == round(value) else f"{value:.6g}"

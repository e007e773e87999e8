"""Whether a number of ours is the one that stands printed."""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation

ROUNDING = 1e-9
CLOSE = 0.01


def number(printed: str) -> float:
    """The value of a printed number; spaces and commas between thousands are left out."""
    return float(_decimal(printed))


def agrees(printed: str, value: float | None, decimals: int | None = None) -> bool:
    """Whether `value` gives the printed digits by rounding, or by cutting the rest off.

    `decimals` is how many a column prints where trailing zeros are dropped (11.1 for 11.10);
    without it the printed text says. Raises ValueError where `printed` is no number.
    """
    if value is None or not math.isfinite(value):
        return False
    stands = _decimal(printed)
    last = stands.as_tuple().exponent if decimals is None else -decimals
    unit = 10.0 ** int(last)
    off = value - float(stands)
    away = off if float(stands) >= 0 else -off
    slack = ROUNDING * max(unit, abs(value))
    return abs(off) <= unit / 2 + slack or -slack <= away < unit


def cut(printed: str, value: float, decimals: int | None = None) -> bool:
    """Whether the digits agree only because the rest was cut off rather than rounded."""
    stands = _decimal(printed)
    last = stands.as_tuple().exponent if decimals is None else -decimals
    unit = 10.0 ** int(last)
    return agrees(printed, value, decimals) and abs(value - float(stands)) > unit / 2 * (1 + 1e-6)


def close(printed: str, value: float | None) -> bool:
    """Whether `value` is within 1 % of the printed number."""
    if value is None or not math.isfinite(value):
        return False
    stands = number(printed)
    return abs(value - stands) <= CLOSE * abs(stands)


def _decimal(printed: str) -> Decimal:
    text = "".join(c for c in printed if c not in ", \N{NARROW NO-BREAK SPACE}")
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ValueError(f"{printed!r} is no number") from None

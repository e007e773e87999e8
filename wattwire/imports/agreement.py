"""Check whether a computed value agrees with a printed number."""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation

ROUNDING = 1e-9
CLOSE = 0.01


def number(printed: str) -> float:
    """Return the value of a printed number. Spaces and commas between thousands are ignored."""
    return float(_decimal(printed))


def agrees(printed: str, value: float | None, decimals: int | None = None) -> bool:
    """Return whether `value` has the printed digits after rounding or truncation.

    `decimals` is the number of decimals of a column that omits trailing zeros (11.1 for 11.10).
    Without it, the printed text determines the number. Raise ValueError if `printed` is not a
    number.
    """
    if value is None or not math.isfinite(value):
        return False
    published = _decimal(printed)
    exponent = published.as_tuple().exponent if decimals is None else -decimals
    unit = 10.0 ** int(exponent)
    error = value - float(published)
    outward_error = error if float(published) >= 0 else -error
    slack = ROUNDING * max(unit, abs(value))
    return abs(error) <= unit / 2 + slack or -slack <= outward_error < unit


def cut(printed: str, value: float, decimals: int | None = None) -> bool:
    """Return whether the digits agree after truncation but not after rounding."""
    published = _decimal(printed)
    exponent = published.as_tuple().exponent if decimals is None else -decimals
    unit = 10.0 ** int(exponent)
    return agrees(printed, value, decimals) and abs(value - float(published)) > unit / 2 * (
        1 + 1e-6
    )


def close(printed: str, value: float | None) -> bool:
    """Return whether `value` is within 1 % of the printed number."""
    if value is None or not math.isfinite(value):
        return False
    published = number(printed)
    return abs(value - published) <= CLOSE * abs(published)


def _decimal(printed: str) -> Decimal:
    text = "".join(
        character for character in printed if character not in ", \N{NARROW NO-BREAK SPACE}"
    )
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ValueError(f"{printed!r} is not a number") from None

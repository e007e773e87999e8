"""Convert results to JSON values, in which missing and infinite numbers are null."""

from __future__ import annotations

import math
from typing import Any

from wattwire import stats


def finite(value: Any) -> float | None:
    """Return a finite number, or None for an infinite one and for the reason of a missing one."""
    return value if isinstance(value, (int, float)) and math.isfinite(value) else None


def interval_values(interval: stats.Interval) -> dict[str, Any]:
    """Return an interval as JSON values.

    `interval_level` is the confidence level of this interval. The simultaneous level of all
    intervals of a family is 95 %.
    """
    return {
        "estimate": finite(interval.estimate),
        "low": finite(interval.low),
        "high": finite(interval.high),
        "interval_level": interval.level,
        "degrees": interval.degrees,
        "method": interval.method,
    }

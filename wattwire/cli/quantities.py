"""Parse sizes, durations and shares, such as 64, 64k, 1Mi, 10s, 500ms, 2m and 5%."""

from __future__ import annotations

import math
import re

from wattwire.model.errors import UsageError

SIZE_UNITS = {
    "": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "ki": 1024, "mi": 1024**2, "gi": 1024**3,
}  # fmt: skip
"""SI and IEC prefixes. For example, 1k is 1000 bytes, and 1Ki is 1024 bytes."""
DURATION_UNITS = {"us": 1e-6, "ms": 1e-3, "": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_NUMBER = re.compile(r"(?P<number>\d+(?:\.\d+)?) *(?P<unit>[A-Za-zµ]*)")


def size_bytes(text: str, option: str) -> int:
    """Parse a size such as `64`, `64k` or `1.5MiB` as bytes.

    Raises UsageError for text that is not a whole number of bytes.
    """
    allowed = "a size in bytes, such as 64, 64k (64 000) or 64Ki (65 536); also m, g, Mi, Gi"
    match = _NUMBER.fullmatch(text.strip())
    unit = match["unit"].lower().removesuffix("b") if match else "?"
    if match is None or unit not in SIZE_UNITS:
        raise UsageError(f"{option}: found {text!r}; allowed: {allowed}")
    value = float(match["number"]) * SIZE_UNITS[unit]
    if value != int(value):
        raise UsageError(f"{option}: found {text!r}; allowed: a whole number of bytes")
    return int(value)


def duration_s(text: str, option: str) -> float:
    """Parse a duration such as `10s`, `500ms`, `2m` or `10` as seconds.

    Raises UsageError for text that is not a positive duration.
    """
    match = _NUMBER.fullmatch(text.strip())
    unit = match["unit"].replace("µ", "u").lower() if match else "?"
    if match is None or unit not in DURATION_UNITS:
        raise UsageError(
            f"{option}: found {text!r}; allowed: a time, such as 10s, 500ms, 2m (minutes) or 1h"
        )
    seconds = float(match["number"]) * DURATION_UNITS[unit]
    if not 0 < seconds < math.inf:
        raise UsageError(f"{option}: found {text!r}; allowed: a time above 0")
    return seconds


def share(text: str, option: str) -> float:
    """Parse a share such as `5%` or `0.05` as a number.

    Raises UsageError unless the share is above 0 % and below 100 %.
    """
    number, percent = text.strip().removesuffix("%"), text.strip().endswith("%")
    try:
        value = float(number) / (100.0 if percent else 1.0)
    except ValueError:
        value = -1.0
    if not 0.0 < value < 1.0:
        raise UsageError(
            f"{option}: found {text!r}; allowed: a fraction above 0 and below 1, such as 0.05, or "
            "a percentage above 0% and below 100%, such as 5%"
        )
    return value


def share_of_all(text: str, option: str) -> float:
    """Parse a percentage such as `50%` as 0.5. It may exceed 100 %.

    Raises UsageError for other text.
    """
    number = text.strip().removesuffix("%").strip()
    if not re.fullmatch(r"\d+(\.\d+)?", number):
        raise UsageError(f"{option}: found {text!r}; allowed: a percentage, such as 5%")
    return float(number) / 100.0


def size_words(size: float) -> str:
    """Format a size in bytes with an SI prefix. Sizes below 1 kB are exact."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size:.0f} B"

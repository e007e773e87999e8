"""Numbers, durations and levels as a reader wants to see them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

NARROW_SPACE = "\u202f"
MISSING = "–"
NO_P = "< 10⁻³⁰⁰"
INFINITE = "∞ (lost)"
LEVEL_DIGITS = 13
"""Digits that tell two levels apart; rounding errors of a sum or a quotient lie beyond them."""


def number(value: float | None, digits: int = 3) -> str:
    """`value` to `digits` significant digits, thousands parted, no exponent below 10⁹."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return MISSING
    if math.isinf(value):
        return INFINITE if value > 0 else "−∞"
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    if magnitude >= 9 or magnitude < -5:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        return f"{mantissa.replace('-', '−')} × 10{superscript(int(exponent))}"
    rounded = round(value, digits - 1 - magnitude)
    # Rounding may carry into the next power of ten (9.996 → 10.0): ask again.
    magnitude = math.floor(math.log10(abs(rounded)))
    places = max(0, digits - 1 - magnitude)
    return f"{rounded:,.{places}f}".replace(",", NARROW_SPACE).replace("-", "−")


def p_equals(p: float, digits: int = 2) -> str:
    """As "p = 0.012"; no p is 0, one that a float cannot hold lies below the smallest."""
    return f"p = {number(p, digits)}" if p > 0 else f"p {NO_P}"


def limits(estimate: float, low: float, high: float, digits: int = 3) -> tuple[str, str, str]:
    """An estimate and its limits with the digits that part the limits, from each other and from 1.

    "1.00 (1.00 to 1.00): different" would be a riddle where 1.0004 (1.0001 to 1.0007) is meant.
    """
    for more in range(digits, digits + 5):
        one, lower, upper = (number(value, more) for value in (1.0, low, high))
        alike = low < high and lower == upper
        if not alike and (low == 1 or lower != one) and (high == 1 or upper != one):
            return number(estimate, more), lower, upper
    return number(estimate, digits), number(low, digits), number(high, digits)


def superscript(value: int) -> str:
    """A whole number as an exponent."""
    return str(value).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def count(value: float | int | None) -> str:
    """A whole number with its thousands parted."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return MISSING
    return f"{round(value):,}".replace(",", NARROW_SPACE).replace("-", "−")


def plural(amount: int, one: str, many: str | None = None) -> str:
    """`amount` with its noun: "1 run", "60 runs"."""
    return f"{count(amount)} {one if amount == 1 else many or one + 's'}"


def duration(seconds: float | None) -> str:
    """Seconds as the two units a person would say."""
    if seconds is None or not math.isfinite(seconds):
        return MISSING
    if seconds < 60:
        return f"{number(seconds)} s"
    minutes, rest_s = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest_s} s" if rest_s else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def percent(share: float | None, digits: int = 2) -> str:
    """A share as per cent."""
    if share is None or math.isnan(share):
        return MISSING
    return f"{number(100 * share, digits)} %"


def confidence(level: float) -> str:
    """A confidence level as exactly as it is worth saying: 95 %, 99.58 %."""
    return f"{100 * level:.2f}".rstrip("0").rstrip(".") + " %"


def listed(words: list[str]) -> str:
    """Words joined as in a sentence."""
    if len(words) < 2:
        return "".join(words)
    return ", ".join(words[:-1]) + " and " + words[-1]


def listed_first(words: list[str], most: int) -> str:
    """Return `listed` of the first `most` words, with how many more there are."""
    more = len(words) - most
    return listed([*words[:most], *([f"{more} more"] if more > 0 else [])])


FACTOR_TITLES = {
    "interval_s": "interval",
    "rate_hz": "rate",
    "payload_bytes": "payload",
    "payload_encoding": "encoding",
    "server_language": "the server's language",
}
FACTOR_UNITS = {"interval_s": "s", "rate_hz": "Hz", "payload_bytes": "B", "timeout_ms": "ms"}


def factor_title(factor: str) -> str:
    """A factor's name as a table's heading."""
    return FACTOR_TITLES.get(factor, factor.removeprefix("settings.").replace("_", " "))


OUTCOMES = {
    "different": "different",
    "equivalent": "equivalent",
    "within noise": "not larger than the A/A noise",
    "undecided": "no difference detected",
}
"""What a contrast's outcome is called, in the order in which a table has them."""


def edited_words(edited: tuple[str, ...]) -> str:
    """That answers are exploratory, since the study was changed; empty where it was not."""
    if not edited:
        return ""
    which = f"{listed(list(edited))} {'was' if len(edited) == 1 else 'were'}"
    return f"Exploratory: {which} edited after this campaign began."


def nothing_to_compare(factor: str, level: str) -> str:
    """Why a factor that is held at one level answers nothing."""
    return f"{factor_title(factor)} has one level here ({level}), so there is nothing to compare"


def plain(level: Any) -> str:
    """A level without its unit, as it stands in a table's cell: True is "yes", 0.05 is "0.05".

    It is for the eye; levels are told apart by `analysis.dataset.same_level`.
    """
    try:
        return _plain(level)
    except TypeError:  # a list cannot be remembered
        return str(level)


@lru_cache(maxsize=10_000, typed=True)
def _plain(level: Any) -> str:
    if isinstance(level, bool):
        return "yes" if level else "no"
    if isinstance(level, float):
        return f"{level:.{LEVEL_DIGITS}g}"
    return str(level)


def level_title(factor: str, level: Any, titles: Mapping[str, Mapping[str, str]]) -> str:
    """A level as a sentence names it: the study's own title, else the level with its unit."""
    named = titles.get(factor, {}).get(plain(level))
    if named:
        return named
    if level == "":
        return f"no {factor_title(factor)}"
    unit = FACTOR_UNITS.get(factor)
    if unit:
        return f"{plain(level)} {unit}"
    if isinstance(level, bool):
        return f"{factor_title(factor)} {'on' if level else 'off'}"
    if isinstance(level, (int, float)):
        noun = factor_title(factor)
        return f"{plain(level)} {noun.removesuffix('s') if level == 1 else noun}"
    return plain(level)

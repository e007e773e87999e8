"""Format numbers, durations and levels for readers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

NARROW_SPACE = "\u202f"
MISSING = "–"
NO_P = "< 10⁻³⁰⁰"
INFINITE = "∞ (no arrival)"
COLUMN = "column."
"""Prefix of the factors of an imported table whose names are factors of measured studies."""
LEVEL_DIGITS = 13
"""Number of significant digits that distinguish levels. Rounding errors are smaller."""


def number(value: float | None, digits: int = 3) -> str:
    """Format `value` with `digits` significant digits and separated thousands.

    Values from 10⁹ on and below 10⁻⁵ have an exponent.
    """
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
    # Rounding may carry into the next power of ten (9.996 → 10.0).
    magnitude = math.floor(math.log10(abs(rounded)))
    places = max(0, digits - 1 - magnitude)
    return f"{rounded:,.{places}f}".replace(",", NARROW_SPACE).replace("-", "−")


def p_equals(p: float, digits: int = 2) -> str:
    """Format a p value, for example "p = 0.012".

    A p value that is too small for a float is 0 and is formatted as an upper bound.
    """
    return f"p = {number(p, digits)}" if p > 0 else f"p {NO_P}"


def limits(estimate: float, low: float, high: float, digits: int = 3) -> tuple[str, str, str]:
    """Format an estimate and its limits with enough digits to distinguish them.

    The text distinguishes the limits from each other and from 1. For example, "1.00 (1.00 to 1.00):
    different" would be confusing for 1.0004 (1.0001 to 1.0007).
    """
    for trial_digits in range(digits, digits + 5):
        one_text, lower, upper = (number(value, trial_digits) for value in (1.0, low, high))
        same_limits = low < high and lower == upper
        if not same_limits and (low == 1 or lower != one_text) and (high == 1 or upper != one_text):
            return number(estimate, trial_digits), lower, upper
    return number(estimate, digits), number(low, digits), number(high, digits)


def superscript(value: int) -> str:
    """Format an integer in superscript digits, as an exponent."""
    return str(value).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def count(value: float | int | None) -> str:
    """Round a number to an integer and format it with separated thousands."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return MISSING
    return f"{round(value):,}".replace(",", NARROW_SPACE).replace("-", "−")


def mean_count(value: float | int | None, digits: int = 3) -> str:
    """Format a count or a mean of counts, for example "6", "12 345", or "6.33" for 19 in 3 runs."""
    if value is None or not math.isfinite(value):
        return number(value)
    is_whole = value == round(value) or abs(value) >= 10 ** (digits - 1)
    return count(value) if is_whole else number(value, digits)


def plural(amount: int, one: str, many: str | None = None) -> str:
    """Format `amount` with its noun, for example "1 run" or "60 runs"."""
    return f"{count(amount)} {one if amount == 1 else many or one + 's'}"


def duration(seconds: float | None) -> str:
    """Format seconds in their largest one or two units, for example "45 s" or "2 h 10 min"."""
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
    """Format a share as a percentage."""
    if share is None or math.isnan(share):
        return MISSING
    return f"{number(100 * share, digits)} %"


def factor(ratio: float) -> str:
    """Format a ratio. An infinite ratio, which results from an overflow, is formatted as "∞"."""
    return "∞" if math.isinf(ratio) else number(ratio)


def confidence(level: float) -> str:
    """Format a confidence level with at most two decimals, for example "95 %" or "99.58 %"."""
    return f"{100 * level:.2f}".rstrip("0").rstrip(".") + " %"


def listed(words: list[str]) -> str:
    """Join words with commas and a final "and", for example "a, b and c"."""
    if len(words) < 2:
        return "".join(words)
    return ", ".join(words[:-1]) + " and " + words[-1]


def listed_first(words: list[str], most: int) -> str:
    """Join the first `most` words as in a sentence, and add the number of further words."""
    more = len(words) - most
    return listed([*words[:most], *([f"{more} more"] if more > 0 else [])])


FACTOR_TITLES = {
    "interval_s": "interval",
    "rate_hz": "rate per sender",
    "payload_bytes": "payload",
    "payload_encoding": "encoding",
    "server_language": "the server's language",
    "server_cell": "the server's cell",
    "cpu_latency_us": "CPU wake-up latency limit",
    "cores": "CPU placement",
}
FACTOR_UNITS = {
    "interval_s": "s", "rate_hz": "Hz", "payload_bytes": "B", "timeout_ms": "ms",
    "cpu_latency_us": "µs",
}  # fmt: skip


COUNTED = ("clients", "nodes")
"""Factors whose level is a number of things. Their names are regular plurals. The last letter of
any other name, such as "qos" or "loss", may belong to its stem.
"""

NAMED = ("cores",)
"""Factors whose levels are words that mean nothing without the name, such as "same"."""


def factor_title(factor: str) -> str:
    """Return a factor's name as a table heading.

    A column of an imported table that is named like a factor of measured studies keeps its name.
    """
    if factor.startswith(COLUMN):
        return factor.removeprefix(COLUMN)
    name = factor.removeprefix("settings.").replace("outer_settings.", "outer ", 1)
    return FACTOR_TITLES.get(factor, name.replace("_", " "))


def step(factor: str) -> str:
    """Return the unit of a factor in "per …", for example "Hz", "node" or "unit of depth"."""
    if factor in COUNTED:
        return factor.removesuffix("s")
    return FACTOR_UNITS.get(factor) or f"unit of {factor_title(factor)}"


OUTCOMES = {
    "different": "different",
    "equivalent": "equivalent",
    "within noise": "not larger than the A/A noise",
    "undecided": "no difference detected",
    "depends": "no common answer: it depends on another factor",
}
"""Outcome of a contrast → its text, in the order of the tables."""

DELIVERED = {"calls": "calls/s", "messages": "messages/s", "both": "calls or messages/s"}
"""What the runs of a campaign delivered → the unit of its rate."""

PLACES = {
    "same_cpu": "shared a CPU",
    "siblings": "ran on hardware threads of one core",
    "shared_cache": "ran on different cores under one cache",
    "further": "ran on cores without a common cache",
}
"""How near the CPUs of two nodes are (`model/cores/topology.py`) → what the nodes did."""

PROPORTIONALITY = {
    "grows": "grows, but not proportionally",
    "falls": "falls",
    "not in proportion": "not proportional",
    "in proportion": "about proportional",
    "cannot tell": "cannot tell",
    "": "",
}
"""Conclusion from the exponent of a power law → its text; "" without an exponent."""


def edited_words(edited: tuple[str, ...]) -> str:
    """Return a sentence that edits make answers exploratory, or "" if there are no edits."""
    if not edited:
        return ""
    clause = f"{listed(list(edited))} {'was' if len(edited) == 1 else 'were'}"
    return f"Exploratory: {clause} edited after this campaign began."


def nothing_to_compare(factor: str, level: str) -> str:
    """Return the reason why a factor with a single level has no answer."""
    return f"{factor_title(factor)} has one level here ({level}), so there is nothing to compare"


def as_typed(level: Any) -> str:
    """Return a level as a user types it on the command line, where booleans are as in TOML."""
    return str(level).lower() if isinstance(level, bool) else str(level)


def plain(level: Any) -> str:
    """Format a level without its unit for a table cell. For example, True becomes "yes".

    The text is only for display. `analysis.dataset.same_level` compares levels.
    """
    try:
        return _plain(level)
    except TypeError:  # a list is not hashable, so it cannot be cached
        return str(level)


@lru_cache(maxsize=10_000, typed=True)
def _plain(level: Any) -> str:
    if isinstance(level, bool):
        return "yes" if level else "no"
    if isinstance(level, float):
        return f"{level:.{LEVEL_DIGITS}g}"
    return str(level)


def level_title(factor: str, level: Any, titles: Mapping[str, Mapping[str, str]]) -> str:
    """Return a level for a sentence as its title in the study, or as the level with its unit."""
    study_title = titles.get(factor, {}).get(plain(level))
    if study_title:
        return study_title
    title, factor = factor_title(factor), factor.removeprefix(COLUMN)
    if level == "":
        return f"{title} not set"
    unit = FACTOR_UNITS.get(factor)
    if unit:
        return f"{plain(level)} {unit}"
    if factor in NAMED:
        return f"{factor} {level}"
    if isinstance(level, bool):
        return f"{title} {'on' if level else 'off'}"
    if isinstance(level, (int, float)):
        if factor in COUNTED:
            return f"{plain(level)} {factor.removesuffix('s') if level == 1 else factor}"
        return f"{title} {plain(level)}"
    return plain(level)

"""Derive the unit and the better direction of figures that wattwire did not define from names."""

from __future__ import annotations

import re
from dataclasses import replace

from wattwire.model.metrics.metric import HIGHER, LOWER, PRINTED, Metric
from wattwire.model.metrics.registry import METRICS

_PRINTED_UNITS = {
    "ns": "ns", "us": "µs", "ms": "ms", "s": "s", "min": "min", "bytes": "B", "kb": "kB",
    "mb": "MB", "gb": "GB", "kib": "KiB", "mib": "MiB", "gib": "GiB", "percent": "%", "pct": "%",
    "hz": "Hz", "per_s": "1/s", "rps": "1/s", "w": "W", "mw": "mW", "j": "J", "mj": "mJ",
    "uj": "µJ", "celsius": "°C",
}  # fmt: skip
"""Ends of the names of printed figures, after an underscore, and their units."""


def is_printed(stem: str) -> bool:
    """Return whether a column with this stem contains a figure that a command printed."""
    metric = METRICS.get(stem)
    return metric is not None and metric.of == PRINTED


def printed(name: str) -> Metric | None:
    """Return the metric of a figure that a command prints; None if it has no valid name.

    The end of the name gives the unit, as in "p50_ms". A lower value is better, except for figures
    such as rates; see `direction_of`.
    """
    if not name.isidentifier():
        return None
    end = _printed_end(name)
    unit = _PRINTED_UNITS.get(end, "")
    title = name[: len(name) - len(end)].replace("_", " ").strip() if end else name
    direction = direction_of(name, unit) or METRICS["value"].direction
    return replace(METRICS["value"], unit=unit, title=title, direction=direction)


def _printed_end(name: str) -> str:
    """Return the end of a name, after an underscore, that names a unit; "" if there is none."""
    ends = [end for end in _PRINTED_UNITS if name.casefold().endswith(f"_{end}")]
    return max(ends, key=len, default="")


_LESS_UNITS = re.compile(
    r"[nuµμm]?s|secs?|seconds?|min|minutes?|h|hours?|[nuµμmk]?j|[mk]?wh|[nuµμmk]?w"
    r"|[kmg]?i?b|bytes?",
    re.IGNORECASE,
)
"""Units of times, energies, powers and sizes in memory, of which less is better."""
_RATES = re.compile(
    r"/\s?(ns|[uµμ]s|ms|s|sec|second|min|h)(?![a-z])"
    r"|(^|[\W_])per[\W_]*(ns|us|ms|s|sec|seconds?|min|minutes?|h|hours?)$"
    r"|(^|[\W_])([kmg]?hz|[rqtf]ps|iops|[kmg]?i?b(it)?ps)$|s(\^?-|⁻)[1¹]$",
    re.IGNORECASE,
)
"""Ends of names, and units, of rates."""
_LESS_WORDS = frozenset(
    "lat latency latencies time times runtime duration elapsed took rtt delay jitter memory mem "
    "rss pss heap cpu".split()
)
_HARM_WORDS = frozenset(
    "error errors lost loss losses drop drops dropped fail fails failed failure failures miss "
    "misses missed retry retries retransmits retransmissions timeouts faults switches interrupts "
    "energy power joules watts".split()
)
"""Words of quantities of which less is better, also as a rate."""
_MORE_WORDS = frozenset("throughput goodput bandwidth rps qps tps iops fps".split())
_AMBIGUOUS_WORDS = frozenset(
    "uptime lifetime life mtbf mttf until interval period free available idle received sent "
    "delivered transferred written saved".split()
)
"""Words of times and sizes of which more may be better."""


def direction_of(name: str, unit: str) -> str:
    """Return LOWER or HIGHER for a figure that wattwire did not define, by its name and unit.

    The result is "" if they do not tell what is better, as for a score.
    """
    words = set(re.split(r"[\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).casefold()))
    if words & _HARM_WORDS or unit.casefold().startswith(("j/", "w/")):
        return LOWER
    if words & _MORE_WORDS or _RATES.search(name) or _RATES.search(unit):
        return HIGHER
    if words & _AMBIGUOUS_WORDS:
        return ""
    known_unit = unit or _PRINTED_UNITS.get(_printed_end(name) or name.casefold(), "")
    is_percentile = any(re.fullmatch(r"p\d{2,}", word) for word in words)
    is_less = _LESS_UNITS.fullmatch(known_unit) or words & _LESS_WORDS or is_percentile
    return LOWER if is_less else ""

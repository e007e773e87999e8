"""Validity limits: the conditions of a valid run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wattwire.model.verdict import Reason, Verdict

VALIDITY = "validity"
"""Name of the study's table of validity limits."""


@dataclass(frozen=True)
class ValidityLimits:
    """Limits on evidence that is independent of the response. Shares refer to all cores.

    A limit of 1 or more on a share excludes no run.
    """

    look: bool = False
    """If true, no condition excludes a run, regardless of the limits. The page states this."""
    other_load_max: float = 0.25
    """Maximum load of other processes, with the scheduler's weights."""
    steal_max: float = 0.05
    """Maximum share of CPU time that the hypervisor stole."""
    temperature_max_celsius: float = 95.0
    free_disk_bytes_min: int = 200_000_000
    missed_ticks_max: float = 0.10
    stall_max_ms: float = 10.0
    """Longest permitted stall of the machine in the window."""
    link_late_max_ms: float = 2.0
    """Largest permitted lateness of the link emulator (99th percentile, minus stalls)."""
    clock_step_max_ms: float = 10.0
    """Largest permitted step of the wall clock during a run."""


OTHER_LOAD, STEAL = "other_load_share", "steal_share"
MISSED_TICKS = "missed_ticks_share"
"""Conditions that are shares. Other conditions have the unit of their limit. The share of missed
ticks is computed from the sampling of a run and is no metric.
"""
LINK_LATE = "link_late_p99_ms"
_SHARES = (
    (STEAL, "steal_max", "steal", "the host stole {:.1f} % of the CPU time"),
    (OTHER_LOAD, "other_load_max", "other_load", "other processes demanded {:.1f} % of the cores"),
    (MISSED_TICKS, "missed_ticks_max", "missed_ticks", "the sampler missed {:.1f} % of its ticks"),
)
_AMOUNTS = (
    (
        "temperature_celsius",
        "temperature_max_celsius",
        "temperature",
        "the machine reached a temperature of {:.0f} °C",
        "°C",
    ),
    ("stall_ms_max", "stall_max_ms", "stall", "the machine stalled for {:.0f} ms", "ms"),
    (
        LINK_LATE,
        "link_late_max_ms",
        "link_late",
        "the link emulator was {:.1f} ms late (99th percentile, minus stalls)",
        "ms",
    ),
    (
        "clock_step_ms",
        "clock_step_max_ms",
        "clock_step",
        "the clock was adjusted by {:.0f} ms",
        "ms",
    ),
)
SHARE_LIMITS = tuple(key for _, key, *_ in _SHARES)
"""Keys of limits on shares. 0.5 is 50 %, and 1 or more disables the limit."""
BUSY_CODES = frozenset(("steal", "other_load"))
"""Codes of the reasons that remain as long as other programs or machines are busy."""
CONDITION_CODES = frozenset(code for _, _, code, *_ in (*_SHARES, *_AMOUNTS))
"""Codes of the reasons for exclusion that derive from validity limits alone."""


def broken_limits(
    conditions: Mapping[str, float | None],
    resolution: Mapping[str, float],
    limits: ValidityLimits,
) -> list[Reason]:
    """Return a reason for each limit that a run's conditions exceed. A look has no limits.

    `resolution` is the maximum error of each share, caused by the steps of its counter. A share
    must exceed its limit by more than this error.
    """
    if limits.look:
        return []
    reasons = []
    for name, key, code, template in _SHARES:
        share, limit = conditions.get(name), float(getattr(limits, key))
        if share is None or limit >= 1 or share - resolution.get(name, 0.0) <= limit:
            continue
        text = f"{template.format(100 * share)}; allowed: at most {100 * limit:.1f} %"
        reasons.append(Reason(Verdict.INVALID, code, text))
    for name, key, code, template, unit in _AMOUNTS:
        amount, limit = conditions.get(name), float(getattr(limits, key))
        if amount is not None and abs(amount) > limit:
            text = f"{template.format(amount)}; allowed: at most {limit:g} {unit}"
            reasons.append(Reason(Verdict.INVALID, code, text))
    return reasons


def disabled_limits(limits: ValidityLimits) -> dict[str, float]:
    """Return the limits on shares that are 1 or more (key → limit). They exclude no run."""
    values = {key: float(getattr(limits, key)) for key in SHARE_LIMITS}
    return {key: limit for key, limit in values.items() if limit >= 1}


def missed_ticks_share(sampling: Mapping[str, Any]) -> float | None:
    """Return the share of the due ticks that the sampler missed, or None if no tick was due."""
    missed, due = sampling.get("missed", 0), due_ticks(sampling)
    return missed / due if due else None


def due_ticks(sampling: Mapping[str, Any]) -> int:
    """Return the number of ticks that were due: those that the sampler executed and missed."""
    return int(sampling.get("ticks", 0)) + int(sampling.get("missed", 0))

"""Store the cost of a cell's kit per round trip on this machine, in a file per build.

`wattwire check CELL --cost` measures the cost. Campaigns copy it, and their pages print it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from wattwire.rig import cache
from wattwire.rig.build_notes import noted, write_note


@dataclass(frozen=True)
class HarnessCost:
    """Median round trip of a cell minus the median of a bare client: mean and interval over pairs.

    `day` is the day of the measurement. `payload_bytes` is the payload of every call.
    """

    added_us: float
    added_us_low: float
    added_us_high: float
    bare_us: float
    pairs: int
    payload_bytes: int
    day: str


def harness_cost(build_key: str) -> HarnessCost | None:
    """Return the measured cost of this build on this host, or None if it was not measured."""
    try:
        document = noted(cache.HARNESS_COSTS, build_key)
        if document is None:
            return None
        cost = HarnessCost(**document)
        numbers = (cost.added_us, cost.added_us_low, cost.added_us_high, cost.bare_us)
        return cost if all(math.isfinite(number) for number in numbers) else None
    except TypeError:
        return None


def note_harness_cost(build_key: str, cost: HarnessCost) -> None:
    """Store the cost of a build. It replaces an earlier cost."""
    write_note(cache.HARNESS_COSTS, build_key, cost)

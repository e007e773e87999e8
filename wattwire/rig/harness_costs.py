"""Store the cost of a cell's kit per round trip on this machine, in a file per build.

`wattwire check CELL --cost` measures the cost. Campaigns copy it, and their pages print it.
"""

from __future__ import annotations

import json
import math
import os
import platform
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from wattwire.rig import cache


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
        document = json.loads(_path(build_key).read_text(encoding="utf-8"))
        if document.pop("host") != platform.node():  # hosts may share a cache
            return None
        cost = HarnessCost(**document)
        numbers = (cost.added_us, cost.added_us_low, cost.added_us_high, cost.bare_us)
        return cost if all(math.isfinite(number) for number in numbers) else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def note_harness_cost(build_key: str, cost: HarnessCost) -> None:
    """Store the cost of a build. It replaces an earlier cost."""
    path = _path(build_key)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        json.dump({"host": platform.node(), **asdict(cost)}, file)
    os.replace(file.name, path)


def _path(build_key: str) -> Path:
    return cache.folder() / cache.HARNESS_COSTS / f"{build_key}.json"

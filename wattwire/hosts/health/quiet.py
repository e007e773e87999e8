"""Wait before a run until no other load is on its machines."""

from __future__ import annotations

import time
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from wattwire.model.validity import OTHER_LOAD, STEAL, ValidityLimits, broken_limits
from wattwire.rig import AgentClient, host

LOAD_SPAN_S = 0.1


def wait_until_quiet(
    agents: Collection[AgentClient], limits: ValidityLimits, wait_s: float
) -> dict[str, Any]:
    """Wait until all machines are quiet, at most `wait_s`, and return the worst conditions.

    `agents` has an agent per machine. A machine that remains busy is not an error.
    """
    began_s = time.monotonic()
    while True:
        with ThreadPoolExecutor(len(agents)) as threads:
            loads = list(threads.map(lambda agent: host.load_over(agent, LOAD_SPAN_S), agents))
        conditions = {
            OTHER_LOAD: min(1.0, max(load.other_demand for load in loads)),
            STEAL: max(load.steal for load in loads),
        }
        steps = {STEAL: max(load.steal_step for load in loads)}
        waited_s = time.monotonic() - began_s
        quiet = not broken_limits(conditions, steps, limits)
        if quiet or waited_s >= wait_s:
            return {
                **{name: round(share, 4) for name, share in conditions.items()},
                "waited_s": round(waited_s, 2),
                "quiet": quiet,
            }

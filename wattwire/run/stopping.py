"""Apply the stopping rule of a campaign and record the result in the journal."""

from __future__ import annotations

from typing import Any

from wattwire.design import PlannedRun
from wattwire.model.study import Plan
from wattwire.store import Campaign

KEY = "stopping"


class Stopping:
    """State of the stopping rule, which determines the runs that are unnecessary.

    `analysis/topics/stopping` defines the rule. The rule is applied once per block. Its result is
    stored in the journal, so that a stopped campaign does not continue when it is resumed.
    """

    def __init__(self, plan: Plan, campaign: Campaign) -> None:
        self._plan = plan
        self._campaign = campaign
        self._result: dict[str, Any] = campaign.journal.get(KEY) or {}

    def spares(self, planned: PlannedRun) -> bool:
        """Return whether the run is unnecessary because its contrasts are already precise enough.

        Blocks that were added to the plan for another reason are always run.
        """
        if planned.block > self._plan.blocks or not self._result:
            return False
        if self._result["reached"] and planned.block > int(self._result["after"]):
            return True
        finished: dict[str, int] = self._result["finished"]
        level = str(planned.treatment.get(self._plan.primary))
        return not planned.control and planned.block > finished.get(level, planned.block)

    def wants(self, block: int) -> bool:
        """Return whether the rule must be applied after `block`."""
        if self._result.get("reached"):
            return False
        first = max(int(self._result.get("after", 0)) + 1, self._plan.blocks_min)
        return bool(self._plan.stop_width) and first <= block <= self._plan.blocks

    def look(self, block: int) -> str | None:
        """Apply the rule after `block` and store its result.

        Return a message if the campaign stops, else None.
        """
        from wattwire.analysis.topics.stopping.numbers import judge  # noqa: PLC0415 - slow

        result = judge(self._campaign)
        if result is None:
            return None
        finished_before = self._result.get("finished", {})
        finished = {level: finished_before.get(level, block) for level in result["finished"]}
        self._result = {**result, "after": block, "finished": finished}
        self._campaign.journal.set(KEY, self._result)
        if not result["reached"] or block >= self._plan.blocks:
            return None
        return (
            f"stopped by width after {block} of {self._plan.blocks} blocks: the widest primary "
            f"interval is ± {100 * result['width']:.2g} % (target: ± "
            f"{100 * result['target']:.2g} %)"
        )

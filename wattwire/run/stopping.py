"""The rule by which a campaign ends before its last block, and the journal's memory of it."""

from __future__ import annotations

from typing import Any

from wattwire.design import PlannedRun
from wattwire.model.study import Plan
from wattwire.store import Campaign

KEY = "stopping"


class Stopping:
    """Whether blocks are still wanted. A look is taken once a block and kept in the journal,
    so that a campaign which stopped does not go on when it is resumed."""

    def __init__(self, plan: Plan, campaign: Campaign) -> None:
        self._plan = plan
        self._campaign = campaign
        self._found: dict[str, Any] = campaign.journal.get(KEY) or {}

    def spares(self, planned: PlannedRun) -> bool:
        """Whether nothing asks for this run any more: all contrasts are known, or its level's is.

        Blocks beyond the plan's were added for another reason and are run all the same.
        """
        if planned.block > self._plan.blocks or not self._found:
            return False
        if self._found["reached"] and planned.block > int(self._found["after"]):
            return True
        finished: dict[str, int] = self._found["finished"]
        level = str(planned.treatment.get(self._plan.primary))
        return not planned.control and planned.block > finished.get(level, planned.block)

    def wants(self, block: int) -> bool:
        """Whether a look is due now that `block` is done."""
        if self._found.get("reached"):
            return False
        first = max(int(self._found.get("after", 0)) + 1, self._plan.blocks_min)
        return bool(self._plan.stop_width) and first <= block <= self._plan.blocks

    def look(self, block: int) -> str | None:
        """Look after `block`, remember what was seen, and say so where the campaign stops."""
        from wattwire.analysis import stopping  # noqa: PLC0415 - statistics are slow to import

        found = stopping.judge(self._campaign)
        if found is None:
            return None
        before = self._found.get("finished", {})
        finished = {level: before.get(level, block) for level in found["finished"]}
        self._found = {**found, "after": block, "finished": finished}
        self._campaign.journal.set(KEY, self._found)
        if not found["reached"] or block >= self._plan.blocks:
            return None
        return (
            f"stopped by width after {block} of {self._plan.blocks} blocks: the widest primary "
            f"interval reaches ± {100 * found['width']:.2g} %, ± {100 * found['target']:.2g} % "
            "was the aim"
        )

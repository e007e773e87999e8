"""Turn a study into an ordered plan: treatments, blocks and the seeded order."""

from wattwire.design.lint import PROCESSES_MANY, cautions
from wattwire.design.plan import CONTROLS, UNSAMPLED, PlannedRun, make_plan, more_blocks
from wattwire.design.settling import piloted
from wattwire.design.treatments import expand

__all__ = [
    "CONTROLS", "PROCESSES_MANY", "UNSAMPLED", "PlannedRun", "cautions", "expand", "make_plan",
    "more_blocks", "piloted",
]  # fmt: skip

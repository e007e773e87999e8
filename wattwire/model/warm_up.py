"""Define the warm-up of closed loops: the number of discarded first calls of each client.

All treatments of a campaign share one number, from settling runs before the first block.
"""

from __future__ import annotations

AUTO = -1
"""`plan.warmup_calls` where settling runs determine the number; "auto" in a study."""
AUTO_WORD = "auto"

SETTLING = "settling"
"""Value of `control` for a settling run, which no answer uses."""
SETTLING_RUNS = 3
"""Number of settling runs per cell. A single run may give a chance result."""
SETTLING_CALLS = 8000
SETTLING_S = 10.0
"""A settling run ends after SETTLING_CALLS calls of each client, or after SETTLING_S seconds."""

STEPS = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
"""Possible lengths of a warm-up, in calls. Coarse steps make the result repeatable. The shortest is
not 0, because the first calls of a process rarely resemble later calls.
"""

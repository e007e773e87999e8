"""Determine the number of discarded first calls of each client in closed loops.

All treatments of a campaign share one number, which settling runs before the first block determine.
"""

from __future__ import annotations

AUTO = -1
"""Value of `plan.warmup_calls` if settling runs determine the number. In a study, it is "auto"."""
AUTO_WORD = "auto"

SETTLING = "settling"
"""Value of `control` for settling runs, which no answer uses."""
SETTLING_RUNS = 3
"""Number of settling runs per cell. The result of a single run may be due to chance."""
SETTLING_CALLS = 8000
SETTLING_S = 10.0
"""Maximum duration of a settling run, which otherwise ends after SETTLING_CALLS calls per client.
"""

STEPS = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
"""Possible lengths of a warm-up, in calls. Coarse steps make the result repeatable. The shortest is
not 0, because the first calls of a process rarely resemble later calls.
"""

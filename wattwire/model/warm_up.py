"""The warm-up of closed loops: how many calls each client makes before those that count.

It is one number for all treatments of a campaign, from settling runs before its first block.
"""

from __future__ import annotations

AUTO = -1
"""`plan.warmup_calls` where settling runs are to find the number; "auto" in a study."""
AUTO_WORD = "auto"

SETTLING = "settling"
"""What `control` says of a settling run, of which no answer is taken."""
SETTLING_RUNS = 3
"""Settling runs of each cell: what one of them shows may be chance."""
SETTLING_CALLS = 8000
SETTLING_S = 10.0
"""A settling run ends after so many calls of each client, or so many seconds."""

STEPS = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
"""The numbers of calls that a warm-up may have: coarse, so that a repeat finds the same one. None
is shorter than the first: the first calls of a process are hardly ever like the others."""

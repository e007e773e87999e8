"""Feedback without a sequence is assigned to the goal that the cell names."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pairs import counters, run_pair

FEEDBACK, RESULT = 4, 5


@pytest.mark.parametrize(
    "changes",
    [{"payload__bytes": 0}, {"payload__bytes": 3}, {"payload__literal": "Hello"}],
    ids=["empty", "short", "literal"],
)
def test_each_goal_has_its_own_feedback(changes: dict[str, Any], tmp_path: Path) -> None:
    outcome = run_pair(
        "loopback", ("python", "python"), "action", tmp_path, action__feedback=2, **changes
    )
    client = outcome.records[1]
    goals = counters(client, RESULT)
    assert goals
    assert Counter(counters(client, FEEDBACK)) == dict.fromkeys(goals, 2)

"""Scenarios for velocity commands: whole runs, and payloads that none can carry (C-44)."""

from __future__ import annotations

from typing import Any

from .cell import Problem, Skipped
from .roles import PATTERNS
from .scenario import ALWAYS, Bench, Scenario
from .spec import open_loop
from .usage import refusal

VELOCITY = "twist_stamped"
VELOCITY_BYTES = 64
OTHER_BYTES = (0, 16, VELOCITY_BYTES - 1, VELOCITY_BYTES + 1)


def _velocity_keys(bench: Bench) -> dict[str, Any]:
    """Return the spec keys of velocity commands. Raise Skipped if the cell has none."""
    setting = bench.cell.message_setting
    if not setting:
        raise Skipped("the middleware has no setting with the purpose message")
    if VELOCITY not in bench.cell.allowed.get(setting, ()):
        raise Skipped("the manifest excludes velocity commands for this cell")
    if bench.cell.velocity_absent:
        raise Skipped(bench.cell.velocity_absent)
    return {
        f"settings.{setting}": VELOCITY, "payload.encoding": "bytes",
        "payload.bytes": VELOCITY_BYTES, "payload.literal": "",
    }  # fmt: skip


def carried(pattern: str) -> Scenario:
    """Check a whole run of velocity commands."""

    def check(bench: Bench) -> list[Problem]:
        changes = {**_velocity_keys(bench), **open_loop(20, 50)}
        return [
            Problem("C-44" if p.clause == "C-19" else p.clause, p.text)
            for p in bench.whole_run(pattern, changes)
        ]

    return Scenario(f"velocity[{pattern}]", ("C-44", *ALWAYS), check)


def refused(pattern: str) -> Scenario:
    """Check that a cell with velocity commands refuses specs that none can carry."""

    def check(bench: Bench) -> list[Problem]:
        keys = _velocity_keys(bench)
        problems: list[Problem] = []
        cases: list[dict[str, Any]] = [{"payload.bytes": size} for size in OTHER_BYTES]
        if not PATTERNS[pattern].is_one_way:
            cases = [{}]  # refused because of the pattern
        for changes in cases:
            spec = {**bench.lone_spec(pattern, PATTERNS[pattern].sender), **keys, **changes}
            case = f"a velocity command with {pattern}, {changes}"
            problems += refusal(bench.single(spec), 3, "C-44", case)[0]
        return problems

    return Scenario(f"velocity-refused[{pattern}]", ("C-44",), check)


def scenarios(patterns: list[str]) -> list[Scenario]:
    one_way = [pattern for pattern in patterns if PATTERNS[pattern].is_one_way]
    return [*(carried(pattern) for pattern in one_way), *(refused(name) for name in patterns)]

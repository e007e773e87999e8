"""Scenario for encrypting replies (C-40)."""

from __future__ import annotations

from typing import Any

from ..cell import Problem
from ..roles import PATTERNS, calling
from ..scenario import ALWAYS, Bench, Scenario
from ..spec import open_loop
from ..usage import refusal

BLOCK_SIZES = (40, 56, 200, 65_528)
PART_BLOCKS = (0, 8, 39, 41, 48, 64)


def encrypting(bench: Bench) -> list[Problem]:
    """Check encrypting replies of several sizes, and specs that no encrypting reply can meet."""
    bench.need("reply.encrypt", "encoding.bytes")
    problems: list[Problem] = []
    for size in BLOCK_SIZES:
        if size > (bench.cell.bytes_max("bytes") or size):
            continue
        for verify in ("header", "full"):
            changes = {"reply": "encrypt", "payload.bytes": size, "verify": verify}
            run_problems = bench.whole_run("service", {**changes, **open_loop(6, 20)})
            # The audit reports corrupt replies by C-21; C-40 defines these replies.
            problems += [
                Problem("C-40" if p.clause == "C-21" else p.clause, f"{size} bytes, {verify}: {p}")
                for p in run_problems
            ]
    cases: list[tuple[str, dict[str, Any]]] = [
        ("service", {"payload__bytes": size}) for size in PART_BLOCKS
    ]
    cases.append(("service", {"payload__bytes": 72, "payload__literal": "Hello World"}))
    if "encoding.text" in bench.cell.capabilities:
        cases.append(("service", {"payload__bytes": 72, "payload__encoding": "text"}))
    others = [name for name in calling(bench.cell.patterns) if name != "service"]
    cases += [(name, {"payload__bytes": 72}) for name in others]
    for pattern, changes in cases:
        spec = bench.lone_spec(pattern, PATTERNS[pattern].sender, reply="encrypt", **changes)
        case = f"an encrypting reply with {pattern}, {changes}"
        problems += refusal(bench.single(spec), 3, "C-40", case)[0]
    return problems


def scenarios(patterns: list[str]) -> list[Scenario]:
    if "service" not in patterns:
        return []
    return [Scenario("encrypting", ("C-40", *ALWAYS), encrypting)]

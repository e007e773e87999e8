"""Scenarios for payloads, replies, strangers and pairs of languages (C-18 to C-23)."""

from __future__ import annotations

from typing import Any

from .audit import Expect, some
from .audit_one_way import is_delivered
from .audit_peers import audit, closing_problems, node_runs
from .cell import CellUnderTest, Problem, Skipped
from .group import Member, pair
from .payload import SIZE_CLAUSES
from .roles import PATTERNS, calling
from .samples import CORRUPT
from .scenario import ALWAYS, Bench, Scenario
from .spec import (
    ENCODINGS,
    RECEIVER_NODE,
    SEED,
    SENDER_NODE,
    closed_loop,
    encodings_of,
    gentle,
    open_loop,
    stranger_pace,
)
from .usage import levels_of, refusal

GOLDEN_SIZES = (0, 1, 7, 8, 15, 16, 64, 65_536)
RECORD_SIZES = (96, 111, 128, 1024, 16_384)
CLOUD_SIZES = (16, 32, 1024, 65_536)
FEW_SIZES = {
    "pingpong": ((64,), (128,), ()),
    "action": ((0, 7, 64), (96, 128), ()),
    "pipeline": ((0, 7, 16, 65_536), (96, 1024), (16, 65_536)),
}
"""The sizes of payloads, records and point clouds for patterns that use few: pingpong uses the
service's code (C-28), actions are slow, and three nodes of a pipeline check each record."""
PAIR_SIZES = {
    "bytes": (8, 64, 1000), "text": (8, 64, 1000), "record": (96, 1000), "pointcloud": (16, 1024),
}  # fmt: skip
PART_POINTS = (0, 8, 24, 65_537)


def sizes(pattern: str, encoding: str, sizes_bytes: tuple[int, ...]) -> Scenario:
    def check(bench: Bench) -> list[Problem]:
        bench.need(f"encoding.{encoding}")
        problems: list[Problem] = []
        for size in sizes_bytes:
            if (
                not bench.cell.bytes_min(encoding)
                <= size
                <= (bench.cell.bytes_max(encoding) or size)
            ):
                continue
            changes: dict[str, Any] = {"payload.bytes": size, "payload.encoding": encoding}
            if PATTERNS[pattern].is_one_way:
                changes |= gentle(pattern, 12, 10)
            elif "loop.closed" not in bench.cell.capabilities:
                changes |= open_loop(12, 10)
            else:
                changes |= closed_loop(12)
            run_problems = bench.whole_run(pattern, changes)
            problems += [Problem(p.clause, f"{size} {encoding}: {p.text}") for p in run_problems]
        return problems

    clauses = (SIZE_CLAUSES[encoding], "C-21", *ALWAYS)
    return Scenario(f"sizes[{pattern} {encoding}]", clauses, check)


def literal(pattern: str) -> Scenario:
    def check(bench: Bench) -> list[Problem]:
        bench.need("literal")
        return bench.whole_run(pattern, {"payload.literal": "Hello World", "payload.bytes": 11})

    return Scenario(f"literal[{pattern}]", ("C-22", *ALWAYS), check)


def reply(pattern: str, kind: str, record: bool = False) -> Scenario:
    def check(bench: Bench) -> list[Problem]:
        bench.need(f"reply.{kind}", *(["encoding.record"] if record else []))
        problems = []
        for size in (128,) if record else (3, 64):
            if not record and size < bench.cell.payload_bytes_min:
                continue
            changes: dict[str, Any] = {"reply": kind, "payload.bytes": size}
            if record:
                changes["payload.encoding"] = "record"
            changes["reply.literal"] = "granted" if kind == "literal" else ""
            problems += bench.whole_run(pattern, changes)
        return problems

    name = f"reply-{kind}[{pattern}{' record' if record else ''}]"
    clauses = ("C-23", "C-32") if record else ("C-23",)
    return Scenario(name, (*clauses, *ALWAYS), check)


def two_runs(pattern: str) -> Scenario:
    """Check two simultaneous runs that differ only in token and payload seed."""

    def check(bench: Bench) -> list[Problem]:
        bench.need("loop.open")
        changes = gentle(pattern, 40, 10)
        other_changes = {**changes, "payload.seed": SEED + 1}
        with (
            bench.group(pattern, pair(bench.cell, bench.cell, pattern, changes)) as first,
            bench.group(pattern, pair(bench.cell, bench.cell, pattern, other_changes)) as second,
        ):
            for group in (first, second):
                group.start()
            for group in (first, second):
                group.go()
            for group in (first, second):
                group.wait_sent()
                group.finish()
            return [*audit(first), *audit(second)]

    return Scenario(f"two-runs[{pattern}]", ("C-18", *ALWAYS), check)


def strangers(bench: Bench) -> list[Problem]:
    """Check a subscriber that receives messages of other runs, and messages of a wrong length."""
    cell, changes = bench.cell, stranger_pace(0)
    wrong_seed, unknown, wrong_length = SENDER_NODE + 1, 0x0909, SENDER_NODE + 2
    # peers.count includes the strangers: their messages before a match may be lost.
    members = [
        Member(cell, "publisher", changes, node=SENDER_NODE),
        Member(cell, "publisher", stranger_pace(1, payload__seed=SEED + 1), wrong_seed, True),
        Member(cell, "publisher", stranger_pace(2), unknown, True),
        Member(cell, "publisher", stranger_pace(3, payload__bytes=72), wrong_length, True),
        Member(cell, "subscriber", {
            **changes, "peers.nodes": [SENDER_NODE, wrong_seed, wrong_length], "peers.count": 4,
        }, node=RECEIVER_NODE),
    ]  # fmt: skip
    with bench.group("topic", members) as group:
        group.run()
        problems = audit(group, Expect(foreign=True, corrupt=True))
        receiver = next(run for run in node_runs(group) if not run.sends)
        done = receiver.node.fields("DONE")
        sent = {node.spec["node"]: node.fields("DONE").get("sent", 0) for node in group.senders}
    foreign, corrupt = sent[wrong_seed] + sent[unknown], sent[wrong_length]
    recorded = [r for r in receiver.records if r.node in (wrong_seed, unknown)]
    if recorded:
        text = f"recorded foreign messages: {some([tuple(r) for r in recorded])}"
        problems.append(receiver.problem("C-18", text))
    if not is_delivered(receiver, done.get("foreign", -1), foreign):
        text = f"DONE reports foreign {done.get('foreign')}; strangers sent {foreign}"
        problems.append(receiver.problem("C-21", text))
    arrived = [tuple(r) for r in receiver.records if r.node == wrong_length]
    unflagged = [fields for fields in arrived if not fields[-1] & CORRUPT]
    is_complete = is_delivered(receiver, len(arrived), corrupt)
    if not is_complete or done.get("corrupt") != len(arrived) or unflagged:
        text = f"{corrupt} messages had 72 bytes instead of 64; DONE reports corrupt "
        text += f"{done.get('corrupt')}, {len(arrived)} are recorded, and records without the "
        text += f"flag are {some(unflagged)}"
        problems.append(receiver.problem("C-21", text))
    return problems


def pair_run(sender: CellUnderTest, receiver: CellUnderTest, pattern: str) -> Scenario:
    """Check two languages of one middleware in all shared encodings, including all fill bytes."""

    def check(bench: Bench) -> list[Problem]:
        problems: list[Problem] = []
        runs = 0
        for encoding in encodings_of(pattern):
            if any(f"encoding.{encoding}" not in cell.capabilities for cell in (sender, receiver)):
                continue
            for size in PAIR_SIZES[encoding]:
                if size < max(cell.bytes_min(encoding) for cell in (sender, receiver)):
                    continue
                runs += 1
                shared = {"payload.bytes": size, "payload.encoding": encoding}
                run_problems = paired_run(bench, sender, receiver, pattern, shared)
                problems += [
                    Problem(p.clause, f"{size} {encoding}: {p.text}") for p in run_problems
                ]
        encrypts = all("reply.encrypt" in cell.capabilities for cell in (sender, receiver))
        if pattern == "service" and encrypts:
            runs += 1
            shared = {"payload.bytes": 200, "reply": "encrypt"}
            run_problems = paired_run(bench, sender, receiver, pattern, shared)
            problems += [Problem(p.clause, f"200 encrypted: {p.text}") for p in run_problems]
        if not runs:
            raise Skipped("the two cells have no common encoding")
        return problems

    names = f"{sender.middleware}: {sender.folder} -> {receiver.folder}"
    clauses = (*SIZE_CLAUSES.values(), "C-21", "C-40", *ALWAYS)
    return Scenario(f"pair[{names}] {pattern}", clauses, check, pair=f"pair[{names}]")


def paired_run(
    bench: Bench,
    sender: CellUnderTest,
    receiver: CellUnderTest,
    pattern: str,
    shared: dict[str, Any],
) -> list[Problem]:
    """Run a pair of cells with these changes to both specs, and audit the run."""
    changes = {**common_settings(sender, receiver), **shared, **gentle(pattern, 12, 10)}
    with bench.group(pattern, pair(sender, receiver, pattern, changes)) as group:
        group.run()
        return audit(group) + closing_problems(group)


def common_settings(cell: CellUnderTest, other: CellUnderTest) -> dict[str, Any]:
    """Return the spec keys of the settings that differ, with a value that both cells support.

    Only a cell that does not support a default has another value.
    """
    return {
        f"settings.{name}": cell.settings[name] if cell.excluded.get(name) == value else value
        for name, value in other.settings.items()
        if value != cell.settings[name]
    }


def pair_scenarios(cell: CellUnderTest, others: list[CellUnderTest]) -> list[Scenario]:
    pair_runs = []
    for other_cell in others:
        differs = (other_cell.middleware, other_cell.wire_name) != (cell.middleware, cell.wire_name)
        if differs or other_cell.name == cell.name:
            continue
        for pattern in PATTERNS:
            if pattern in cell.patterns and pattern in other_cell.patterns:
                pair_runs += [
                    pair_run(cell, other_cell, pattern),
                    pair_run(other_cell, cell, pattern),
                ]
    return pair_runs


def levels(bench: Bench) -> list[Problem]:
    """Check the levels of settings that support only some specs, with a few of these specs."""
    problems: list[Problem] = []
    limited = list(levels_of(bench.cell))
    if not limited:
        raise Skipped("every level of every setting supports every spec")
    for setting, level, supported in limited:
        values = {key: kept[0] for key, kept in supported.items() if key != "pattern"}
        for pattern in supported.get("pattern", bench.cell.patterns):
            if pattern not in bench.cell.patterns:
                continue
            lengths = list(supported.get("payload.bytes", (64,)))
            few = {lengths[0], lengths[len(lengths) // 2], lengths[-1]}
            for size in sorted(few) if pattern == "topic" else lengths[:1]:
                changes = {**values, **open_loop(6, 100), "payload.bytes": size}
                changes[f"settings.{setting}"] = level
                case = f"{pattern}, {size} bytes, settings.{setting} = {level}"
                problems += [
                    Problem(p.clause, f"{case}: {p.text}")
                    for p in bench.whole_run(pattern, changes)
                ]
    return problems


def part_points(bench: Bench) -> list[Problem]:
    """Check that a cell with point clouds refuses specs that no point cloud can meet."""
    bench.need("encoding.pointcloud")
    problems: list[Problem] = []
    for pattern in bench.cell.patterns:
        cases: list[dict[str, Any]] = [{"payload__bytes": 64}]  # refused because of the pattern
        if PATTERNS[pattern].is_one_way:
            cases = [{"payload__bytes": size} for size in PART_POINTS]
            cases.append({"payload__bytes": 16, "payload__literal": "Hello World"})
        for changes in cases:
            sender = PATTERNS[pattern].sender
            spec = bench.lone_spec(pattern, sender, payload__encoding="pointcloud", **changes)
            case = f"a point cloud with {pattern}, {changes}"
            problems += refusal(bench.single(spec), 3, "C-39", case)[0]
    return problems


def _sizes_of(pattern: str, encoding: str) -> tuple[int, ...]:
    all_sizes = (GOLDEN_SIZES, RECORD_SIZES, CLOUD_SIZES)
    payloads, records, clouds = FEW_SIZES.get(pattern, all_sizes)
    return {"record": records, "pointcloud": clouds}.get(encoding, payloads)


def scenarios(patterns: list[str]) -> list[Scenario]:
    all_scenarios = []
    for encoding in ENCODINGS:
        for pattern in patterns:
            if encoding in encodings_of(pattern):
                all_scenarios.append(sizes(pattern, encoding, _sizes_of(pattern, encoding)))
    all_scenarios.append(Scenario("part-points", ("C-39",), part_points))
    all_scenarios.append(Scenario("levels", ("C-03", "C-21", *ALWAYS), levels))
    all_scenarios += [literal(pattern) for pattern in patterns]
    for kind in ("echo", "ack", "literal"):
        for pattern in calling(patterns):
            if pattern != "pingpong":
                all_scenarios += [reply(pattern, kind), reply(pattern, kind, record=True)]
    all_scenarios += [two_runs(pattern) for pattern in patterns if pattern != "pingpong"]
    if "topic" in patterns:
        all_scenarios.append(Scenario("strangers", ("C-18", "C-21"), strangers))
    return all_scenarios

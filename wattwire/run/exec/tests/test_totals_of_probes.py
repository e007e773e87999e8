"""Which costs the totals of a run without nodes add, if a probe watches it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import polars as pl

from wattwire.model.deployment import COMMAND, PROBE, Request, Target
from wattwire.run.exec.process_rows import CommandResults
from wattwire.run.results.convert import QUANTITY_SCHEMA
from wattwire.run.results.resources import CPU_TIME, Readings

SECOND_NS = 1_000_000_000
KIB = 1024
CPU_S = {COMMAND: 0.25, "attached0": 0.5, PROBE: 0.125}
MEMORY_KIB = {COMMAND: 1000, "attached0": 4000, PROBE: 500}


def responses(request: Request) -> dict[str, Any]:
    """Return the responses of a window of 1 s with 100 messages."""
    rows = [
        ("cpu", "process", subject, CPU_TIME, "us", at_s * SECOND_NS, 1e9 * cpu_s * at_s)
        for subject, cpu_s in CPU_S.items() for at_s in (0, 1)
    ] + [
        ("memory", "process", subject, "rss", "B", SECOND_NS // 2, float(KIB * kib))
        for subject, kib in MEMORY_KIB.items()
    ]  # fmt: skip
    names = ("meter", "scope", "subject", "quantity", "unit", "t_ns", "value")
    known = [{name: value for name, value in zip(names, row, strict=True)} for row in rows]
    results = CommandResults.__new__(CommandResults)
    known = [{**reading, "kind": "measured"} for reading in known]
    results.quantities = pl.DataFrame(known, schema=QUANTITY_SCHEMA)
    results.readings = {"local": Readings(results.quantities)}
    results.attempt = SimpleNamespace(  # type: ignore[assignment]
        number=1,
        planned=SimpleNamespace(treatment=None),
        study=SimpleNamespace(request_of=lambda _treatment: request),
    )
    tables = {name: {"members": []} for name in request.labels}
    record = SimpleNamespace(
        name="local", after=tables, before={}, exit=None, messages=100.0, values={}, totals=None,
        topics=None,
        window={"start_ns": 0, "end_ns": SECOND_NS}, span=(0, SECOND_NS), ended_by="time",
        cost_span=(0, SECOND_NS), baselines={}, sampling={},
    )  # fmt: skip
    results.record = record  # type: ignore[assignment]
    return results._responses({})  # noqa: SLF001


def test_a_probe_is_no_part_of_the_processes_that_it_watches() -> None:
    target = Target("pid:7", pid=7)
    watched = responses(Request(("x",), (target,), probe="mw/probe"))
    assert watched["cpu_s"] == CPU_S["attached0"] + CPU_S[COMMAND]
    assert watched["cpu_share.probe"] == CPU_S[PROBE]
    assert watched["memory_kib_total"] == MEMORY_KIB["attached0"] + MEMORY_KIB[COMMAND]
    assert watched["memory_peak_kib"] == MEMORY_KIB["attached0"] + MEMORY_KIB[COMMAND]


def test_the_costs_of_a_probe_alone_and_of_a_command_are_its_own() -> None:
    probe = responses(Request(probe="mw/probe"))
    assert probe["cpu_s"] == CPU_S[PROBE] and probe["cpu_us_per_message"] == 1250
    command = responses(Request(("x",), (Target("pid:7", pid=7),)))
    assert command["cpu_s"] == CPU_S[COMMAND] + CPU_S["attached0"]
    assert command["cpu_us_per_message"] == 7500

"""Verdicts: evidence for or against a run that does not depend on what it measured."""

from __future__ import annotations

import time
from typing import Any

from wattwire.model.validity import ValidityLimits
from wattwire.model.verdict import Outcome, Reason, Verdict
from wattwire.rig import AgentClient, host
from wattwire.run.costs import CPU_TIME, Readings
from wattwire.run.one_run import RunRecord
from wattwire.run.specs import SECOND_NS

LOAD_SPAN_S = 0.1
SUSPEND_NS = 10_000_000


def wait_until_quiet(agent: AgentClient, limits: ValidityLimits, wait_s: float) -> dict[str, Any]:
    """Wait, bounded, until the machine is quiet; returns what was seen. A breach is not fatal."""
    began = time.monotonic()
    while True:
        busy, steal = _load_over(agent, LOAD_SPAN_S)
        waited_s = time.monotonic() - began
        quiet = busy <= limits.other_load_max and steal <= limits.steal_max
        if quiet or waited_s >= wait_s:
            return {
                "other_load_share": round(busy, 4),
                "steal_share": round(steal, 4),
                "waited_s": round(waited_s, 2),
                "quiet": quiet,
            }


def _load_over(agent: AgentClient, seconds: float) -> tuple[float, float]:
    """Busy and steal share of all CPUs of the agent's host over the next `seconds`."""
    before = agent.request("load")
    time.sleep(seconds)
    after = agent.request("load")
    whole = max(1, after["total_ns"] - before["total_ns"])
    return (
        (after["busy_ns"] - before["busy_ns"]) / whole,
        (after["steal_ns"] - before["steal_ns"]) / whole,
    )


def judge(
    record: RunRecord, readings: Readings | None, limits: ValidityLimits, done: list[dict[str, Any]]
) -> tuple[list[Reason], dict[str, float | None]]:
    """All reasons against a run and the figures they rest on, as responses of the summary."""
    reasons = list(record.reasons)
    reasons += _judge_counts(done)
    reasons += _judge_suspend(record)
    figures: dict[str, float | None] = {}
    if readings is not None and record.window.get("end_ns"):
        figures = machine_figures(readings, record)
        reasons += _judge_machine(figures, limits)
    ticks = record.sampling.get("missed", 0) / max(1, record.sampling.get("ticks", 0) or 1)
    if record.sampling.get("ticks") and ticks > limits.missed_ticks_max:
        reasons.append(
            Reason(
                Verdict.UNKNOWN,
                "missed_ticks",
                f"the sampler missed {100 * ticks:.0f} % of its ticks",
            )
        )
    return reasons, figures


def _judge_counts(done: list[dict[str, Any]]) -> list[Reason]:
    reasons = []
    for name, what in (
        ("overflow", "records found no room"),
        ("foreign", "messages of another run arrived"),
        ("corrupt", "messages arrived corrupt"),
    ):
        count = sum(int(d.get(name) or 0) for d in done)
        if count:
            reasons.append(Reason(Verdict.UNKNOWN, name, f"{count} {what}"))
    return reasons


def _judge_suspend(record: RunRecord) -> list[Reason]:
    begin, end = record.clocks.get("begin"), record.clocks.get("end")
    if not begin or not end:
        return []
    reasons = []
    slept = host.suspended_ns(begin, end)
    if slept > SUSPEND_NS:
        text = f"the machine was suspended for {slept / SECOND_NS:.2f} s"
        reasons.append(Reason(Verdict.UNKNOWN, "suspended", text))
    return reasons


def machine_figures(readings: Readings, record: RunRecord) -> dict[str, float | None]:
    """Shares of all cores in the window: steal, the harness, and what was neither it nor a node."""
    window = record.window["start_ns"], record.window["end_ns"]
    cores = record.cpus
    busy = readings.rate("busy_time", "machine", "machine", *window)
    steal = readings.rate("steal_time", "machine", "machine", *window)
    harness = readings.rate(CPU_TIME, "harness", "agent", *window)
    nodes = [readings.rate(CPU_TIME, "process", p, *window) for p in record.processes.states]
    stalls = readings.since("stall_longest", "machine", "machine", *window)
    stalled = readings.increase("stalled_time", "machine", "machine", *window)
    zones = readings.subjects("temperature", "machine")
    heat = [readings.mean("temperature", "machine", zone, *window) for zone in zones]
    # What arrives late is still on its way when the window ends: drops count until STOP.
    drained = window[0], max(window[1], record.stop_ns)
    figures: dict[str, float | None] = {
        "stall_ms_max": float(max(stalls)) / 1e6 if len(stalls) else None,
        "stalled_ms": None if stalled is None else stalled / 1e6,
        "clock_step_ms": _clock_step_ms(record),
        "datagrams_dropped": readings.increase("datagrams_dropped", "machine", "machine", *drained),
        "steal_share": None if steal is None else steal / 1e9 / cores,
        "harness_cpu_share": None if harness is None else harness / 1e9,
        "other_load_share": None,
        "temperature_celsius": max((h for h in heat if h is not None), default=None),
    }
    if busy is not None and harness is not None:
        own = harness + sum(n for n in nodes if n is not None)
        # Clock ticks against nanoseconds: a small negative difference is rounding.
        figures["other_load_share"] = max(0.0, (busy - own) / 1e9 / cores)
    return figures


def _clock_step_ms(record: RunRecord) -> float | None:
    begin, end = record.clocks.get("begin"), record.clocks.get("end")
    return host.clock_step_ns(begin, end) / 1e6 if begin and end else None


def _judge_machine(figures: dict[str, float | None], limits: ValidityLimits) -> list[Reason]:
    reasons = []
    for name, limit, words in (
        ("steal_share", limits.steal_max, "the host took {:.1f} % of the cores (steal)"),
        ("other_load_share", limits.other_load_max, "other load used {:.1f} % of the cores"),
    ):
        value = figures.get(name)
        if value is not None and value > limit:
            text = f"{words.format(100 * value)}; allowed: {100 * limit:.1f} %"
            reasons.append(Reason(Verdict.UNKNOWN, name.removesuffix("_share"), text))
    celsius = figures.get("temperature_celsius")
    if celsius is not None and celsius > limits.temperature_max_celsius:
        text = f"{celsius:.0f} °C; allowed: {limits.temperature_max_celsius:.0f} °C"
        reasons.append(Reason(Verdict.UNKNOWN, "temperature", text))
    stall_ms = figures.get("stall_ms_max")
    if stall_ms is not None and stall_ms > limits.stall_max_ms:
        text = f"the machine stood still for {stall_ms:.0f} ms; allowed: {limits.stall_max_ms:g} ms"
        reasons.append(Reason(Verdict.UNKNOWN, "stall", text))
    step_ms = figures.get("clock_step_ms")
    if step_ms is not None and abs(step_ms) > limits.clock_step_max_ms:
        text = f"the clock was set by {step_ms:.0f} ms; allowed: {limits.clock_step_max_ms:g} ms"
        reasons.append(Reason(Verdict.UNKNOWN, "clock_step", text))
    return reasons


def is_complete(outcome: Outcome) -> bool:
    """Whether all nodes ended as they should, so that all their files must be there."""
    return outcome in (Outcome.COMPLETED, Outcome.SATURATED)

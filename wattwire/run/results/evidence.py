"""Determine a run's verdict from evidence that is independent of its measured responses."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from wattwire.model.hosts.clocks import clock_reasons
from wattwire.model.metrics import METRICS, SUM
from wattwire.model.validity import (
    MISSED_TICKS,
    OTHER_LOAD,
    STEAL,
    ValidityLimits,
    broken_limits,
    due_ticks,
    missed_ticks_share,
)
from wattwire.model.verdict import COMPLETE, Outcome, Reason, Verdict
from wattwire.model.words import plural
from wattwire.rig import host
from wattwire.run.node_specs import SECOND_NS
from wattwire.run.record import HostRecord, RunRecord
from wattwire.run.results.resources import CPU_TIME, Readings

SUSPEND_NS = 10_000_000


def judge(
    record: RunRecord,
    readings: Mapping[str, Readings],
    limits: ValidityLimits,
    done: list[dict[str, Any]],
) -> tuple[list[Reason], dict[str, float | None]]:
    """Return all reasons against a run's validity, and its conditions for the summary."""
    reasons = list(record.reasons)
    # Nodes receive messages of uninvited nodes in an open run that proves security.
    unjudged = () if record.uninvited is None else ("foreign",)
    reasons += _judge_counts(done, unjudged)
    reasons += _judge_suspend(record)
    reasons += clock_reasons(record.clock_relations)
    figures: dict[str, float | None] = {}
    if readings and record.window.get("end_ns"):
        figures = figures_of_hosts(readings, record)
    missed = [missed_ticks_share(host.sampling) for host in record.hosts.values()]
    known_missed = [share for share in missed if share is not None]
    conditions = {**figures, MISSED_TICKS: max(known_missed, default=None)}
    reasons += broken_limits(conditions, resolution(record), limits)
    return reasons, figures


def resolution(record: RunRecord) -> dict[str, float]:
    """Return the largest error of each share of the window that is due to counting in steps.

    The step of the steal share is one clock tick per CPU, because a tick may begin before the
    window. The step of the missed ticks is one sampler tick.
    """
    steps = {}
    window_ns = record.window.get("end_ns", 0) - record.window.get("start_ns", 0)
    if window_ns > 0:
        steps[STEAL] = record.tick_ns / window_ns
    if due := due_ticks(record.sampling):
        steps[MISSED_TICKS] = 1 / due
    return steps


def _judge_counts(done: list[dict[str, Any]], unjudged: Collection[str]) -> list[Reason]:
    reasons = []
    for name, noun, text in (
        ("overflow", "record", "exceeded the capacity of a node"),
        ("foreign", "message", "of another run arrived"),
        ("corrupt", "message", "arrived corrupt"),
    ):
        count = sum(int(d.get(name) or 0) for d in done)
        if count and name not in unjudged:
            reasons.append(Reason(Verdict.INVALID, name, f"{plural(count, noun)} {text}"))
    return reasons


def _judge_suspend(record: RunRecord) -> list[Reason]:
    reasons = []
    for name, own in record.hosts.items():
        begin, end = own.clocks.get("begin"), own.clocks.get("end")
        slept_ns = host.suspended_ns(begin, end) if begin and end else 0
        if slept_ns > SUSPEND_NS:
            machine = f"the host {name}" if record.others else "the machine"
            text = f"{machine} was suspended for {slept_ns / SECOND_NS:.2f} s"
            reasons.append(Reason(Verdict.INVALID, "suspended", text))
    return reasons


def figures_of_hosts(
    readings: Mapping[str, Readings], record: RunRecord
) -> dict[str, float | None]:
    """Return the conditions of all hosts: the worst, or the sum (`Metric.over_hosts`).

    With several hosts, the condition of each host is in a column of its own.
    """
    figures = {name: machine_figures(readings[name], own) for name, own in record.hosts.items()}
    if not record.others:
        return figures[record.name]
    combined: dict[str, float | None] = {}
    for column in figures[record.name]:
        values = {name: row[column] for name, row in figures.items()}
        known = [value for value in values.values() if value is not None]
        is_summed = METRICS[column].over_hosts == SUM
        of_all = sum(known) if is_summed else max(known, key=abs, default=0.0)
        combined[column] = of_all if known else None
        combined |= {f"{column}.on.{name}": value for name, value in values.items()}
    return combined


def machine_figures(readings: Readings, record: HostRecord) -> dict[str, float | None]:
    """Return the conditions of the window: shares of all cores, stalls, temperature and drops."""
    window = record.window["start_ns"], record.window["end_ns"]
    cores = record.cpus
    other_cpu = readings.rate("other_cpu_time", "machine", "machine", *window)
    demand = readings.rate("other_demand", "machine", "machine", *window)
    steal = readings.rate("steal_time", "machine", "machine", *window)
    harness = readings.rate(CPU_TIME, "harness", "agent", *window)
    # A stall before the cost window has no effect.
    cost_begin_ns = record.window.get("cost_begin_ns", window[0])
    stalls = readings.since(
        "stall_longest", "machine", "machine", cost_begin_ns, window[1], cost_begin_ns > window[0]
    )
    stalled = readings.increase("stalled_time", "machine", "machine", *window)
    zones = readings.subjects("temperature", "machine")
    temperatures = [readings.mean("temperature", "machine", zone, *window) for zone in zones]
    # Messages may still be in flight after STOP, so drops are counted to the end of the sampling.
    to_the_end = window[0], max(window[1], readings.end_ns or 0)
    figures: dict[str, float | None] = {
        "stall_ms_max": float(max(stalls)) / 1e6 if len(stalls) else None,
        "stalled_ms": None if stalled is None else stalled / 1e6,
        "clock_step_ms": _clock_step_ms(record),
        **{
            name: readings.increase(name, "machine", "machine", *to_the_end)
            for name in ("datagrams_dropped", "datagrams_unassembled")
        },
        # Counted in ticks, of which one may begin before the window.
        STEAL: None if steal is None else min(1.0, steal / 1e9 / cores),
        "harness_cpu_share": None if harness is None else harness / 1e9,
        # Competing processes may demand more than all cores, but they can use at most all cores.
        OTHER_LOAD: None if demand is None else min(1.0, demand / 1e9 / cores),
        "other_cpu_share": None if other_cpu is None else min(1.0, other_cpu / 1e9 / cores),
        "temperature_celsius": max(
            (celsius for celsius in temperatures if celsius is not None), default=None
        ),
    }
    return figures


def _clock_step_ms(record: HostRecord) -> float | None:
    begin, end = record.clocks.get("begin"), record.clocks.get("end")
    return host.clock_step_ns(begin, end) / 1e6 if begin and end else None


def is_complete(outcome: Outcome) -> bool:
    """Return whether all nodes ended normally, so that all their files must exist."""
    return outcome in COMPLETE

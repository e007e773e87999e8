"""Forecast the duration and disk space of a plan, and the window that each meter needs.

Measurements and verdicts do not use these forecasts.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from wattwire.catalog import Cell
from wattwire.design import PlannedRun
from wattwire.hosts.reassembly import FRAGMENTED_FROM_BYTES, WAIT_MAX_S
from wattwire.model.deployment import PATTERNS, node_count, sender_rate_hz
from wattwire.model.flows import flow_parts
from wattwire.model.outside_meters import LOAD_S, WINDOWS_PER_READING, OutsideMeter
from wattwire.model.rig import NETNS
from wattwire.model.study import PROOF, Plan, Study
from wattwire.model.treatment import Treatment
from wattwire.model.warm_up import AUTO, SETTLING, SETTLING_CALLS, SETTLING_S
from wattwire.model.words import count
from wattwire.rig.observed import observed
from wattwire.run.node_specs import (
    SECOND_NS,
    nodes_record_bytes,
    records_of_run,
)
from wattwire.run.proof import WAIT_S

START_S = 1.5
"""Starting, matching and ending nodes: 0.3 s (native) to 4 s (slow discovery). The start of a
runtime is added (`start_cpu_s` of a manifest).
"""
CLOSED_CALL_S = 0.001
"""A back-to-back call: between 20 µs and several milliseconds."""

WARM_UP_CALLS = 1000
"""Guess of the settling runs' result: 10 to 5,000 calls (in a virtual machine that compiles)."""

RECORD_BYTES = 16
"""Bytes per record in messages.parquet, compressed; random times need 12, constant flags 0."""
READING_BYTES = 10
SERIES_PER_TICK = 12
RUN_BYTES = 100_000
"""Bytes for documents, logs, events and partly filled disk blocks of one run."""
PAGE_BYTES = 5_000_000

TICK_S = {"second": 1.0}
STEPS_PER_WINDOW = 100
"""A counter that changes only once per step is known to 1 % over 100 steps."""
READINGS_PER_WINDOW = 2
"""A gauge needs at least two readings in a window for a mean."""


@dataclass(frozen=True)
class Expected:
    """Expected duration of a treatment's run in addition to the durations that the plan states.

    `start_s` is the time to start, match and end the nodes. `call_s` is the time of a call in a
    closed loop. `observed` states for each of the two whether it was observed on this machine.
    """

    start_s: float = START_S
    call_s: float = CLOSED_CALL_S
    observed: tuple[bool, bool] = (False, False)


GUESS = Expected()


@dataclass(frozen=True)
class Forecast:
    """Forecast of a whole plan: seconds, bytes, and the source of the estimates (`basis`).

    `seconds` contains the `alignment_seconds` of the loads before and after the runs.
    """

    seconds: float
    run_seconds: float
    disk_bytes: int
    basis: str
    alignment_seconds: float = 0.0


@dataclass(frozen=True)
class MeterWindow:
    """The shortest window in which a meter gives a useful result, and the reason."""

    meter: str
    window_s: float
    because: str


def expectations(
    treatments: Iterable[Treatment], cells: Mapping[str, Mapping[str, Cell]], cores: int
) -> dict[str, Expected]:
    """Return the expected duration of each treatment's run, by treatment key.

    The estimates come from earlier runs of the same cells on this machine. Without such runs, they
    come from the CPU seconds in the manifests, divided by the number of cores. `cells` maps
    treatment key → role → cell.
    """
    cached_observed = functools.cache(observed)
    expected = {}
    for treatment in treatments:
        counts: Counter[str] = Counter()
        members: set[str] = set()
        for flow in flow_parts(treatment):
            pattern = PATTERNS[str(flow.treatment["pattern"])]
            new = {member.name for member in flow.members} - members
            members |= new
            counts.update(
                {pattern.sender: len(new)} if flow.members else pattern.counts(flow.treatment)
            )
        role_cells, nodes = cells[treatment.key], sum(counts.values())
        names = dict.fromkeys(role_cells[role].name for role in counts)
        histories = [cached_observed(name) for name in names]
        cpu_s = sum(
            count * role_cells[role].document["start_cpu_s"] for role, count in counts.items()
        )
        node_s = float(cpu_s) / nodes / max(1, cores)
        starts = [history.overhead_s(nodes, START_S, node_s) for history in histories]
        calls = [history.call_s(nodes) for history in histories]
        known_starts = [s for s in starts if s is not None]
        known_calls = [s for s in calls if s is not None]
        expected[treatment.key] = Expected(
            max(known_starts) if known_starts else START_S + float(cpu_s) / max(1, cores),
            max(known_calls) if known_calls else CLOSED_CALL_S,
            (bool(known_starts), bool(known_calls)),
        )
    return expected


def reassembly_bound_s(study: Study, runs: Iterable[PlannedRun]) -> float:
    """Return the longest wait (s) of all runs for fragments that the previous run lost.

    Only hosts in namespaces wait, and only after messages that need several fragments.
    """
    namespaces = [host for host in study.rig.hosts.values() if host.kind == NETNS]
    if len(namespaces) < 2:
        return 0.0
    payloads = (
        max(int(flow.treatment["payload_bytes"]) for flow in flow_parts(run.treatment))
        for run in runs
    )
    return WAIT_MAX_S * sum(payload >= FRAGMENTED_FROM_BYTES for payload in payloads)


def unreached_rates(
    treatments: Iterable[Treatment], cells: Mapping[str, Mapping[str, Cell]]
) -> list[str]:
    """Return a sentence per cell whose senders did not reach such a rate in earlier runs here."""
    late: dict[str, tuple[float, float]] = {}
    for treatment in treatments:
        for part in (flow.treatment for flow in flow_parts(treatment)):
            name = cells[treatment.key][PATTERNS[str(part["pattern"])].sender].name
            offered_hz = sender_rate_hz(part) or 0.0
            reached_hz = observed(name).reached_hz(node_count(treatment))
            if reached_hz is not None and offered_hz > max(reached_hz, late.get(name, (0.0,))[0]):
                late[name] = (offered_hz, reached_hz)
    return [
        f"{name}: rate_hz = {count(offered_hz)} per sender, but in earlier runs here its "
        f"senders reached at most {count(reached_hz)} Hz; they will be late. Use a lower rate"
        for name, (offered_hz, reached_hz) in late.items()
    ]


def forecast(
    study: Study,
    runs: Iterable[PlannedRun],
    expected: Mapping[str, Expected] | None = None,
    align: bool = False,
) -> Forecast:
    """Return the time and disk space of these runs, with one attempt each.

    `expected` maps treatment keys to expected durations. With `align`, the time contains the loads
    for the alignment of meters with their own clock.
    """
    planned = list(runs)
    expected_by_key = expected or {}
    seconds = sum(
        run_seconds(
            study, run.treatment, expected_by_key.get(run.treatment.key, GUESS), run.control
        )
        for run in planned
    )
    disk_bytes = sum(_run_bytes(study, run.treatment, run.control) for run in planned) + PAGE_BYTES
    mean_s = seconds / len(planned) if planned else 0.0
    basis, loads_s = _basis(study, planned, expected_by_key), 2 * LOAD_S if align else 0.0
    return Forecast(seconds + loads_s, mean_s, disk_bytes, basis, loads_s)


def run_seconds(
    study: Study, treatment: Treatment, expected: Expected = GUESS, control: str = ""
) -> float:
    """Return the duration (s) of one run: the planned time plus the expected additional time."""
    plan = study.plan
    window_s = expected_window_s(study, treatment, expected)
    if control == SETTLING:
        window_s = min(SETTLING_S, expected.call_s * SETTLING_CALLS)
    elif _closed(treatment):
        window_s += min(plan.warmup_max_s, expected.call_s * expected_warm_up_calls(study))
    if control == PROOF:
        window_s += WAIT_S
    stated_s = 2 * plan.baseline_s + plan.drain_ms(len(study.rig.hosts)) / 1000 + plan.cooldown_s
    return stated_s + window_s + expected.start_s


def expected_warm_up_calls(study: Study) -> int:
    """Return the warm-up calls of a client in a closed loop; a guess if not yet known."""
    calls = study.plan.warmup_calls
    return WARM_UP_CALLS if calls == AUTO else calls


def expected_window_s(study: Study, treatment: Treatment, expected: Expected = GUESS) -> float:
    """Return the length (s) of a window: planned in an open loop, expected in a closed loop."""
    if treatment["loop"] == "closed":
        return expected.call_s * int(treatment["count"])
    return study.plan.duration_s


def window_words(
    study: Study,
    treatments: Iterable[Treatment],
    expected: Mapping[str, Expected] | None = None,
) -> str:
    """Return a text with the windows: seconds for open loops, calls for closed loops."""
    all_treatments = list(treatments)
    closed = [t for t in all_treatments if _closed(t)]
    windows = [f"{study.plan.duration_s:g} s"] if len(all_treatments) > len(closed) else []
    if closed:
        expected_by_key = expected or {}
        estimates = [expected_by_key.get(t.key, GUESS) for t in closed]
        calls = _range((int(t["count"]) for t in closed), count)
        seconds = _range(
            (e.call_s * int(t["count"]) for t, e in zip(closed, estimates, strict=True))
        )
        call_ms = _range(1000 * e.call_s for e in estimates)
        basis = _basis_words([e.observed[1] for e in estimates])
        windows.append(f"{calls} calls in sequence ({seconds} s at {call_ms} ms per call, {basis})")
    return " or ".join(windows)


def _closed(treatment: Treatment) -> bool:
    return treatment["loop"] == "closed"


def _range(values: Iterable[float], formatted: Callable[[float], str] = "{:.3g}".format) -> str:
    """Return a text with the lowest and the highest value, or with one value if they are equal."""
    ordered = sorted(values)
    return " to ".join(dict.fromkeys(map(formatted, (ordered[0], ordered[-1]))))


def _basis_words(from_runs: Iterable[bool]) -> str:
    """Return a text that states whether the estimates are observations or guesses."""
    kinds = set(from_runs)
    if kinds == {True}:
        return "as in earlier runs here"
    return "partly as in earlier runs here, partly a guess" if True in kinds else "a guess"


def _basis(study: Study, planned: Iterable[PlannedRun], expected: Mapping[str, Expected]) -> str:
    plan = study.plan
    treatments = list({run.treatment.key: run.treatment for run in planned}.values())
    estimates = [expected.get(t.key, GUESS) for t in treatments] or [GUESS]
    window = f"a window of {window_words(study, treatments, expected)}"
    phrases = [
        window,
        f"baselines {2 * plan.baseline_s:g} s",
        f"drain {plan.drain_ms(len(study.rig.hosts)) / 1000:g} s",
    ]
    if any(map(_closed, treatments)) and plan.warmup_calls:
        calls = expected_warm_up_calls(study)
        guess = " (a guess, until settling runs determine it)"
        phrases.append(
            f"a warm-up of {count(calls)} calls{guess if plan.warmup_calls == AUTO else ''}"
        )
    phrases += [f"cool-down {plan.cooldown_s:g} s"] if plan.cooldown_s else []
    start = f"{_range((e.start_s for e in estimates), '{:.2g}'.format)} s for starting and ending"
    return f"{', '.join(phrases)}, and {start} ({_basis_words(e.observed[0] for e in estimates)})"


def node_memory_bytes(study: Study, runs: Iterable[PlannedRun]) -> int:
    """Return the memory (bytes) that the nodes of the largest run allocate for records."""
    plan = _with_warm_up(study.plan)
    return max(
        nodes_record_bytes(treatment, plan, control)
        for treatment, control in ((run.treatment, run.control) for run in runs)
    )


def _with_warm_up(plan: Plan) -> Plan:
    """Return the plan with a guess for the warm-up calls if settling runs determine them later."""
    return replace(plan, warmup_calls=WARM_UP_CALLS) if plan.warmup_calls == AUTO else plan


def _run_bytes(study: Study, treatment: Treatment, control: str) -> int:
    plan = _with_warm_up(study.plan)
    records = records_of_run(treatment, plan, control)
    readings = run_seconds(study, treatment) * study.meters.tick_hz * SERIES_PER_TICK
    return RUN_BYTES + records * RECORD_BYTES + round(readings) * READING_BYTES


def outside_window(meter: OutsideMeter) -> MeterWindow:
    """Return the window that a meter outside the machine needs."""
    because = f"its readings are means over {meter.window_s:g} s, times {WINDOWS_PER_READING}"
    return MeterWindow(meter.name, meter.shortest_window_s, because)


def meter_window(name: str, manifest: Mapping[str, Any], tick_hz: float) -> MeterWindow | None:
    """Return the window that a meter needs; None if the meter is read only at the window's ends.

    A counter is read at the ends of the window, so only its step size matters. A gauge is known
    only at its readings, so its period matters.
    """
    tier = str(manifest.get("tier", "second"))
    period_s = 1.0 / tick_hz if tier == "tick" else TICK_S.get(tier)
    needs: list[tuple[float, str]] = []
    for quantity in manifest.get("quantity", []):
        step_ns = quantity.get("step_ns")
        if quantity.get("counter") and step_ns:
            step_s = int(step_ns) / SECOND_NS
            steps = f"{STEPS_PER_WINDOW} steps of {step_s * 1000:g} ms for 1 %"
            reason = f"{quantity['name']} needs {steps}"
            needs.append((STEPS_PER_WINDOW * step_s, reason))
        elif not quantity.get("counter") and period_s is not None:
            reason = f"{quantity['name']} is read every {period_s:g} s"
            needs.append((READINGS_PER_WINDOW * period_s, reason))
    if not needs:
        return None
    window_s, because = max(needs, key=lambda need: need[0])
    return MeterWindow(name, window_s, because)

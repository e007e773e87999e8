"""What a plan will take before it is run: time, disk, and the window that each meter needs.

Forecasts only: nothing that is measured or judged rests on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from wattwire.design import PlannedRun
from wattwire.model.study import Study
from wattwire.model.treatment import PATTERN_ROLES, Treatment
from wattwire.run.specs import SECOND_NS, scheduled_per_sender

START_S = 1.5
"""Starting, matching and ending nodes: between 0.3 s (native) and 4 s (a slow discovery)."""
CLOSED_CALL_S = 0.001
"""A call back to back: between 20 µs and some milliseconds."""

RECORD_BYTES = 16
"""A record in messages.parquet, compressed; random times need 12, long runs of flags nothing."""
READING_BYTES = 10
SERIES_PER_TICK = 12
RUN_BYTES = 100_000
"""Documents, logs, events and half-filled disk blocks of one run."""
PAGE_BYTES = 5_000_000

TICK_S = {"second": 1.0}
STEPS_PER_WINDOW = 100
"""A counter that stands still for one step between updates is known to 1 % over 100 steps."""
READINGS_PER_WINDOW = 2
"""A gauge that is read less than twice in a window has no mean over it."""


@dataclass(frozen=True)
class Forecast:
    """Seconds and bytes of a whole plan; `basis` says in words what they rest on."""

    seconds: float
    run_seconds: float
    disk_bytes: int
    basis: str


@dataclass(frozen=True)
class MeterWindow:
    """The shortest window in which a meter's figure is worth having, and why."""

    meter: str
    window_s: float
    because: str


def forecast(study: Study, runs: Iterable[PlannedRun]) -> Forecast:
    """Time and disk of these runs, each tried once."""
    planned = list(runs)
    seconds = sum(run_seconds(study, r.treatment) for r in planned)
    disk = sum(_run_bytes(study, r.treatment) for r in planned) + PAGE_BYTES
    mean = seconds / len(planned) if planned else 0.0
    return Forecast(seconds, mean, disk, _basis(study, planned))


def run_seconds(study: Study, treatment: Treatment) -> float:
    """Seconds of one run: what the plan states, and START_S for what nobody knows before."""
    plan = study.plan
    window_s = expected_window_s(study, treatment)
    return 2 * plan.baseline_s + window_s + plan.quiet_ms / 1000 + plan.cooldown_s + START_S


def expected_window_s(study: Study, treatment: Treatment) -> float:
    """Seconds of a window: stated in open loop; in closed loop its calls, by CLOSED_CALL_S."""
    if treatment["loop"] == "closed":
        return CLOSED_CALL_S * int(treatment["count"])
    return study.plan.duration_s


def window_words(study: Study, treatments: Iterable[Treatment]) -> str:
    """The windows of these treatments: seconds in open loop, calls one by one in closed loop."""
    known = list(treatments)
    counts = sorted({int(t["count"]) for t in known if t["loop"] == "closed"})
    told = [f"{study.plan.duration_s:g} s"] if len(known) > sum(map(_closed, known)) else []
    if counts:
        ends = dict.fromkeys((counts[0], counts[-1]))
        calls = " to ".join(f"{count:,}" for count in ends)
        seconds = " to ".join(f"{CLOSED_CALL_S * count:g}" for count in ends)
        told.append(
            f"{calls} calls one after the other ({seconds} s at {CLOSED_CALL_S * 1000:g} ms a "
            "call, a guess)"
        )
    return " or ".join(told)


def _closed(treatment: Treatment) -> bool:
    return treatment["loop"] == "closed"


def _basis(study: Study, planned: Iterable[PlannedRun]) -> str:
    plan = study.plan
    window = f"a window of {window_words(study, (run.treatment for run in planned))}"
    parts = [window, f"baselines {2 * plan.baseline_s:g} s", f"drain {plan.quiet_ms / 1000:g} s"]
    parts += [f"cool-down {plan.cooldown_s:g} s"] if plan.cooldown_s else []
    return ", ".join(parts) + f", and a guess of {START_S:g} s for starting and ending"


def _run_bytes(study: Study, treatment: Treatment) -> int:
    messages = scheduled_per_sender(treatment, study.plan) * int(treatment["clients"])
    # Both sides record; an action has a goal, an acceptance, a result and its feedback.
    sides = 2 * (3 + int(treatment["action_feedback"])) if treatment["pattern"] == "action" else 2
    if treatment["pattern"] == "topic":  # one publisher, and every subscriber receives each
        messages = scheduled_per_sender(treatment, study.plan)
        sides = 1 + int(treatment["clients"])
    assert treatment["pattern"] in PATTERN_ROLES
    readings = run_seconds(study, treatment) * study.meters.tick_hz * SERIES_PER_TICK
    return RUN_BYTES + messages * sides * RECORD_BYTES + round(readings) * READING_BYTES


def meter_window(name: str, manifest: Mapping[str, Any], tick_hz: float) -> MeterWindow | None:
    """The window that a meter needs, from its manifest; None for one read at start and end only.

    A counter is read at the window's own edges, so its period does not matter, its step does;
    a gauge is only known where it was read.
    """
    tier = str(manifest.get("tier", "second"))
    period_s = 1.0 / tick_hz if tier == "tick" else TICK_S.get(tier)
    needs: list[tuple[float, str]] = []
    for quantity in manifest.get("quantity", []):
        step_ns = quantity.get("step_ns")
        if quantity.get("counter") and step_ns:
            step_s = int(step_ns) / SECOND_NS
            steps = f"has steps of {step_s * 1000:g} ms; 1 % needs {STEPS_PER_WINDOW}"
            why = f"{quantity['name']} {steps}"
            needs.append((STEPS_PER_WINDOW * step_s, why))
        elif not quantity.get("counter") and period_s is not None:
            why = f"{quantity['name']} is read every {period_s:g} s"
            needs.append((READINGS_PER_WINDOW * period_s, why))
    if not needs:
        return None
    window_s, because = max(needs, key=lambda need: need[0])
    return MeterWindow(name, window_s, because)

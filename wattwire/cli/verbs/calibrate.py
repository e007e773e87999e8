"""Implement `calibrate`, which measures the energy per CPU second with an energy counter."""

from __future__ import annotations

import argparse
import datetime
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wattwire import __version__
from wattwire.cli.verbs import add_verb
from wattwire.model.errors import EXIT_BAD_RESULT, EXIT_OK, UsageError
from wattwire.rig import AgentClient, calibrations
from wattwire.run.calibrating import LoadSteps, Measured, counter_meters
from wattwire.run.results import power

if TYPE_CHECKING:  # importing statistics takes a second, which would delay other commands
    from wattwire import stats
    from wattwire.stats.calibration import Calibrated

BLOCKS_DEFAULT, BLOCKS_MIN = 5, 3
STEP_S_DEFAULT, STEP_S_MIN = 5.0, 0.5
LOW_KEY = "joules_per_cpu_second_low"


def add_to(verbs: Any) -> None:
    """Register the command."""
    verb = add_verb(
        verbs,
        "calibrate",
        description="Run loads of half a core, one core and all cores with idle steps between "
        "them, and measure the joules per second of CPU time. The measured range "
        "replaces the default range of the estimate on processors of this name, for "
        "this user.",
    )
    verb.add_argument("--meter", metavar="NAME", help="calibrate with this meter only")
    verb.add_argument(
        "--blocks", type=int, default=BLOCKS_DEFAULT, help="number of repeats of all loads (5)"
    )
    verb.add_argument(
        "--seconds", type=float, default=STEP_S_DEFAULT, help="duration of each load (5)"
    )
    verb.set_defaults(call=calibrate)


def calibrate(options: argparse.Namespace) -> int:
    """Measure, compute and store the calibration, then print the meters that use it.

    Raises UsageError for invalid options.
    """
    for name, value, minimum in (
        ("--blocks", options.blocks, BLOCKS_MIN),
        ("--seconds", options.seconds, STEP_S_MIN),
    ):
        if not value >= minimum:
            raise UsageError(f"calibrate: {name}: found {value:g}; allowed: {minimum:g} or more")
    calibrations.known()  # rejects a damaged file before the measurement, which takes minutes
    with tempfile.TemporaryDirectory(prefix="wattwire-") as folder:
        agent = AgentClient(Path(folder))
        try:
            counters = counter_meters(agent.hello["meters"], options.meter)
            facts = {fact["key"]: fact["value"] for fact in agent.request("fingerprint")["facts"]}
            meters = [
                entry["name"]
                for entry in agent.hello["meters"]
                if entry["state"] == "present" and (entry["default"] or entry["name"] in counters)
            ]
            if options.meter:  # prevents the selection of a better meter
                meters = _without_rivals(agent.hello["meters"], meters, options.meter)
            steps = LoadSteps(
                agent, Path(folder), options.blocks, options.seconds, int(facts["cpus"]), _tell
            )
            _tell(f"about {steps.seconds / 60:.1f} min; do not use the machine during this time")
            source, measured = steps.measure(meters)
        finally:
            agent.close()
    assert source is not None  # a step without a source would have raised an error
    from wattwire.stats.calibration import (  # noqa: PLC0415
        Calibrated,
        Step,
        joules_per_cpu_second,
    )

    result = joules_per_cpu_second(
        [Step(step.block, step.requested_cores, step.busy_cores, step.power_w) for step in measured]
    )
    if not isinstance(result, Calibrated):
        _refuse(source, result)
        return EXIT_BAD_RESULT
    file = calibrations.add(_document(result, source, measured, facts, options))
    _report(result, source, measured)
    print(f"written to {file}")
    _confirm(result)
    return EXIT_OK


def _without_rivals(meter_facts: list[dict[str, Any]], meters: list[str], chosen: str) -> list[str]:
    ranked = {
        meter["name"]
        for meter in meter_facts
        if any(quantity.get("rank") is not None for quantity in meter["quantities"])
    }
    return [name for name in meters if name == chosen or name not in ranked]


def _tell(text: str) -> None:
    print(f"calibrate: {text}", file=sys.stderr, flush=True)


def _refuse(
    source: power.Source,
    failure: stats.BelowResolution | stats.TooFew | stats.NotComputable,
) -> None:
    from wattwire import stats  # noqa: PLC0415

    reason = str(failure)
    if isinstance(failure, stats.BelowResolution):
        reason = (
            f"{source.name} does not respond to load beyond its noise (at most "
            f"{failure.limit:.3g} J per CPU second)"
        )
    print(f"calibrate: {reason}; nothing was written.", file=sys.stderr)


def _report(calibrated: Calibrated, source: power.Source, measured: list[Measured]) -> None:
    slope = calibrated.slope
    idle = [step for step in measured if step.requested_cores == 0]
    print(
        f"{slope.estimate:.3g} J per CPU second, {100 * slope.level:.0f} % interval "
        f"{slope.low:.3g} to {slope.high:.3g}, from {slope.count} blocks against {source.name} "
        f"({', '.join(source.subjects)})"
    )
    for cores, joules in calibrated.levels.items():
        print(f"  {cores:g} busy core{'' if cores == 1 else 's'}: {joules:.3g} J per CPU second")
    other_cores = sum(step.busy_cores for step in idle) / len(idle)
    power_w = sum(step.power_w for step in idle) / len(idle)
    print(f"  idle steps: {power_w:.3g} W, with {other_cores:.2g} cores used by other processes")
    print(f"the estimate uses {calibrated.low:.3g} to {calibrated.high:.3g}")


def _confirm(calibrated: Calibrated) -> None:
    """Start a new agent and print the meters that use the calibration."""
    with tempfile.TemporaryDirectory(prefix="wattwire-") as state_folder:
        agent = AgentClient(Path(state_folder))
        meters = agent.hello["meters"]
        agent.close()
    users = [
        meter["name"]
        for meter in meters
        if (meter.get("info") or {}).get(LOW_KEY) == calibrated.low
    ]
    if users:
        print(f"meters that now use it, on processors of this name: {', '.join(users)}")
    else:
        print("no meter uses it; the meters' info in a campaign's machine.json gives the reason")


def _document(
    calibrated: Calibrated,
    source: power.Source,
    measured: list[Measured],
    facts: dict[str, Any],
    options: argparse.Namespace,
) -> dict[str, Any]:
    slope = calibrated.slope
    now = datetime.datetime.now(datetime.timezone.utc)
    return {
        "cpu_name": facts.get("cpu_name", ""),
        "virtualisation": facts.get("virtualisation", "none"),
        "joules_per_cpu_second": {
            "mean": slope.estimate,
            "low": calibrated.low,
            "high": calibrated.high,
        },
        "slope": {
            "low": slope.low,
            "high": slope.high,
            "confidence": slope.level,
            "blocks": slope.count,
        },
        "levels": [{"cores": c, "joules_per_cpu_second": j} for c, j in calibrated.levels.items()],
        "source": {
            "meter": source.meter,
            "quantity": source.quantity,
            "subjects": list(source.subjects),
        },
        "step_s": options.seconds,
        "steps": [_step_document(step) for step in measured],
        "facts": facts,
        "wattwire": __version__,
        "written": now.isoformat(timespec="seconds"),
    }


def _step_document(step: Measured) -> dict[str, Any]:
    """Return a step for the calibration file, in which the requested load is `asked_cores`."""
    fields = dict(vars(step))
    return {"asked_cores": fields.pop("requested_cores"), **fields}

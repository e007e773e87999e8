"""calibrate: what a second of CPU time costs on this processor, from a real energy counter."""

from __future__ import annotations

import argparse
import datetime
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wattwire import __version__
from wattwire.model.errors import EXIT_BAD_RESULT, EXIT_OK, UsageError
from wattwire.rig import AgentClient, calibrations
from wattwire.run.calibrating import LoadSteps, Measured, counter_meters
from wattwire.run.results import power

if TYPE_CHECKING:  # statistics take a second to import: whoever calls another verb must not wait
    from wattwire import stats
    from wattwire.stats.calibration import Calibrated

BLOCKS_DEFAULT, BLOCKS_MIN = 5, 3
STEP_S_DEFAULT, STEP_S_MIN = 5.0, 0.5
LOW_KEY = "joules_per_cpu_second_low"


def add_to(verbs: Any) -> None:
    """Register the verb."""
    verb = verbs.add_parser(
        "calibrate",
        help="find what CPU time costs here, from an energy counter",
        description="Hold loads of half a core, one core and all cores, with idle between, and "
        "find the joules that a second of CPU time costs. The range goes into the user's settings "
        "and replaces the wide stated one of the estimate, on processors of this name.",
    )
    verb.add_argument("--meter", metavar="NAME", help="calibrate against this meter only")
    verb.add_argument("--blocks", type=int, default=BLOCKS_DEFAULT, help="repeats of all loads (5)")
    verb.add_argument(
        "--seconds", type=float, default=STEP_S_DEFAULT, help="length of one load (5)"
    )
    verb.set_defaults(call=calibrate)


def calibrate(options: argparse.Namespace) -> int:
    """Measure, compute, write, and ask an agent whether it uses what was written."""
    for name, value, least in (
        ("--blocks", options.blocks, BLOCKS_MIN),
        ("--seconds", options.seconds, STEP_S_MIN),
    ):
        if not value >= least:
            raise UsageError(f"calibrate: {name}: found {value:g}; allowed: {least:g} or more")
    calibrations.known()  # a file that cannot be added to is refused before the minutes it takes
    with tempfile.TemporaryDirectory(prefix="wattwire-") as state:
        agent = AgentClient(Path(state))
        try:
            counters = counter_meters(agent.hello["meters"], options.meter)
            facts = {f["key"]: f["value"] for f in agent.request("fingerprint")["facts"]}
            meters = [
                m["name"]
                for m in agent.hello["meters"]
                if m["state"] == "present" and (m["default"] or m["name"] in counters)
            ]
            if options.meter:  # it alone: a better one beside it must not be chosen
                meters = _without_rivals(agent.hello["meters"], meters, options.meter)
            steps = LoadSteps(
                agent, Path(state), options.blocks, options.seconds, int(facts["cpus"]), _tell
            )
            _tell(f"about {steps.seconds / 60:.1f} minutes; leave the machine alone")
            source, measured = steps.measure(meters)
        finally:
            agent.close()
    assert source is not None  # a step without a source has raised
    from wattwire.stats.calibration import (  # noqa: PLC0415
        Calibrated,
        Step,
        joules_per_cpu_second,
    )

    found = joules_per_cpu_second(
        [Step(m.block, m.asked_cores, m.busy_cores, m.power_w) for m in measured]
    )
    if not isinstance(found, Calibrated):
        _refuse(source, found)
        return EXIT_BAD_RESULT
    file = calibrations.add(_document(found, source, measured, facts, options))
    _report(found, source, measured)
    print(f"written to {file}")
    _confirm(found)
    return EXIT_OK


def _without_rivals(known: list[dict[str, Any]], meters: list[str], wanted: str) -> list[str]:
    ranked = {m["name"] for m in known if any(q.get("rank") is not None for q in m["quantities"])}
    return [name for name in meters if name == wanted or name not in ranked]


def _tell(text: str) -> None:
    print(f"calibrate: {text}", file=sys.stderr, flush=True)


def _refuse(
    source: power.Source,
    found: stats.BelowResolution | stats.TooFew | stats.NotComputable,
) -> None:
    from wattwire import stats  # noqa: PLC0415

    why = str(found)
    if isinstance(found, stats.BelowResolution):
        why = (
            f"{source.name} does not respond to load beyond its noise (at most "
            f"{found.limit:.3g} J per CPU second)"
        )
    print(f"calibrate: {why}; nothing was written.", file=sys.stderr)


def _report(found: Calibrated, source: power.Source, measured: list[Measured]) -> None:
    slope = found.slope
    idle = [m for m in measured if m.asked_cores == 0]
    print(
        f"{slope.estimate:.3g} J per CPU second, {100 * slope.level:.0f} % interval "
        f"{slope.low:.3g} to {slope.high:.3g}, from {slope.count} blocks against {source.name} "
        f"({', '.join(source.subjects)})"
    )
    for cores, joules in found.levels.items():
        print(f"  {cores:g} busy core{'' if cores == 1 else 's'}: {joules:.3g} J per CPU second")
    other = sum(m.busy_cores for m in idle) / len(idle)
    power_w = sum(m.power_w for m in idle) / len(idle)
    print(f"  idle steps: {power_w:.3g} W, with {other:.2g} cores busy with something else")
    print(f"the estimate uses {found.low:.3g} to {found.high:.3g}")


def _confirm(found: Calibrated) -> None:
    """Ask a fresh agent what its estimates rest on now."""
    with tempfile.TemporaryDirectory(prefix="wattwire-") as state:
        agent = AgentClient(Path(state))
        meters = agent.hello["meters"]
        agent.close()
    using = [m["name"] for m in meters if (m.get("info") or {}).get(LOW_KEY) == found.low]
    if using:
        print(f"{', '.join(using)} uses it from now on, on processors of this name")
    else:
        print("no meter uses it; machine.json of a campaign says why, in the meters' info")


def _document(
    found: Calibrated,
    source: power.Source,
    measured: list[Measured],
    facts: dict[str, Any],
    options: argparse.Namespace,
) -> dict[str, Any]:
    slope = found.slope
    now = datetime.datetime.now(datetime.timezone.utc)
    return {
        "cpu_name": facts.get("cpu_name", ""),
        "virtualisation": facts.get("virtualisation", "none"),
        "joules_per_cpu_second": {
            "mean": slope.estimate,
            "low": found.low,
            "high": found.high,
        },
        "slope": {
            "low": slope.low,
            "high": slope.high,
            "confidence": slope.level,
            "blocks": slope.count,
        },
        "levels": [{"cores": c, "joules_per_cpu_second": j} for c, j in found.levels.items()],
        "source": {
            "meter": source.meter,
            "quantity": source.quantity,
            "subjects": list(source.subjects),
        },
        "step_s": options.seconds,
        "steps": [vars(m) for m in measured],
        "facts": facts,
        "wattwire": __version__,
        "written": now.isoformat(timespec="seconds"),
    }

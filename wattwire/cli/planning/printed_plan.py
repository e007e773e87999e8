"""Print the runs of a study, their duration, the usable meters, and what a pilot predicts."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from wattwire.catalog import Catalog
from wattwire.catalog.manifest import read_toml
from wattwire.catalog.rigs import links_of_rig
from wattwire.cli import studies, study_variants
from wattwire.cli.options import meter_addresses
from wattwire.cli.planning.builds_ahead import build_words, builds_ahead
from wattwire.cli.planning.confirmation import presets_of
from wattwire.cli.planning.foreseen import skipped_lines, unanswerable_lines
from wattwire.cli.planning.percentiles_ahead import percentile_words, too_few_lines
from wattwire.cli.planning.rates_ahead import link_cautions, rate_lines
from wattwire.cli.quantities import share, size_words
from wattwire.cli.screen import duration_words
from wattwire.cli.wrap import table, wrapped
from wattwire.design import CONTROLS, PlannedRun, cautions, piloted
from wattwire.hosts.hosts import here
from wattwire.model.cores import CORES, FREE, Machine
from wattwire.model.cores.descriptions import core_lines
from wattwire.model.errors import EXIT_OK, MissingError, UsageError
from wattwire.model.outside_meters import STREAM, OutsideMeter
from wattwire.model.publication import READER_FILE
from wattwire.model.rig import SSH
from wattwire.model.study import PROFILED, PROOF, Study, parse_study
from wattwire.model.treatment import Level, Treatment, shared_levels
from wattwire.model.validity import ValidityLimits, disabled_limits
from wattwire.model.warm_up import (
    AUTO,
    SETTLING,
    SETTLING_CALLS,
    SETTLING_RUNS,
    SETTLING_S,
    STEPS,
)
from wattwire.model.words import as_typed, count, plural
from wattwire.rig import AgentClient, Builder, host
from wattwire.run.forecast import (
    Expected,
    Forecast,
    MeterWindow,
    expectations,
    expected_window_s,
    forecast,
    meter_window,
    node_memory_bytes,
    outside_window,
    reassembly_bound_s,
    unreached_rates,
    window_words,
)
from wattwire.run.resolve_cells import Prepared, prepare, without_core_gaps
from wattwire.store import Campaign
from wattwire.store.imported import open_campaign

WIDTH = 80
WIDTH_SHARE = 0.05
MEMORY_SHARE, MEMORY_SHARE_MAX = 0.1, 0.8
"""Shares of the machine's memory. Above the first share, a line reports the memory of the nodes'
records. Above the second share, the line also reports that the memory is insufficient.
"""


def print_plan(options: argparse.Namespace, started_agent: Callable[[], AgentClient | None]) -> int:
    """Print the runs of a study, with the builds and meters of the agent of this machine.

    `started_agent` waits for the agent, and returns None without one. Raises UsageError for invalid
    options, and MissingError if the machine lacks a requirement.
    """
    catalog = Catalog()
    name, path, document = studies.loaded(catalog, options, options.preset)
    document = study_variants.applied(document, options)
    study = parse_study(name, document, str(path))
    agent = started_agent()
    builder = Builder(agent, look=True) if agent else None
    cores: list[str] = []
    try:
        chooser = studies.chooser(study, options.only, catalog)
        prepared = prepare(study, catalog, builder, chooser)
        if agent is not None:
            local = (name for name, spec in study.rig.hosts.items() if spec.kind != SSH)
            prepared = without_core_gaps(prepared, study, dict.fromkeys(local, here(agent)))
            cores = core_lines(_core_levels(study), Machine.of(agent.cpus))
    except MissingError as error:
        raise MissingError(f"{error}{_import_hint(name, path)}") from error
    builds = builds_ahead(prepared.cells, builder)
    outside = meter_addresses.chosen(options, catalog, study.rig)
    present_meters = _with_outside(meters_here(agent), outside, catalog)
    kept = prepared.treatments
    runs = prepared.plan(study.plan)
    expected = expectations(kept, prepared.cells, host.cores())
    estimate = forecast(study, runs, expected, options.align)
    print(wrapped(_headline(study, len(kept), runs, estimate, builds), WIDTH, hanging=""))
    for line in (*alignment_lines(estimate), *_layer_lines(study, prepared, runs, expected)):
        _say(line)
    if prepared.unselected:
        _say(f"part of the design: --only {options.only} skips "
             f"{plural(prepared.unselected, 'other treatment')}")  # fmt: skip
    if study.plan.stop_width:
        _say(f"stops by width: after block {study.plan.blocks_min} or later, as soon as the "
             f"primary ratio's interval reaches ± {100 * study.plan.stop_width:g} % or less; "
             f"at most {study.plan.blocks} blocks")  # fmt: skip
    for factor, levels in study.factors.items():
        kept_levels = {as_typed(treatment[factor]) for treatment in kept}
        words = [word for word in map(as_typed, levels) if word in kept_levels]
        _say(f"{factor}: {', '.join(words)}")
    for line in (*skipped_lines(prepared), *unanswerable_lines(study, kept, present_meters)):
        _say(line)
    for line in (*cores, *rate_lines(kept), *too_few_lines(study, kept)):
        _say(line)
    _print_disabled_limits(study.validity)
    if builds:
        _say(build_words(builds))
    for line in _warm_up_lines(study, kept):
        _say(line)
    _print_forecast(study, runs, estimate)
    _say(percentile_words(study, kept))
    _print_meters(study, (kept, expected), meters_of(catalog, study), present_meters, outside)
    if options.pilot:
        _print_pilot(study, Path(options.pilot), options.width)
    elif options.width is not None:
        raise UsageError("--width requires --pilot DIR")
    for caution in cautions_here(study, prepared):
        _say(f"caution: {caution}")
    if options.table:
        for run in runs:
            print(f"{run.run}  {run.label()}")
    presets = presets_of(catalog, options.study)
    if presets and not options.preset:
        print(f"Presets: {', '.join(presets)}.")
    print(f"Next: {run_command(options)}")
    return EXIT_OK


def cautions_here(study: Study, prepared: Prepared) -> list[str]:
    """Return the warnings of the study's settings, its links and earlier runs on this machine."""
    cpus = host.cores() if len(study.rig.hosts) == 1 else 0
    kept, rig = prepared.treatments, study.rig
    emulated = any(spec.is_emulated for spec in rig.networks.values())
    links = links_of_rig(rig, Catalog()) if emulated else {}
    return [
        *cautions(study, kept, cpus),
        *link_cautions(rig, links, kept),
        *unreached_rates(kept, prepared.cells),
    ]


def _core_levels(study: Study) -> Sequence[Level]:
    """Return the levels of `cores`, which is FREE in a study without it."""
    return study.factors.get(CORES, (study.fixed.get(CORES, FREE),))


def _import_hint(name: str, path: Path) -> str:
    """Return the hint to import the paper's data, or "" if the study has no reader."""
    if not (path.parent / READER_FILE).is_file():
        return ""
    return f". The data of its paper can be read: wattwire import {name} DIR"


def _headline(
    study: Study,
    treatments: int,
    runs: Sequence[PlannedRun],
    estimate: Forecast,
    builds: Mapping[str, float],
) -> str:
    control = sum(run.control in CONTROLS for run in runs) // study.plan.blocks
    traced = treatments * study.plan.syscall_runs
    extra_runs = f" + {plural(traced, 'run')} for system calls" if traced else ""
    settling = sum(run.control == SETTLING for run in runs)
    extra_runs += f" + {plural(settling, 'settling run')}" if settling else ""
    profiled = sum(run.control == PROFILED for run in runs)
    extra_runs += f" + {plural(profiled, 'run')} for layers" if profiled else ""
    proofs = sum(run.control == PROOF for run in runs)
    extra_runs += f" + {plural(proofs, 'proof')} of security" if proofs else ""
    controls = f" and {plural(control, 'control run')}" if control else ""
    build_time = duration_words(sum(builds.values()))
    build_part = f", after {plural(len(builds), 'build')} in about {build_time}" if builds else ""
    return (
        f"{study.heading}: {plural(treatments, 'treatment')}{controls} × "
        f"{plural(study.plan.blocks, 'block')}{extra_runs} = "
        f"{plural(len(runs), 'run')}, about {duration_words(estimate.seconds)} "
        f"(estimate: {estimate.run_seconds:.1f} s per run){build_part}."
    )


def _layer_lines(
    study: Study,
    prepared: Prepared,
    runs: Sequence[PlannedRun],
    expected: Mapping[str, Expected],
) -> Iterator[str]:
    """Yield the number and the time of the runs that record layers, and why treatments have none.

    The result is empty for a study without such runs.
    """
    profiled = [run for run in runs if run.control == PROFILED]
    if profiled:
        seconds = forecast(study, profiled, expected).seconds
        yield (
            f"layers: {plural(len(profiled), 'run')} of these, each next to its timed run, about "
            f"{duration_words(seconds)}"
        )
    without: dict[str, list[Treatment]] = {}
    for treatment in prepared.treatments:
        if reason := prepared.layer_gaps.get(treatment.key):
            without.setdefault(reason, []).append(treatment)
    for reason, treatments in without.items():
        shared = shared_levels([dict(treatment.varied) for treatment in treatments])
        named = f" with {Treatment.of(shared, {}).label()}" if shared else ""
        yield f"layers: not of {plural(len(treatments), 'treatment')}{named}: {reason}"


def alignment_lines(estimate: Forecast) -> list[str]:
    """Return a line on the time of the loads for the alignment; empty without such loads."""
    if not estimate.alignment_seconds:
        return []
    return [
        "alignment: a load of all cores before the first run and after the last one, "
        f"{duration_words(estimate.alignment_seconds)} of this time"
    ]


def _warm_up_lines(study: Study, treatments: Sequence[Treatment]) -> list[str]:
    """Return lines on the discarded warm-up calls.

    The result is empty if no treatment has a closed loop.
    """
    plan = study.plan
    if all(treatment["loop"] != "closed" for treatment in treatments):
        return []
    if plan.warmup_calls != AUTO:
        if plan.warmup_calls:
            warm_up = f"{plural(plan.warmup_calls, 'call')} of each client"
            return [f"warm-up in closed loop: {warm_up}, excluded from latency and costs"]
        by_time = f"calls that begin in the first {plan.warmup_s:g} s" if plan.warmup_s else "none"
        return [f"warm-up in closed loop: {by_time}"]
    cells = len(piloted(treatments, plan))
    return [
        f"warm-up in closed loop: {SETTLING_RUNS} settling runs per cell ({plural(cells, 'cell')}; "
        f"{count(SETTLING_CALLS)} calls or {SETTLING_S:g} s per run) determine the number of calls "
        f"that each cell needs. wattwire discards the largest number ({STEPS[0]} to "
        f"{count(STEPS[-1])}; at most {duration_words(plan.warmup_max_s)} per run) from every "
        "treatment. To skip the settling runs, use --warmup none."
    ]


def _say(text: str) -> None:
    print(wrapped(text, WIDTH, "  ", "  "))


def memory_lines(records_bytes: int, machine_bytes: int) -> list[str]:
    """Return a line on the memory of the nodes' records.

    The result is empty if the records need little memory.
    """
    if records_bytes < MEMORY_SHARE * machine_bytes:
        return []
    text = (
        f"memory: the nodes of a run reserve {size_words(records_bytes)} for their records; "
        f"this machine has {size_words(machine_bytes)}"
    )
    too_much = records_bytes > MEMORY_SHARE_MAX * machine_bytes
    return [f"{text}; this is too much, so use fewer messages or clients" if too_much else text]


def _print_forecast(study: Study, runs: Sequence[PlannedRun], estimate: Forecast) -> None:
    free_bytes = host.free_disk_bytes(Path.cwd())
    _say(f"time: a run is {estimate.basis}; a busy machine adds up to "
         f"{study.plan.quiet_wait_s:g} s per run; failed runs are repeated")  # fmt: skip
    wait_s = reassembly_bound_s(study, runs)
    if wait_s:
        _say(f"time: lost fragments add up to {duration_words(wait_s)}, because every run waits "
             "until the kernel has discarded those of the previous run (ipfrag_time)")  # fmt: skip
    for line in memory_lines(node_memory_bytes(study, runs), host.memory_bytes()):
        _say(line)
    tight = estimate.disk_bytes + study.validity.free_disk_bytes_min > free_bytes
    warning = "; this is too little, so choose another folder with --campaign DIR" if tight else ""
    _say(
        f"disk: about {size_words(estimate.disk_bytes)} (estimate); "
        f"{size_words(free_bytes)} are free here" + warning
    )


def _print_meters(
    study: Study,
    planned: tuple[Sequence[Treatment], Mapping[str, Expected]],
    windows: Mapping[str, MeterWindow | None],
    present: Sequence[Mapping[str, Any]] | None,
    outside: Sequence[OutsideMeter],
) -> None:
    """Print the minimum window of each readable meter, and the names of the unreadable meters."""
    windows = {**windows, **{meter.name: outside_window(meter) for meter in outside}}
    present_names = None if present is None else {meter["name"] for meter in present}
    needed = [
        window
        for name, window in windows.items()
        if window and (present_names is None or name in present_names)
    ]
    treatments, expected = planned
    shortest_s = min(expected_window_s(study, t, expected[t.key]) for t in treatments)
    if needed:
        window_text = window_words(study, treatments, expected)
        _say(f"minimum window of each meter (windows here: {window_text}):")
    rows = []
    of_outside = {meter.name for meter in outside}
    for window in needed:
        longer = " (longer)" if window.window_s > shortest_s else ""
        # Each baseline must be as long, too, because all powers of a run have one source.
        if not longer and window.meter in of_outside and window.window_s > study.plan.baseline_s:
            longer = f" (baseline: {study.plan.baseline_s:g} s)"
        rows.append((window.meter, f"{window.window_s:>4.3g} s{longer}", window.because))
    for line in table(rows, "<<<", WIDTH, indent="    "):
        print(line)
    if present_names is None:
        _say("the readable meters are unknown, because the agent is missing (see wattwire doctor)")
    absent = [name for name in windows if present_names is not None and name not in present_names]
    if absent:
        _say(f"absent here (see wattwire doctor): {', '.join(absent)}")


def _print_disabled_limits(limits: ValidityLimits) -> None:
    if not disabled_limits(limits):
        return
    from wattwire.analysis.topics.validity.numbers import disabled  # noqa: PLC0415 - slow
    from wattwire.report.topic_page import Sentences

    sentences = Sentences("validity")
    for notice in disabled(limits):
        _say(f"caution: {sentences.sentence(notice)}")


def _print_pilot(study: Study, pilot: Path, width: str | None) -> None:
    """Print the number of blocks that the scatter of a finished campaign requires.

    Raises UsageError if the campaign lacks a factor of the study.
    """
    from wattwire.analysis.dataset import gather  # noqa: PLC0415 - statistics are slow to import
    from wattwire.analysis.topics.pilot.numbers import Aim, predict
    from wattwire.report.topic_page import topic_page

    campaign = open_campaign(pilot)
    try:
        evidence = gather(campaign)
        absent = sorted(set(study.factors) - set(evidence.factors))
        if absent:
            raise UsageError(
                f"--pilot {pilot}: its study ({evidence.study.name}) lacks factors of "
                f"{study.name} ({', '.join(absent)}); use a campaign of the same study"
            )
        width_share = share(width, "--width") if width else study.plan.stop_width or WIDTH_SHARE
        margin = study.answers.margin
        _say(f"from the pilot {pilot} ({plural(evidence.usable.height, 'valid run')}):")
        aim = Aim(width_share, margin, study.plan.blocks)
        for text in topic_page("pilot", predict(evidence, aim)).texts:
            _say(f"  {text}")
    finally:
        if isinstance(campaign, Campaign):
            campaign.close()


def meters_of(catalog: Catalog, study: Study) -> dict[str, MeterWindow | None]:
    """Return the minimum window of each meter of the study by name.

    The value is None for a meter that has no minimum.
    """
    windows = {}
    for name, folder in sorted(catalog.meters.items()):
        manifest = read_toml(folder / "meter.toml")
        if name in study.meters.use or (not study.meters.use and manifest.get("default")):
            windows[name] = meter_window(name, manifest, study.meters.tick_hz)
    return windows


def meters_here(agent: AgentClient | None) -> list[dict[str, Any]] | None:
    """Return the agent's descriptions of the readable meters, or None if there is no agent."""
    if agent is None:
        return None
    return [meter for meter in agent.hello["meters"] if meter["state"] == "present"]


def _with_outside(
    present: list[dict[str, Any]] | None, outside: Sequence[OutsideMeter], catalog: Catalog
) -> list[dict[str, Any]] | None:
    """Return the readable meters with those outside of the machine; None without an agent."""
    if present is None or not outside:
        return present
    manifests = catalog.meter_manifests()
    return [
        *present,
        *(
            {"name": m.name, "tier": STREAM, "quantities": manifests[m.name]["quantity"]}
            for m in outside
        ),
    ]


def run_command(options: argparse.Namespace) -> str:
    """Return the shell command that runs the planned study."""
    arguments = ["wattwire", "run", options.study]
    arguments += ["--preset", options.preset] if options.preset else []
    arguments += ["--rig", options.rig] if options.rig else []
    arguments += [word for meter in options.meters for word in ("--meter", meter)]
    arguments += ["--align"] if options.align else []
    arguments += [word for change in options.changes for word in ("--set", change)]
    arguments += ["--warmup", options.warmup] if options.warmup else []
    arguments += ["--only", options.only] if options.only else []
    arguments += [word for variant in options.variants for word in ("--variant", variant)]
    arguments += ["--confirm"] if options.confirm else []
    arguments += ["--margin", options.margin] if options.margin is not None else []
    arguments += [word for name in options.response for word in ("--response", name)]
    arguments += ["--junit", options.junit] if options.junit else []
    arguments += ["--markdown", options.markdown] if options.markdown else []
    return shlex.join(arguments)

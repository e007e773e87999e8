"""Implement `exec`, which parses the request, measures, and prints the table."""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from wattwire.analysis.dataset import gather
from wattwire.analysis.topics.comparison.numbers import compared_variants
from wattwire.analysis.topics.comparison.result import ComparedVariants
from wattwire.analysis.topics.layers.numbers import Layers, layers
from wattwire.analysis.topics.limits.numbers import Limits
from wattwire.analysis.topics.limits.numbers import limits as limits_of
from wattwire.analysis.topics.processes.ends import early_ends, failures
from wattwire.analysis.topics.processes.executed import (
    BOUNDS,
    CPU_IS_BOUND,
    HIGHEST,
    MEANS,
    PEAK_IS_BOUND,
    SUMMED,
    SWITCHES_ARE_BOUND,
    Executed,
    Row,
    mean_of,
    tables_of,
)
from wattwire.analysis.topics.processes.message_costs import messages, repeats_without
from wattwire.analysis.topics.processes.numbers import costs
from wattwire.analysis.topics.processes.whole_command import printed_figures, whole_figures
from wattwire.analysis.topics.watched.numbers import WatchedTopics, watched_topics
from wattwire.catalog import Catalog
from wattwire.cli import exit_status, wrap
from wattwire.cli.exec import layers_table, topics_table
from wattwire.cli.exec.request import name_of, requested, study_of, topics_of
from wattwire.cli.options import meter_addresses
from wattwire.cli.topics.probe_build import built, chosen_probe, probe_agent, with_probe
from wattwire.cli.verbs import compare
from wattwire.cli.verbs import run as campaigns
from wattwire.cli.verbs.report import write_report
from wattwire.design import expand
from wattwire.model.deployment import Request
from wattwire.model.errors import EXIT_BAD_RESULT, EXIT_NOTHING_USABLE, EXIT_OK
from wattwire.model.metrics import find
from wattwire.model.outside_meters import LOAD_S
from wattwire.model.study import parse_study
from wattwire.model.verdict import Verdict
from wattwire.model.words import MISSING, duration, listed, mean_count, number, plural
from wattwire.report.topic_page import Sentences
from wattwire.rig import host
from wattwire.run.alignment_load import PHASE
from wattwire.run.campaign import Options
from wattwire.run.exec.command_run import WARM_UP, check_program
from wattwire.run.exec.output import ValueReader
from wattwire.run.exec.process_rows import TEARDOWN, UNSEEN
from wattwire.stats import BelowResolution, Interval, NotComputable
from wattwire.store import Campaign

SENTENCES = Sentences("processes")
FOLDED = (
    "A row of several processes (×N) gives the sums of their CPU time, switches and energy. "
    "Memory and threads are per process (mean and maximum)."
)
BOUND = (
    "≥ marks a lower bound. The peak memory of several processes is known only at the readings. "
    "Of a process that has ended without final figures, all values are those of its last scan. The "
    "context switches of ended threads are unknown until their process ends."
)
LOAD_WARNING_CORES = 0.2
EXIT_INTERRUPTED = 130
RSS, PSS = "memory_mean_kib", "pss_mean_kib"
KIB_PER_MIB = 1 / 1024
PIPE_WIDTH = 120
ROWS_MAX = 30
MEASURED, ESTIMATED = "measured", "estimate"
"""Kinds of energy values in the table's last column. Without energy values, the table omits the
column.
"""
NOT_MEASURED = (
    "Measured: CPU time, memory, threads and context switches of processes. Not measured: "
    "latency, loss and throughput of their messages. To measure these, watch a ROS 2 graph with "
    "--topics, compare cells with `wattwire try`, or run a study."
)
NO_ENERGY = {
    False: "No energy counter can be read here; --energy-estimate adds a modelled range.",
    True: "",
}
LEFT_OUT_FIRST = ("threads", "switches", "system s", "peak", "PSS")
"""Columns that a narrow screen omits, in this order. The column of names is never omitted."""


def execute(options: argparse.Namespace) -> int:
    """Measure, print the tables and the data folder, and return the exit code.

    The exit code is that of the comparison and of the limits, if any, unless a command failed.
    """
    compare.refuse_outputs(options)
    request = requested(options)
    study = study_of(request, options)
    parsed = parse_study("exec", study, "exec")
    for treatment, _ in expand(parsed):
        check_program(parsed.request_of(treatment) or request)
    catalog = Catalog()
    if topics := topics_of(options):
        probe = chosen_probe(catalog)
        probe.check_own_domain()
        with probe_agent() as (agent, _):
            build = built(agent, probe)
        request = with_probe(request, build, topics)
        study = study_of(request, options)
    name = name_of(request)
    folder = Path(options.campaign or f"campaigns/{name}-{datetime.datetime.now():%Y%m%d-%H%M%S}")
    runner = campaigns.begin(
        folder,
        catalog,
        _Progress(options.repeat, request, bool(options.variants)),
        (name, None, study),
        Options(meters=meter_addresses.chosen(options, catalog), align=options.align),
    )
    interrupted = False
    try:
        campaigns.execute(runner, exit_status.suspects)
    except KeyboardInterrupt:
        interrupted = True
    campaign = Campaign(folder)
    try:
        tables = tables_of(campaign)
        if not any(table.repeats for table in tables):
            print(f"wattwire: no repeat has values. Data: {folder}", file=sys.stderr)
            return EXIT_INTERRUPTED if interrupted else EXIT_NOTHING_USABLE
        page, results = (None, None) if options.no_report else write_report(campaign)
        outcome = None
        is_gate = bool(options.variants or parsed.limits)
        if is_gate and results:
            limits, compared = results.result(Limits), results.result(ComparedVariants)
            outcome = exit_status.of(campaign, limits, compared)
        elif is_gate:
            evidence = gather(campaign)
            compared = compared_variants(evidence)
            outcome = exit_status.of(campaign, limits_of(evidence), compared)
        recorded, watched = None, None
        if options.layers:
            recorded = results.result(Layers) if results else layers(gather(campaign))
        if options.topics:
            watched = results.result(WatchedTopics) if results else watched_topics(gather(campaign))
    finally:
        campaign.close()
    _print(tables, folder, page, options, recorded, watched)
    code = exit_status.hand_out(outcome, options) if outcome else EXIT_OK
    if interrupted:
        return EXIT_INTERRUPTED
    has_failed = any(failures(table) or any(early_ends(table)) for table in tables)
    lacks_topics = watched is not None and not watched.topics
    lacks_layers = recorded is not None and not recorded.hops
    if not has_failed and code == EXIT_OK and (lacks_topics or lacks_layers):
        return EXIT_NOTHING_USABLE  # what was requested is missing, as a sentence states
    return EXIT_BAD_RESULT if has_failed else code


def _print(
    tables: Sequence[Executed],
    folder: Path,
    page: Path | None,
    options: argparse.Namespace,
    recorded: Layers | None,
    watched: WatchedTopics | None,
) -> None:
    """Print the failed variants and a table per variant, or a JSON object for each of them."""
    if options.variants and not options.json:
        for failed in filter(None, map(failures, tables)):
            print(SENTENCES.failed(failed))
    for table in tables:
        if options.json:
            document = {"folder": str(folder), **table.as_json()}
            if recorded is not None:
                document["layers"] = layers_table.as_json(recorded)
            if watched is not None:
                document["topics"] = topics_table.as_json(watched)
            # With variants, the comparison follows, so each document is one line.
            print(json.dumps(document, indent=None if options.variants else 1))
            continue
        if table.variant:
            print(f"Variant {table.variant}:")
        if table.repeats:
            _print_table(table, options.energy_estimate)
        else:
            print("  no run is valid")
    if not options.json:
        width = wrap.columns(sys.stdout) if sys.stdout.isatty() else PIPE_WIDTH
        if watched is not None:
            for line in topics_table.lines(watched, width):
                print(line)
        if recorded is not None:
            for line in layers_table.lines(recorded, width):
                print(line)
        print(f"Data: {folder}")
        if page:
            print(page.resolve())


class _Progress:
    """Prints progress to standard error, because standard output is for the result."""

    def __init__(self, repeats: int, request: Request, has_variants: bool = False) -> None:
        self._repeats, self._request, self._has_variants = repeats, request, has_variants
        self._notes: set[str] = set()

    def event(self, kind: str, **fields: Any) -> None:
        if kind == "run" and (self._repeats > 1 or not fields["block"]):
            of_variant = f": {fields['label']}" if self._has_variants else ""
            repeat = f"repeat {fields['block']} of {self._repeats}"
            text = repeat if fields["block"] else "a run of the warm-up, which no value includes"
            print(f"wattwire: {text}{of_variant}", file=sys.stderr)
        elif kind == "phase" and fields["phase"] in ("window", WARM_UP):
            self._tell_phase(fields["phase"])
        elif kind == "phase" and fields["phase"] == PHASE:
            print(f"wattwire: {PHASE}: all cores, {LOAD_S:g} s", file=sys.stderr)
        elif kind == "note" and fields["text"] not in self._notes:
            self._notes.add(fields["text"])
            print(f"wattwire: {fields['text']}", file=sys.stderr)
        elif kind == "done" and fields["verdict"] == Verdict.FAILED.value:
            reasons = "; ".join(fields["reasons"] or [fields["detail"]])
            print(f"wattwire: this attempt has no values: {reasons}", file=sys.stderr)
        elif kind == "output":
            with wrap.unless_closed(sys.stderr):
                sys.stderr.buffer.write(fields["text"].encode(errors="surrogateescape"))
                sys.stderr.buffer.flush()

    def _tell_phase(self, phase: str) -> None:
        request = self._request
        length = f" (window: {request.for_s:g} s)" if request.for_s and phase == "window" else ""
        starts = bool(request.command) and (phase == WARM_UP or not request.warms_up)
        text = "the command starts now" if starts else "the window begins now"
        if phase == WARM_UP:
            amount = (
                f"{request.warmup_s:g} s"
                if request.warmup_s is not None
                else plural(request.warmup_messages or 0, "message")
            )
            text = f"{text if starts else 'the warm-up begins now'} (warm-up: {amount})"
        print(f"wattwire: {text}{length}", file=sys.stderr)


# -- the table ---------------------------------------------------------------------------------


def _print_table(executed: Executed, estimate: bool) -> None:
    width = wrap.columns(sys.stdout) if sys.stdout.isatty() else PIPE_WIDTH
    print(_headline(executed))
    measured = any(row.figures.get("energy_j") for row in executed.rows)
    energy = MEASURED if measured else ESTIMATED if estimate else ""
    rows = _lines(executed, energy)
    kept_columns, left_out = _columns(rows, width)
    shown = [[row[column] if column < len(row) else "" for column in kept_columns] for row in rows]
    for line in (*_numbers(_whole(executed), width), *_numbers(shown, width)):
        print(line)
    if left_out:
        names = f"{plural(len(left_out), 'column')} ({listed(left_out)})"
        text = f"Omitted on this narrow screen: {names}. The data contain all columns."
        print(wrap.wrapped(text, width, hanging=""))
    for sentence in _sentences(executed, energy):
        print(wrap.searchable(sentence, sys.stdout, hanging=""))


def _headline(executed: Executed) -> str:
    """Return failures, early ends, and the CPU time in the window as a mean over the runs."""
    result = costs(executed)
    failed = [SENTENCES.failed(result.failures)] if result.failures else []
    return " ".join([*failed, *map(SENTENCES.early, result.early_ends), SENTENCES.costs(result)])


def _numbers(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Return the lines of a table with names in the first column and numbers in the others."""
    return wrap.table(rows, "<" + ">" * (len(rows[0]) - 1), width, indent="")


def _whole(executed: Executed) -> list[list[str]]:
    """Return rows with the values of the whole command: that of one repeat, or their spread."""
    has_repeats = len(executed.repeats) > 1
    titles = ["mean", "±", "lowest", "highest", "repeats"] if has_repeats else ["value"]
    rows = [["whole", *titles]]
    for figure in whole_figures(executed):
        if figure.is_of_probe:  # the table of the topics has it
            continue
        mean = _cell(figure.value)
        cells = [f"≥ {mean}" if figure.is_bound else mean]
        if has_repeats:
            ends = (figure.sd, figure.lowest, figure.highest)
            cells += [*map(_cell, ends), str(figure.repeats)]
        rows.append([", ".join(filter(None, (figure.title, figure.unit))), *cells])
    return rows


def _lines(executed: Executed, energy: str) -> list[list[str]]:
    """Return the rows of the table with a heading row, one row per process, and the totals."""
    shown, folded = _fold_small(executed.rows)
    lines = [["process", *_titles(energy)], *(_cells(row, energy) for row in shown)]
    if folded:
        cpu_s = sum(row.mean("cpu_s") or 0.0 for row in folded)
        lines.append([f"({plural(len(folded), 'more row')} in the data)", _cell(cpu_s)])
    if len(executed.rows) > 1:
        lines.append(_cells(_total_row(executed), energy))
    return lines


def _columns(lines: list[list[str]], width: int) -> tuple[list[int], list[str]]:
    """Return the indices of the columns that fit `width`, and the titles of the omitted columns."""
    kept_columns, left_out = list(range(len(lines[0]))), []
    widths = [
        max(len(line[index]) for line in lines if index < len(line)) for index in kept_columns
    ]
    name_width = min(widths[0], wrap.NARROWEST)
    for title in LEFT_OUT_FIRST:
        if name_width + sum(len(wrap.GAP) + widths[index] for index in kept_columns[1:]) <= width:
            break
        kept_columns.remove(lines[0].index(title))
        left_out.append(title)
    return kept_columns, left_out


def _fold_small(rows: Sequence[Row]) -> tuple[Sequence[Row], Sequence[Row]]:
    """Split rows, sorted by CPU time, into the rows that fit on a screen and the rest."""
    return (rows, []) if len(rows) <= ROWS_MAX else (rows[: ROWS_MAX - 1], rows[ROWS_MAX - 1 :])


def _titles(energy: str) -> list[str]:
    columns = ["CPU s", "system s", "core %", "RSS MiB", "peak", "PSS", "threads", "switches"]
    return [*columns, *{MEASURED: ["J"], ESTIMATED: ["J (estimate)"]}.get(energy, [])]


def _cells(row: Row, energy: str) -> list[str]:
    name = row.name if row.count <= 1 else f"{row.name} ×{mean_count(row.count)}"
    switches = [row.mean(f"{kind}_switches") for kind in ("voluntary", "involuntary")]
    counts = [value for value in switches if value is not None]
    cells = [
        name,
        _bounded(row, CPU_IS_BOUND, _cell(row.interval("cpu_s"))),
        _cell(row.mean("cpu_system_s")),
        _bounded(row, CPU_IS_BOUND, _cell(row.interval("cpu_share"), 100.0)),
    ]
    mean, peak, pss = (
        _cell(row.mean(figure), KIB_PER_MIB) for figure in (RSS, "memory_peak_kib", PSS)
    )
    cells += [mean, _bounded(row, PEAK_IS_BOUND, peak), pss]
    cells += [
        mean_count(row.mean("threads_max")),
        _bounded(row, SWITCHES_ARE_BOUND, mean_count(sum(counts) if counts else None)),
    ]
    low, high = row.mean("energy_estimate_low_j"), row.mean("energy_estimate_high_j")
    if energy == MEASURED:
        cells.append(_cell(row.interval("energy_j")))
    elif energy == ESTIMATED:
        cells.append(_cell(None) if low is None else f"{number(low, 2)} … {number(high, 2)}")
    return cells


def _bounded(row: Row, flag: str, text: str) -> str:
    return f"≥ {text}" if row.is_bound(flag) and text != MISSING else text


def _cell(value: Any, factor: float = 1.0) -> str:
    """Format a value for a table cell, with its interval if known.

    A value that is missing or not computable is formatted as its reason or as MISSING.
    """
    if value is None:
        return MISSING
    if isinstance(value, Interval):
        low, high = number(value.low * factor), number(value.high * factor)
        return f"{number(value.estimate * factor)} [{low}, {high}]"
    if isinstance(value, (BelowResolution, NotComputable)):
        return str(value)
    return number(float(value) * factor)


def _total_row(executed: Executed) -> Row:
    names = (*SUMMED, *MEANS, *HIGHEST, PEAK_IS_BOUND)
    return Row("all", 1, {name: executed.values(name) for name in names})


def _sentences(executed: Executed, energy: str) -> Iterator[str]:
    """Yield the sentences below the table.

    They cover printed figures, messages, the end of the command, other load and the source of the
    energy values.
    """
    yield from _printed_sentences(executed)
    yield from _message_sentences(executed, energy)
    rows = executed.repeats
    if any(row.count > 1 for row in executed.rows):
        yield FOLDED
    rows_shown = (*executed.rows, _total_row(executed))
    if any(row.is_bound(flag) for row in rows_shown for flag in BOUNDS):
        yield BOUND
    if any((row.mean(PSS) or 0.0) > (row.mean(RSS) or 0.0) for row in rows_shown):
        yield "PSS is read half a second after the start and every ten seconds, RSS more often."
    yield from _remainder_sentences(executed)
    ends = {row["ended_by"] for row in rows} - {"itself"}
    if "Ctrl-C" in ends:
        yield "Ctrl-C ended the last window; the values above cover the time until then."
    if executed.request.command and not failures(executed):
        yield from _good_ends(rows)
    load_cores = max(executed.values("other_cpu_share"), default=0.0) * host.cores()
    if load_cores > LOAD_WARNING_CORES:
        yield (
            f"Other processes used up to {number(load_cores)} cores, so CPU time and energy "
            "may be higher than on a quiet machine."
        )
    shares = executed.values("harness_cpu_share")
    if shares:
        yield f"The sampler used {number(max(shares) * 100)} % of a core (not in the table)."
    if energy == MEASURED:
        yield (
            "Energy is measured above the machine's baseline "
            f"({duration(sum(executed.values('baseline_s')))} in total) and attributed by CPU "
            "time."
        )
    elif executed.request.attached and executed.values("power_window_w"):
        powers_w = executed.values("power_window_w")
        mean_w = sum(powers_w) / len(powers_w)
        yield (
            f"The machine drew {number(mean_w)} W. The attached system's share is unknown, "
            "because no baseline excludes that system."
        )
    elif energy == ESTIMATED:
        yield (
            "Energy is an estimate (CPU time multiplied by a range of joules per CPU second), "
            "because no counter can be read here."
        )
    has_messages = executed.request.layers or executed.request.probe
    not_measured = "" if has_messages else NOT_MEASURED
    no_energy = "" if energy == MEASURED else NO_ENERGY[bool(energy)]
    if not_measured or no_energy:
        yield f"{not_measured} {no_energy}".strip()


def _remainder_sentences(executed: Executed) -> Iterator[str]:
    """Yield what the rows contain that belong to no single process."""
    names = {row.name for row in executed.rows}
    if any(name.endswith(UNSEEN) for name in names):
        yield (
            f"The row {UNSEEN} has CPU time that cannot be attributed to a single process: of the "
            "processes above after their last scan, and of those that no scan saw. The number of "
            "these is unknown."
        )
    if any(name.endswith(TEARDOWN) for name in names):
        yield (
            f"The row {TEARDOWN} has CPU time that cannot be attributed to a single process, "
            "because the kernel's records of the processes' ends omit it: up to a clock tick of "
            "each, and the time in which they freed their memory."
        )


def _printed_sentences(executed: Executed) -> Iterator[str]:
    """Yield a sentence on the printed figures, and one per requested figure that is missing."""
    texts, omissions = [], []
    requested_names = [f"value.{name}" for name in ValueReader(executed.request.values_from).names]
    printed = [figure.key for figure in printed_figures(executed) if not figure.is_of_probe]
    for name in dict.fromkeys((*printed, *requested_names)):
        values = executed.values(name) if name in printed else []
        if not values:
            omissions.append(f"{name} has no value in any repeat.")
            continue
        metric = find(name)
        unit = f" {metric.unit}" if metric and metric.unit else ""
        texts.append(f"{name} = {SENTENCES.mean(mean_of(values))}{unit}")
        if without := repeats_without(executed, name):
            repeats = SENTENCES.without(without)
            omissions.append(f"{name} has no value in {repeats}, which its mean omits.")
    if texts:
        yield f"Printed by the command: {'; '.join(texts)}."
    yield from omissions


def _good_ends(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a sentence on the repeats that ended by themselves or at the end of --for."""
    for ended_by, opening in (
        ("itself", "The command ended"),
        ("time", "At the end of --for, wattwire stopped the command, which ended"),
    ):
        ends = {_end_words(row) for row in rows if row["ended_by"] == ended_by}
        if ends:
            yield f"{opening} {' or '.join(sorted(ends))}."


def _end_words(row: Mapping[str, Any]) -> str:
    if row.get("exit_signal"):
        return f"by signal {row['exit_signal']}"
    return f"with exit code {row.get('exit_code')}"


def _message_sentences(executed: Executed, energy: str) -> Iterator[str]:
    """Yield sentences on the costs of a message and on the rate of messages."""
    result = messages(executed)
    if result.uncounted:
        yield SENTENCES.uncounted(result)
    if result.rate:
        yield SENTENCES.per_message(result, energy == ESTIMATED)
        yield SENTENCES.rate(result.rate)

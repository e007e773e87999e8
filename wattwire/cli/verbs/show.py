"""Implement `show`, which prints a run of a campaign or the commands that repeat it by hand."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from wattwire.catalog import Catalog
from wattwire.cli import cell_facts, imported_text
from wattwire.cli.screen import duration_words
from wattwire.cli.verbs import add_verb
from wattwire.cli.wrap import pairs, wrapped
from wattwire.model.errors import EXIT_BAD_RESULT, EXIT_OK, UsageError, nearest
from wattwire.model.metrics import EVIDENCE, FIGURES, METRICS, metrics_in
from wattwire.model.quantiles import carried_size, share_of
from wattwire.model.validity import due_ticks
from wattwire.model.words import count, listed, number, percent, plural
from wattwire.store import Campaign, ImportedCampaign, open_campaign
from wattwire.store.files import RESTORE

WIDTH = 80


def add_to(verbs: Any) -> None:
    """Register the command."""
    verb = add_verb(
        verbs,
        "show",
        description="Show one run of a campaign. RUN is the run's name (b01-p003), its number in "
        "the plan's order (3), one attempt of it (b01-p003-2), or the run's folder alone. "
        "`show cell CELL` shows what a cell can do here: patterns, settings with allowed values "
        "and defaults, guarantees, versions of libraries.",
    )
    verb.add_argument(
        "campaign", metavar="DIR", help="a campaign, the folder of a run in it, or the word cell"
    )
    verb.add_argument(
        "run", nargs="?", metavar="RUN", help="name or number of a run (see `status`), or a CELL"
    )
    verb.add_argument(
        "--commands",
        action="store_true",
        help="print environment, command and spec of every process, to repeat the run manually",
    )
    verb.set_defaults(call=show)


def show(options: argparse.Namespace) -> int:
    """Print a run, the commands of its processes (--commands), or a cell.

    Raises UsageError without a run and for the commands of an imported run.
    """
    if options.campaign == cell_facts.KIND and not Path(options.campaign).exists():
        return _show_cell(options)
    directory, run = _campaign_and_run(Path(options.campaign), options.run)
    campaign = open_campaign(directory)
    if isinstance(campaign, ImportedCampaign):
        if options.commands:
            raise imported_text.no_commands(campaign)
        print("\n".join(imported_text.run_lines(campaign, run, WIDTH)))
        return EXIT_OK
    try:
        if run is None:
            raise UsageError(f"{directory}: RUN is missing. {_known_runs(campaign)}")
        folder = _folder(campaign, run)
        if not folder.is_dir():
            print("\n".join(_without_folder(campaign, folder)))
            return EXIT_BAD_RESULT
        document = campaign.run(folder.name)
        row = campaign.row(folder.name)
    finally:
        campaign.close()
    lines = _commands(folder, document) if options.commands else _description(folder, document, row)
    print("\n".join(lines))
    if not options.commands:
        repeat_command = shlex.join(["wattwire", "show", str(directory), folder.name, "--commands"])
        print(f"\nBy hand: {repeat_command}")
    return EXIT_OK


def _show_cell(options: argparse.Namespace) -> int:
    if options.commands:
        raise UsageError("--commands needs a run: wattwire show DIR RUN --commands")
    for title, rows in cell_facts.cell_blocks(Catalog(), options.run):
        print("\n".join(_block(title, rows)))
    return EXIT_OK


def _campaign_and_run(path: Path, run: str | None) -> tuple[Path, str | None]:
    """Return the campaign and the run that the arguments name."""
    if run is None and path.parent.name == "runs" and (path / "run.json").is_file():
        return path.parent.parent, path.name
    return path, run


def _folder(campaign: Campaign, run: str) -> Path:
    """Return the folder of a run, given by number, name or attempt.

    Raises UsageError for an unknown run.
    """
    planned = campaign.journal.runs()
    if run.isdigit():
        if not 1 <= int(run) <= len(planned):
            raise UsageError(
                f"{campaign.path}: run {run} does not exist; allowed: 1 to {len(planned)}, in "
                "the order of `wattwire plan --table`"
            )
        run = planned[int(run) - 1]
    attempts = campaign.journal.attempts()
    folders = {a.folder for a in attempts if a.state == "done" and a.folder}
    if run in planned and run not in {a.run for a in attempts if a.state == "done"}:
        raise UsageError(f"{campaign.path}: run {run} has not been run yet")
    if run not in planned and run not in folders:
        hint = nearest(run, [*planned, *folders])
        raise UsageError(f'{campaign.path}: no run "{run}".{hint} {_known_runs(campaign)}')
    return campaign.folder(run)


def _without_folder(campaign: Campaign, folder: Path) -> list[str]:
    """Return lines on an attempt without a folder, from the journal and the summary."""
    attempts = campaign.journal.attempts()
    attempt = next(entry for entry in attempts if entry.folder == folder.name)
    outcome = str(attempt.outcome).replace("_", " ")
    headline = (
        f"Run {attempt.run}, attempt {attempt.attempt}: {outcome}; verdict {attempt.verdict}. "
        f"Its folder {folder} is missing, with its messages, readings, logs and commands. "
        f"{RESTORE}"
    )
    lines = [*_wrapped(headline), ""]
    if (campaign.path / "summary.parquet").exists():
        rows = campaign.summary().to_dicts()
        matching = [r for r in rows if (r["run"], r["attempt"]) == (attempt.run, attempt.attempt)]
        for row in matching[:1]:
            levels = [(k.removeprefix("factor."), v) for k, v in row.items() if k[:7] == "factor."]
            lines += _block("Treatment, from the summary", levels)
            lines += _block("Figures, from the summary", _figures(row))
    return lines


def _known_runs(campaign: Campaign) -> str:
    planned = campaign.journal.runs()
    if not planned:
        return "This campaign has no plan yet."
    return f"Allowed: {planned[0]} to {planned[-1]}, or 1 to {len(planned)}."


# -- description of a run ----------------------------------------------------------------------


def _description(folder: Path, document: Mapping[str, Any], row: Mapping[str, Any]) -> list[str]:
    lines = [*_wrapped(_headline(document)), ""]
    lines += _block("Treatment", _treatment(document))
    lines += _block("Figures", _figures(row))
    lines += _block("Evidence", _evidence(document, row))
    lines += ["Processes", *_processes(document, row), ""]
    lines += _settings(document["nodes"])
    lines += [f"Files: {folder}"]
    return lines


def _headline(document: Mapping[str, Any]) -> str:
    """Return the first line of the description, with the run's identity and verdict."""
    cells = " and ".join(dict.fromkeys(document["cells"].values()))
    text = f"Run {document['run']}, attempt {document['attempt']}: {cells}, "
    text += f"{document['levels'].get('pattern', '')}; {document['outcome'].replace('_', ' ')}"
    if document["outcome_detail"]:
        text += f" ({document['outcome_detail']})"
    usable = {"valid": "used", "invalid": "excluded", "failed": "excluded"}
    text += f"; verdict {document['verdict']}: {usable[document['verdict']]}"
    reasons = "; ".join(reason["detail"] for reason in document["reasons"])
    return text + (f" ({reasons})." if reasons else ".")


def _treatment(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    varied = set(document["treatment"])
    for name, level in document["levels"].items():
        if level != "":
            yield name, f"{level}{'   (varied)' if name in varied else ''}"
    yield (
        "place",
        f"block {document['block']}, position {document['position']}"
        + (f", after {document['predecessor']}" if document["predecessor"] else ", the first"),
    )


def _figures(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name in metrics_in(FIGURES):
        metric, value = METRICS[name], row.get(name)
        if value is None and name == "sent" and name in row:
            yield metric.words, "unknown: a sender ended without records"
        share, counted = share_of(name), row.get("expected_after_warmup") or 0
        needed = carried_size(share) if share else 0
        if 0 < counted < needed:
            yield metric.words, f"too few messages ({count(counted)} of {count(needed)})"
            continue
        if value is not None:
            value_text = count(value) if isinstance(value, int) else number(value)
            unit = "" if isinstance(value, int) else metric.unit
            yield metric.words, f"{value_text} {unit}".rstrip()


def _evidence(document: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    before = document["conditions_before"]
    yield (
        "before it began",
        f"other load {percent(before['other_load_share'])}, stolen CPU time "
        f"{percent(before['steal_share'])}, waited {before['waited_s']:g} s"
        + ("" if before["quiet"] else "; the machine did not become quiet"),
    )
    for name in metrics_in(EVIDENCE):
        if row.get(name) is not None:
            yield METRICS[name].words, _evidence_value(name, row[name])
    sampling = document["sampling"]
    if due_ticks(sampling):
        yield (
            "sampler",
            f"{sampling.get('missed', 0)} of {due_ticks(sampling)} ticks missed, "
            f"{sampling.get('dropped', 0)} readings dropped",
        )
    for absent in sampling.get("absent", []):
        yield f"no {absent['name']}", absent["reason"]
    phases = ", ".join(f"{k} {duration_words_short(s)}" for k, s in document["seconds"].items())
    yield "phases", phases


def _evidence_value(name: str, value: float) -> str:
    """Format a share as a percentage, an amount with its unit, and a count as a whole number."""
    if name.endswith("_share"):
        return percent(value)
    unit = METRICS[name].unit
    return f"{number(value)} {unit}" if unit else count(value)


def duration_words_short(seconds: float) -> str:
    """Format a duration. Durations below a minute have two decimals."""
    return f"{seconds:.2f} s" if seconds < 60 else duration_words(seconds)


def _processes(document: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[str]:
    for node in document["nodes"]:
        node_name = f"{node['role']}.{node['index']}"
        facts = [f"{node['cell']}", _exit_words(node["exit"])]
        for line, key in (("sent", "sent"), ("done", "received")):
            if node.get(line) and node[line].get(key) is not None:
                facts.append(f"{key} {count(node[line][key])}")
        if row.get(f"cpu_share.{node_name}") is not None:
            facts.append(f"CPU {percent(row[f'cpu_share.{node_name}'])} of a core")
        if row.get(f"memory_kib.{node_name}") is not None:
            facts.append(f"{count(row[f'memory_kib.{node_name}'])} KiB")
        yield from _wrapped(f"{node['process']}: {', '.join(facts)}", "  ")
    for service in document["services"]:
        yield f"  {service['process']}: service process, {_exit_words(service['exit'])}"
    for process, members in document.get("members", {}).items():
        facts = [document["cells"][process], plural(len(members), "process", "processes")]
        if process in document["commands"]:
            facts.append(_exit_words(document["exit"]))
        if row.get(f"cpu_share.{process}") is not None:
            facts.append(f"CPU {percent(row[f'cpu_share.{process}'])} of a core")
        yield from _wrapped(f"{process}: {', '.join(facts)}", "  ")


def _exit_words(end: Mapping[str, Any] | None) -> str:
    if end is None:
        return "did not end by itself"
    if end.get("guard_lost"):
        return "its guard died"
    return f"killed by signal {end['signal']}" if end.get("signal") else f"exit {end.get('code')}"


def _settings(nodes: list[dict[str, Any]]) -> list[str]:
    """Return blocks of lines with the effective settings of the nodes.

    Nodes with equal settings share a block.
    """
    lines: list[str] = []
    blocks: dict[tuple[str, tuple[tuple[str, str], ...]], list[str]] = {}
    for node in nodes:
        ready = node.get("ready")
        if not ready:
            lines += [f"{node['process']} did not become ready", ""]
            continue
        library = ready.get("library", {})
        library_name = " ".join(str(library[k]) for k in ("name", "version") if library.get(k))
        values = {**ready.get("effective", {}), **ready.get("guarantee", {})}
        settings = tuple((k, _plain(v)) for k, v in values.items() if v not in ("", None))
        blocks.setdefault((library_name or "the library", settings), []).append(node["process"])
    for (library_name, settings), processes in blocks.items():
        lines += _block(
            f"Settings in effect in {listed(processes)}, as {library_name} reports", settings
        )
    return lines


def _plain(value: Any) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _block(title: str, rows: Iterable[tuple[str, Any]]) -> list[str]:
    """Return a titled block of two columns and an empty line, or [] without rows."""
    lines = pairs(((name, str(value)) for name, value in rows), WIDTH)
    return [title, *lines, ""] if lines else []


def _wrapped(text: str, indent: str = "") -> list[str]:
    return wrapped(text, WIDTH, indent, "  ").splitlines()


# -- commands ----------------------------------------------------------------------------------


HEAD = """\
# Run {run}, {count} processes in the order in which they were started.
# Start each in its own terminal, in this order; their files go to again/.
# Then type the output of this line into each node, the same number for all:
#   python3 -c "import time; print('GO', time.monotonic_ns() + 5 * 10**9)"
# and STOP after the window, to senders first. Where a spec's peers.endpoints is
# not empty, insert the endpoint that the listener prints now: endpoints change.
# Edit the copies of the specs in again/; the run's own specs stay unchanged.
# Also in the environment of each process: WATTWIRE_RUN={token}"""


def _commands(folder: Path, document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a shell script that starts every process in its original order."""
    folder = folder.resolve()
    order = document["commands"]
    if "members" in document:
        yield from (shlex.join(argv) for argv in order.values())
        return
    yield HEAD.format(
        run=f"{document['run']}-{document['attempt']}", count=len(order), token=document["token"]
    )
    stored = document.get("environments")
    if stored is None:
        yield "# This campaign stores no environments: commands only."
    services = {service["process"] for service in document["services"]}
    for process, argv in order.items():
        process_folder = folder / "out" / process
        arguments = [_final_path(word, folder) for word in argv]
        yield ""
        yield f"# {process} ({'service process' if process in services else 'node'})"
        yield shlex.join(["mkdir", "-p", f"again/{process}"])
        yield shlex.join(["cd", f"again/{process}"])
        for name, value in sorted((stored or {}).get(process, {}).items()):
            yield f"export {name}={shlex.quote(_final_path(value, folder))}"
        spec = process_folder / "spec.json"
        if process not in services:  # keep the spec and the samples of the run unchanged
            arguments = _with_option(arguments, "--out", ".")
            if spec.is_file():
                if json.loads(spec.read_text(encoding="utf-8")).get("tls.key"):
                    yield "# The credentials that spec.json names were removed with the run."
                yield _copy_command(spec, folder)
                arguments = _with_option(arguments, "--spec", "spec.json")
        # A node writes its lines to descriptor 3 (C-05). Here, they go to the terminal.
        yield shlex.join(arguments) + ("" if process in services else " 3>&1")
        yield f"# spec: {spec}" if spec.is_file() else f"# its files: {process_folder}"


def _copy_command(spec: Path, folder: Path) -> str:
    """Return the command that copies a spec to the current folder and updates its paths."""
    attempt = rf"[^\"]*/runs/\.{folder.name}\.partial/"
    final = re.sub(r"([\\&|])", r"\\\1", json.dumps(str(folder))[1:-1])
    return f"sed {shlex.quote(f's|{attempt}|{final}/|g')} {shlex.quote(str(spec))} > spec.json"


def _with_option(words: list[str], option: str, value: str) -> list[str]:
    """Return `words` with the value of `option` replaced, or unchanged without that option."""
    if option not in words[:-1]:
        return words
    index = words.index(option) + 1
    return [*words[:index], value, *words[index + 1 :]]


def _final_path(word: str, folder: Path) -> str:
    """Convert a path in the folder of an unfinished attempt to the folder's final name."""
    partial = f"/runs/.{folder.name}.partial"
    index = word.find(partial)
    return word if index < 0 else f"{folder}{word[index + len(partial) :]}"

"""Implement `try`, which compares cells without a study file. The executed study is stored."""

from __future__ import annotations

import argparse
import datetime
import json
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wattwire.catalog import Catalog, Cell
from wattwire.cli.options import meter_addresses, study_options
from wattwire.cli.own_agent import agent_here
from wattwire.cli.planning.builds_ahead import build_words, builds_ahead
from wattwire.cli.planning.confirmation import confirm_long
from wattwire.cli.planning.percentiles_ahead import too_few_lines
from wattwire.cli.planning.printed_plan import alignment_lines, cautions_here
from wattwire.cli.planning.rates_ahead import rate_lines
from wattwire.cli.quantities import duration_s, size_bytes
from wattwire.cli.screen import duration_words, make_progress
from wattwire.cli.studies import (
    change,
    refuse_calls_of_none,
    warm_up_changes,
)
from wattwire.cli.verbs import add_verb
from wattwire.cli.verbs import run as campaigns
from wattwire.cli.verbs.report import stamps_of
from wattwire.cli.wrap import wrapped
from wattwire.design import PlannedRun
from wattwire.model.cores import CORES, FREE, SAME, Machine, checked
from wattwire.model.cores.descriptions import core_lines
from wattwire.model.deployment import PATTERNS
from wattwire.model.errors import EXIT_NOTHING_USABLE, EXIT_OK, UsageError, unknown
from wattwire.model.fields import WORDS
from wattwire.model.study import LEVEL_RULES, Plan, Study, parse_study
from wattwire.model.treatment import SETTING
from wattwire.model.validity import VALIDITY
from wattwire.model.warm_up import AUTO_WORD
from wattwire.model.words import listed, plural
from wattwire.rig import Builder, host
from wattwire.run.forecast import Forecast, expectations, forecast
from wattwire.run.resolve_cells import Prepared, prepare
from wattwire.store import Campaign

NAME = "try"
CELL = "cell"
WIDTH = 80
WARMUP_S_MAX = 0.2
WARMUP_SHARE = 0.1
DEFAULT_NOTE = " This is the default; --cores same,apart compares two placements."
HEAD = """\
# Written by: {command}
# Edit this file as required, and run it with `wattwire run FILE`.
# Every key is explained in docs/manifests.md.
"""


def add_to(verbs: Any) -> None:
    """Register the command."""
    verb = add_verb(
        verbs,
        "try",
        description="Compare cells: every block measures each of them, in random order. Sizes: "
        "64, 64k (64 000 bytes), 64Ki (65 536). Times: 10s, 500ms, 2m.",
    )
    verb.add_argument(
        "cells", nargs="+", metavar="CELL", help="name of a cell; `wattwire list cells` lists them"
    )
    verb.add_argument(
        "--pattern", default="pingpong", metavar="PATTERNS",
        help=f"{', '.join(PATTERNS)}, or several of them, such as service,pingpong",
    )  # fmt: skip
    verb.add_argument(
        "--payload", default="64", metavar="SIZES", help="payload sizes in bytes, such as 64,1m"
    )
    verb.add_argument(
        "--rate", default="100", metavar="HZ",
        help="messages or calls per second of each sender or client, such as 5,1000",
    )  # fmt: skip
    verb.add_argument(
        "--for", default="2s", dest="length", metavar="TIME", help="duration of each run"
    )
    verb.add_argument("--blocks", type=int, default=5, help="number of measurements of each cell")
    verb.add_argument(
        "--clients", default="1", metavar="N",
        help="number of subscribers or clients, each a process, such as 1,8",
    )  # fmt: skip
    verb.add_argument(
        "--cores", "--placement", default="", metavar="WORDS",
        help="CPUs of the nodes: free (the scheduler chooses), same (one core for all), apart (a "
             "core for each), or several of them, such as same,apart (default: same, and free with "
             "several clients)",
    )  # fmt: skip
    verb.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="changes",
        help="a setting of the middleware, or a key of a study, such as reply=ack or plan.seed=2; "
        "a list, such as 'qos=[0,1]', compares its levels",
    )
    verb.add_argument("--rig", metavar="FILE", help=argparse.SUPPRESS)
    study_options.add_meters(verb)
    study_options.add_look(verb)
    study_options.add_warm_up(verb)
    verb.add_argument("--campaign", metavar="DIR", help="directory for the data")
    verb.add_argument(
        "--yes", action="store_true",
        help="do not ask for confirmation of a long trial or of many processes",
    )  # fmt: skip
    verb.add_argument("--no-report", action="store_true", help="do not write the page at the end")
    verb.add_argument(
        "--plain", action="store_true", help="print progress as plain lines, for logs"
    )
    verb.add_argument("--json", action="store_true", help="print progress and result as JSON lines")
    verb.set_defaults(call=try_cells)


def try_cells(options: argparse.Namespace) -> int:
    """Write a study, run it, and print the comparison and all paths."""
    if options.rig:
        cell_names, rig = shlex.join(options.cells), shlex.quote(options.rig)
        raise UsageError(
            "--rig: try measures on this machine. For the hosts of a rig: wattwire new study.toml "
            f"{cell_names}; add network and placement to [fixed]; then wattwire run study.toml "
            f"--rig {rig}"
        )
    catalog = Catalog()
    cells = catalog.cells_like(options.cells)
    document = document_of(options, cells)
    study = parse_study(NAME, document, NAME)
    with agent_here() as agent:
        # The environment of a middleware may state that a cell cannot be built here.
        prepared = prepare(study, catalog, Builder(agent, look=True) if agent else None)
    runs = prepared.plan(study.plan)
    expected = expectations(prepared.treatments, prepared.cells, host.cores())
    estimate = forecast(study, runs, expected, options.align)
    if not options.yes:
        confirm_long(study, runs, {}, estimate)
    stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    directory = Path(options.campaign or f"campaigns/{NAME}-{stamp}")
    if not options.json:
        _announce(study, runs, estimate, prepared, is_default=not options.cores)
    _measure(options, catalog, document, directory)
    return _close(options, directory)


def _announce(
    study: Study,
    runs: Sequence[PlannedRun],
    estimate: Forecast,
    prepared: Prepared,
    is_default: bool,
) -> None:
    headline = (
        f"{study.heading}: {plural(len(runs), 'run')} in {plural(study.plan.blocks, 'block')}, "
        f"about {duration_words(estimate.seconds)}."
    )
    with agent_here() as agent:
        builds = builds_ahead(prepared.cells, Builder(agent) if agent else None)
        levels = study.factors.get(CORES, (study.fixed.get(CORES, FREE),))
        placements = core_lines(levels, Machine.of(agent.cpus)) if agent else []
    headline += f" {build_words(builds)}." if builds else ""
    skipped = prepared.skipped
    reasons = (f"Skipped: {reason}." for reason in dict.fromkeys(cause for _, cause in skipped))
    closed = "In closed loop, --for has no effect; a run ends after its calls (--set count=CALLS)."
    notes = [closed] if study.held.get("loop") == "closed" else []
    notes += [f"{text[:1].upper()}{text[1:]}." for text in alignment_lines(estimate)]
    treatments = prepared.treatments
    notes += [f"{text}.{DEFAULT_NOTE if is_default else ''}" for text in placements]
    notes += [f"{text[:1].upper()}{text[1:]}." for text in rate_lines(treatments)]
    cautious = (*too_few_lines(study, treatments), *cautions_here(study, prepared))
    warnings = (f"Caution: {text}." for text in cautious)
    for text in (headline, *reasons, *notes, *warnings):
        print(wrapped(text, WIDTH, hanging=""), flush=True)


def _measure(
    options: argparse.Namespace, catalog: Catalog, document: dict[str, Any], directory: Path
) -> None:
    from wattwire.run.campaign import Options  # noqa: PLC0415 - slow to import

    progress = make_progress(options.json, options.plain)
    try:
        with tempfile.TemporaryDirectory(prefix="wattwire-try-") as folder:
            path = Path(folder) / "study.toml"
            head = HEAD.format(command=shlex.join(["wattwire", *options.typed]))
            path.write_text(head + to_toml(document), encoding="utf-8")
            settings = Options(meters=meter_addresses.chosen(options, catalog), align=options.align)
            runner = campaigns.begin(directory, catalog, progress, (NAME, path, document), settings)
        campaigns.execute(runner)
    finally:
        progress.close()


def _close(options: argparse.Namespace, directory: Path) -> int:
    from wattwire.cli import try_table  # noqa: PLC0415 - statistics are slow to import

    page = None if options.no_report else campaigns.write_report(directory)[0]
    campaign = Campaign(directory)
    try:
        comparison = try_table.compare(campaign)
    finally:
        campaign.close()
    if options.json:
        result = {"kind": "comparison", **comparison.to_json(), "campaign": str(directory)}
        print(json.dumps({**result, "page": str(page) if page else None}))
    else:
        print()
        print("\n".join(comparison.lines()))
        stamps = stamps_of(page)
        if stamps:
            print(f"\n{wrapped(stamps, WIDTH, hanging='')}")
        print()
        print(f"Study     {directory / 'study.toml'}")
        print(f"Campaign  {directory}")
        if page:
            print(f"Page      {page.resolve()}")
        print(f"Next: wattwire show {shlex.quote(str(directory))} 1")
    return EXIT_OK if comparison.usable else EXIT_NOTHING_USABLE


# -- the study ---------------------------------------------------------------------------------


def document_of(options: argparse.Namespace, cells: Sequence[Cell]) -> dict[str, Any]:
    """Return the document of a study that compares `cells`.

    Raises UsageError for invalid options.
    """
    names = [cell.name for cell in cells]
    if len(set(names)) != len(names):
        raise UsageError(f"{NAME}: found a cell twice in {' '.join(names)}; name each cell once")
    length_s = duration_s(options.length, "--for")
    levels = _levels(options)
    varied = {name: values for name, values in levels.items() if len(values) > 1}
    document: dict[str, Any] = {
        "title": f"{listed(names)}, {listed(levels['pattern'])}",
        "factors": {CELL: names, **varied},
        "fixed": {name: values[0] for name, values in levels.items() if name not in varied},
        "plan": {
            "blocks": options.blocks,
            "primary": CELL,
            "duration_s": length_s,
            "warmup_s": round(min(WARMUP_S_MAX, WARMUP_SHARE * length_s), 4),
            "warmup_calls": AUTO_WORD,
            "baseline_s": 0.2,
            "quiet_ms": 50,
            "linger_ms": 500,
            "quiet_wait_s": 2.0,
            "retries": 0,
            "controls": False,
        },
        VALIDITY: {"look": True} if options.look else {"other_load_max": 0.5},
        "answers": {"baseline": {CELL: names[0]}},
    }
    changes = [_study_key(text, cells) for text in options.changes]
    keys = [text.partition("=")[0] for text in changes]
    for text, key in zip(changes, keys, strict=True):
        if keys.count(key) > 1:
            raise UsageError(f"--set {text}: {key} is set {keys.count(key)} times; set it once")
    for text in (*changes, *warm_up_changes(options.warmup)):
        document = change(document, text)
    refuse_calls_of_none(document, options.warmup)
    return _comparing_all(document)


def _comparing_all(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with a question that compares the levels of every varied factor.

    The analysis averages over the levels of a factor that no question names.
    """
    varied = [name for name, values in document["factors"].items() if len(values) > 1]
    question = {
        "id": "T1",
        "text": "How do these cells and levels differ?",
        "factors": varied or [CELL],
        "responses": ["latency_p50_us", "cpu_us_per_message", "loss_share"],
    }
    plan = document["plan"]
    if varied and CELL not in varied and plan["primary"] == CELL:
        plan = {**plan, "primary": varied[0]}
    return {"question": [question], **document, "plan": plan}


def _levels(options: argparse.Namespace) -> dict[str, list[Any]]:
    """Return the distinct levels of each factor that has an option of its own."""
    patterns = _words(options.pattern)
    for name in patterns:
        if name not in PATTERNS:
            raise unknown("--pattern", "pattern", name, PATTERNS)
    levels: dict[str, list[Any]] = {
        "pattern": patterns,
        "payload_bytes": sorted(size_bytes(word, "--payload") for word in _words(options.payload)),
        "rate_hz": sorted(_number(word, float, "--rate") for word in _words(options.rate)),
        "clients": sorted(_number(word, int, "--clients") for word in _words(options.clients)),
    }
    # Several clients are meant to run at the same time. decisions/0026 has the reasons.
    default = FREE if max(levels["clients"]) > 1 else SAME
    levels[CORES] = [checked(word, "--cores") for word in _words(options.cores or default)]
    return {name: list(dict.fromkeys(values)) for name, values in levels.items()}


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",")]


def _number(word: str, kind: type[int] | type[float], option: str) -> Any:
    """Return a level of an option as a number. Raises UsageError for other text."""
    try:
        return kind(word)
    except ValueError as error:
        raise UsageError(
            f"{option}: found {word!r}; allowed: {WORDS[kind]}, or several with commas"
        ) from error


def _study_key(text: str, cells: Sequence[Cell]) -> str:
    """Return a --set with its full key. A key without a dot is a level or a setting.

    Raises UsageError for an unknown key and for a setting that a cell lacks.
    """
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise UsageError(f"--set {text}: allowed: KEY=VALUE, e.g. reply=ack or plan.seed=2")
    if "." in key:
        return text
    settings = {name for cell in cells for name in cell.middleware.settings}
    if key in LEVEL_RULES:
        return text
    if key not in settings:
        raise unknown("--set", "key", key, [*settings, *LEVEL_RULES, *_plan_keys()])
    lacking = [cell.name for cell in cells if key not in cell.middleware.settings]
    if lacking:
        raise UsageError(
            f"--set {key}: cells without this setting: {', '.join(lacking)}. Compare cells "
            "that have "
            "it, or write a study (wattwire new FILE)."
        )
    return f"{SETTING}{key}={value}"


def _plan_keys() -> list[str]:
    return [f"plan.{name}" for name in Plan.__dataclass_fields__]


def to_toml(document: Mapping[str, Any]) -> str:
    """Convert a study document to TOML. Supports scalars, lists, tables and lists of tables."""
    lines = [f"{key} = {_value(value)}" for key, value in document.items() if not _nested(value)]
    for key, value in document.items():
        for table in value if _is_tables(value) else [value] if isinstance(value, Mapping) else []:
            lines += ["", f"[[{key}]]" if _is_tables(value) else f"[{key}]"]
            lines += [f"{_key(name)} = {_value(inner)}" for name, inner in table.items()]
    return "\n".join(lines) + "\n"


def _nested(value: Any) -> bool:
    return isinstance(value, Mapping) or _is_tables(value)


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value)  # basic strings of TOML have the escapes of JSON
    return repr(value)


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() else json.dumps(key)

"""Implement `run`, which executes a campaign."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wattwire.catalog import Catalog
from wattwire.cli import exit_status, studies, study_variants
from wattwire.cli.options import comparison_options, meter_addresses, study_options, variant_options
from wattwire.cli.planning.confirmation import confirm_long, needs_confirmation, presets_of
from wattwire.cli.planning.percentiles_ahead import too_few_lines
from wattwire.cli.planning.printed_plan import cautions_here
from wattwire.cli.screen import make_progress
from wattwire.cli.verbs import add_verb, compare
from wattwire.cli.verbs.report import answer_of, stamps_of, tell_answers, write_report
from wattwire.cli.verbs.status import usable_by_side
from wattwire.cli.wrap import columns, wrapped
from wattwire.design import PlannedRun
from wattwire.model.errors import EXIT_NOTHING_USABLE, UsageError, WattwireError
from wattwire.model.study import Study, parse_study
from wattwire.model.validity import CONDITION_CODES
from wattwire.model.verdict import START_CODES, ended_unsent
from wattwire.model.words import plural
from wattwire.rig import host
from wattwire.run.forecast import Expected, expectations, forecast
from wattwire.run.resolve_cells import Prepared, prepare
from wattwire.store import Campaign

if TYPE_CHECKING:
    from wattwire.analysis.document import Document
    from wattwire.run.campaign import CampaignRunner, Options

AGAIN = (
    "Next: measure again when the machine is quiet. For exploration only, this command accepts the "
    "stored runs: wattwire report {} --validity look=true"
)


def add_to(verbs: Any) -> None:
    """Register the commands and their options."""
    verb = add_verb(verbs, "run", epilog=comparison_options.EXIT_CODES)
    study_options.add_options(verb)
    variant_options.add_options(verb)
    verb.add_argument("--campaign", metavar="DIR", help="directory for the new campaign")
    verb.add_argument("--resume", metavar="DIR", help="continue this campaign")
    verb.add_argument(
        "--accept",
        action="append",
        default=[],
        metavar="KEY",
        help="with --resume: accept a change of this fact about the machine",
    )
    study_options.add_look(verb)
    verb.add_argument(
        "--yes", action="store_true",
        help="do not ask for confirmation of a long plan or of many processes",
    )  # fmt: skip
    verb.add_argument("--no-report", action="store_true", help="do not write the page at the end")
    verb.add_argument(
        "--plain", action="store_true", help="print progress as plain lines, for logs"
    )
    verb.add_argument(
        "--json", action="store_true", help="print progress as JSON lines, for programs"
    )
    verb.set_defaults(call=run)


def run(options: argparse.Namespace) -> int:
    """Run a study or resume a campaign, then write the page."""
    catalog = Catalog()
    compare.refuse_outputs(options)
    if not options.resume:
        _ask_first(options, catalog)
    progress = make_progress(options.json, options.plain)
    try:
        if options.resume:
            runner = _resumed(options, catalog, progress)
        else:
            runner = _begun(options, catalog, progress)
        path = runner.campaign.path
        execute(runner, exit_status.suspects)
    except KeyboardInterrupt:
        for name in ("junit", "markdown"):
            if getattr(options, name):
                print(f"--{name} {getattr(options, name)}: not written", file=sys.stderr)
        raise
    finally:
        progress.close()
    return _close(path, options, progress)


def execute(
    runner: CampaignRunner, suspects: Callable[[Campaign], list[str]] | None = None
) -> None:
    """Execute the remaining runs and close the agent. On an interrupt, print how to resume.

    `suspects` returns the keys of the treatments to measure again after all runs.
    """
    try:
        runner.execute()
        suspect_keys = suspects(runner.campaign) if suspects else []
        if suspect_keys:
            runner.measure_again(suspect_keys)
            runner.execute()
    except KeyboardInterrupt:
        if runner.remaining:
            directory = shlex.quote(str(runner.campaign.path))
            print(f"Continue with: wattwire run --resume {directory}", file=sys.stderr)
        raise
    finally:
        runner.close()


def _begun(options: argparse.Namespace, catalog: Catalog, progress: Any) -> CampaignRunner:
    from wattwire.run.campaign import Options  # noqa: PLC0415 - slow to import

    study = _loaded(options, catalog, options.preset)
    parsed = parse_study(study[0], study[2], str(study[1]))
    choose = studies.chooser(parsed, options.only, catalog)
    stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    directory = Path(options.campaign or f"campaigns/{study[0]}-{stamp}")
    meters = meter_addresses.chosen(options, catalog, parsed.rig)
    runner_options = Options(choose=choose, only=options.only or "", rig=parsed.rig, meters=meters,
                             align=options.align)  # fmt: skip
    return begin(directory, catalog, progress, study, runner_options)


def _loaded(
    options: argparse.Namespace, catalog: Catalog, preset: str | None
) -> tuple[str, Path, dict[str, Any]]:
    """Return the name, the file and the document of the study, with any variants."""
    name, path, document = studies.loaded(catalog, options, preset)
    return name, path, study_variants.applied(document, options)


def begin(
    directory: Path,
    catalog: Catalog,
    progress: Any,
    study: tuple[str, Path | None, dict[str, Any]],
    options: Options | None = None,
) -> CampaignRunner:
    """Build the cells of a new campaign, write its plan and return its runner.

    A failure leaves no campaign folder.
    """
    from wattwire.run.campaign import CampaignRunner, Options  # noqa: PLC0415 - slow to import

    runner = CampaignRunner(Campaign.create(directory), catalog, progress)
    try:
        runner.begin(*study, options or Options())
    except BaseException:
        runner.close()
        if not (directory / "plan.json").exists():
            # Nothing was measured. The folder contains only files of this call.
            shutil.rmtree(directory, ignore_errors=True)
        raise
    return runner


def _ask_first(options: argparse.Namespace, catalog: Catalog) -> None:
    """Request confirmation of a long plan or of many processes, before anything is built."""

    def planned(
        preset: str | None, warn: bool = False
    ) -> tuple[Study, list[PlannedRun], dict[str, Expected]]:
        name, path, document = _loaded(options, catalog, preset)
        study = parse_study(name, document, str(path))
        choose = studies.chooser(study, options.only, catalog)
        prepared = prepare(study, catalog, None, choose)
        expected = expectations(prepared.treatments, prepared.cells, host.cores())
        if warn:
            _warn(study, prepared)
        return study, prepared.plan(study.plan), expected

    study, runs, expected = planned(options.preset, warn=True)
    estimate = forecast(study, runs, expected, options.align)
    if options.yes or not needs_confirmation(runs, estimate):
        return
    presets = {}
    for name in presets_of(catalog, options.study):
        with contextlib.suppress(WattwireError):  # skip a preset that cannot be run on this machine
            presets[name] = forecast(*planned(name), options.align).seconds
    confirm_long(study, runs, presets, estimate)


def _warn(study: Study, prepared: Prepared) -> None:
    """Print the cautions of `plan` to standard error: after the runs, they come too late."""
    cautions = [
        *too_few_lines(study, prepared.treatments), *cautions_here(study, prepared)
    ]  # fmt: skip
    for text in cautions:
        print(wrapped(f"Caution: {text}.", columns(sys.stderr)), file=sys.stderr)


def _resumed(options: argparse.Namespace, catalog: Catalog, progress: Any) -> CampaignRunner:
    from wattwire.run.campaign import CampaignRunner, Options  # noqa: PLC0415 - slow to import

    if options.campaign:
        raise UsageError("--resume DIR already names the campaign; leave out --campaign")
    if options.align:
        raise UsageError(
            "--align: found with --resume; allowed: for a new campaign. A campaign that began with "
            "--align continues with it, and one without it has no load before its first run"
        )
    document = None
    if options.study:
        _, _, document = _loaded(options, catalog, options.preset)
    elif any((options.preset, options.changes, options.only, options.warmup, options.variants,
              options.confirm, options.look, options.rig, options.response,
              options.margin)):  # fmt: skip
        look = (
            ". Resume without --look; this command then accepts the stored runs: wattwire report "
            f"{shlex.quote(options.resume)} --validity look=true"
        )
        raise UsageError(
            "--resume uses the frozen study: --preset, --set, --rig, --only, --warmup, --variant, "
            "--confirm, --response, --margin and --look are allowed only for a new campaign"
            + (look if options.look else "")
        )
    runner = CampaignRunner(Campaign(Path(options.resume)), catalog, progress)
    try:
        meters = meter_addresses.chosen(options, catalog)
        runner.resume(document, Options(accept=tuple(options.accept), meters=meters))
    except BaseException:
        runner.close()
        raise
    return runner


def _close(path: Path, options: argparse.Namespace, progress: Any) -> int:
    from wattwire.analysis.topics.comparison.result import ComparedVariants  # noqa: PLC0415
    from wattwire.analysis.topics.limits.numbers import Limits  # noqa: PLC0415 - slow to import

    campaign = Campaign(path)
    rows = _measured(campaign.rows())
    usable = sum(row["used"] for row in rows)
    try:
        if options.no_report:
            page, (lines, document) = None, _answered(campaign)
        else:
            page, document = write_report(path)
            lines = answer_of(page)
        compared = document.result(ComparedVariants)
        outcome = exit_status.of(campaign, document.result(Limits), compared)
        if not options.json:
            lines = exit_status.without_verdict(lines, outcome)
        remedy = _remedy(campaign, rows)
    finally:
        campaign.close()
    try:
        code = exit_status.hand_out(outcome, options)
    finally:  # print the answer even if the disk is full
        _print_outcome(path, page, (lines, document), rows, remedy, options, progress)
    return code if usable else EXIT_NOTHING_USABLE


def _print_outcome(
    path: Path,
    page: Path | None,
    answered: tuple[Sequence[str], Document],
    rows: Sequence[Mapping[str, Any]],
    remedy: str,
    options: argparse.Namespace,
    progress: Any,
) -> None:
    """Print the answers, the number of valid runs, the paths of campaign and page, and a remedy."""
    lines, document = answered
    if options.json:
        fields = {"answer": lines[0], "unanswered": lines[1:], "validity": stamps_of(page)}
        usable = sum(row["used"] for row in rows)
        progress.event("report", page=str(page) if page else None, usable=usable, **fields)
    else:
        cause = None if any(row["used"] for row in rows) else _common_cause(path)
        if cause:
            print(wrapped(cause, columns(sys.stdout)))
        tell_answers(lines, document, stamps_of(page))
        print(f"{_usable_words(rows)}: {path}")
        if page:
            print(page.resolve())
        if remedy:
            print(wrapped(remedy, columns(sys.stdout)))


def _remedy(campaign: Campaign, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return what to do if more than half of the design's runs are excluded, or "".

    Only the machine's state permits a look at the stored runs; any other reason has its own remedy.
    """
    design, *_ = usable_by_side(rows)
    invalid = [row for row in rows if row["verdict"] == "invalid"]
    if not invalid or 2 * sum(design.values()) >= len(design):
        return ""
    others = (
        f"{row['run']} is invalid: {reason['detail']}"
        for row in invalid
        for reason in campaign.run(f"{row['run']}-{row['attempt']}")["reasons"]
        if reason["code"] not in CONDITION_CODES
    )
    return next(others, AGAIN.format(shlex.quote(str(campaign.path))))


def _measured(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of the summary, marked as unused if no run has a record of a message.

    If other runs have records, nodes that ended without a record are a result.
    """
    if all(ended_unsent(row) for row in rows if row["used"]):
        return [{**row, "used": False} for row in rows]
    return rows


def _answered(campaign: Campaign) -> tuple[Sequence[str], Document]:
    """Return the headline, one line per question without a number, and all results.

    The function is used if no page is written.
    """
    from wattwire.analysis.dataset import gather  # noqa: PLC0415
    from wattwire.analysis.document import document
    from wattwire.report.headline import page_headline, questions_without_answer

    results = document(gather(campaign))
    title = " ".join(page_headline(results))
    lines = [title, *questions_without_answer(results)]
    return lines, results


def _common_cause(path: Path) -> str | None:
    """Return a sentence on the most frequent reason if attempts failed before GO, else None."""
    with contextlib.closing(Campaign(path)) as campaign:
        details = Counter(
            reason["detail"]
            for done in campaign.finished().values()
            for reason in campaign.run(str(done[-1].folder)).get("reasons", [])
            if reason["code"] in START_CODES
        )
        runs = len(campaign.finished())
    if not details:
        return None
    detail, count = details.most_common(1)[0]
    return f"{detail}. This is the reason in {count} of {plural(runs, 'run')}."


def _usable_words(rows: Sequence[Mapping[str, Any]]) -> str:
    """Describe the numbers of valid design runs, control runs and traced runs."""
    design, controls, traced = usable_by_side(rows)
    text = f"{sum(design.values())} of {plural(len(design), 'design run')}"
    if controls:
        text += f" and {sum(controls.values())} of {plural(len(controls), 'control run')}"
    if traced:
        runs = plural(len(traced), "run")
        text += f" and {sum(traced.values())} of {runs} that count system calls"
    alone = len(design) == 1 and not controls and not traced
    return f"{text} {'is' if alone else 'are'} valid"

"""Implement `report`, which writes the page of a campaign."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wattwire.cli import exit_status
from wattwire.cli.studies import change
from wattwire.cli.verbs import add_verb
from wattwire.cli.wrap import columns, wrapped
from wattwire.model import LazyModule
from wattwire.model.errors import UsageError
from wattwire.model.outside_meters import CLASS_WORDS, accuracy_class
from wattwire.model.study import parse_validity
from wattwire.model.validity import VALIDITY
from wattwire.store import Campaign, ImportedCampaign, open_campaign

if TYPE_CHECKING:
    import polars as pl

    from wattwire.analysis.dataset import CampaignReader
    from wattwire.analysis.document import Document
else:
    pl = LazyModule("polars")


def add_to(verbs: Any) -> None:
    """Register the command."""
    verb = add_verb(
        verbs,
        "report",
        description="Writes the page of a finished or unfinished campaign, and prints its answers. "
        "With --from, it writes the page of a stored report to the new folder DIR, without the "
        "campaign.",
        epilog="Exit codes: 0 success; 1 a limit of the study is broken; 2 usage; 3 this machine "
        "lacks a requirement; 5 a limit is undecided.",
    )
    verb.add_argument(
        "campaign", metavar="DIR", help="the campaign; with --from, the folder to write"
    )
    verb.add_argument(
        "--from",
        dest="stored",
        metavar="FILE",
        help="print the report whose results are in FILE, DIR/report/analysis.json of a campaign, "
        "and in the files next to it",
    )
    verb.add_argument(
        "--validity",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="judge the stored runs again with another validity limit, e.g. steal_max=0.1 or "
        "look=true; nothing is measured, and the page reports the change",
    )
    verb.add_argument(
        "--figures",
        action="store_true",
        help="also write every figure as SVG and PDF and every table as LaTeX, for print",
    )
    verb.add_argument(
        "--trace",
        metavar="FILE",
        help="put in the power that an oscilloscope or an analyser recorded: a CSV file with the "
        "unit of each column in its header, such as `time (s), power (mW)`; the campaign needs "
        "`wattwire run --align`, and stores the trace",
    )
    verb.add_argument(
        "--trace-class",
        metavar="CLASS",
        help="with --trace: the accuracy that the vendor states, " + CLASS_WORDS.replace("%", "%%"),
    )
    verb.set_defaults(call=report)


def write_report(campaign: Path | CampaignReader, printed: bool = False) -> tuple[Path, Document]:
    """Write the page of a campaign, and return its path and the results on it.

    If `printed` is true, also write the print files.
    """
    from wattwire.report import page  # noqa: PLC0415 - plotting is slow to import

    return page.write_report(campaign, printed)


def answer_of(page: Path) -> list[str]:
    """Return the headline of a written page, and one line per question without a number."""
    return (page.parent / "answer.txt").read_text("utf-8").strip().splitlines()


def tell_answers(lines: Sequence[str], document: Document, stamps: str) -> None:
    """Print the headline, the table of answers and the notice on validity limits."""
    from wattwire.cli import answer_table  # noqa: PLC0415 - words of the page are slow to import

    width = columns(sys.stdout)
    for line in lines:
        print(wrapped(line, width, hanging=""))
    for line in answer_table.lines(document, width):
        print(line)
    for line in stamps.splitlines():
        print(wrapped(line, width, hanging=""))


def stamps_of(page: Path | None) -> str:
    """Return a page's notice about a look or about changed validity limits.

    The result is "" if the page has no such notice.
    """
    path = page.parent / "validity.txt" if page else None
    return path.read_text("utf-8").strip() if path and path.is_file() else ""


def report(options: argparse.Namespace) -> int:
    """Write the page of a campaign, and print its answer and the broken limits.

    The campaign may be incomplete.
    """
    if options.trace_class is not None and not options.trace:
        raise UsageError("--trace-class: allowed only with --trace FILE")
    if options.stored is not None:
        return _from_stored(options)
    campaign = open_campaign(Path(options.campaign))
    try:
        if options.trace:
            _put_in(campaign, Path(options.trace), options.trace_class)
        reader = _rejudged(campaign, options.validity) if options.validity else campaign
        return _print_result(*write_report(reader, options.figures))
    finally:
        campaign.close()


def _from_stored(options: argparse.Namespace) -> int:
    """Write the page of a stored report, and print its answer and the broken limits.

    Raises UsageError with --validity, because the verdicts on runs are in the campaign.
    """
    from wattwire.report import page  # noqa: PLC0415 - plotting is slow to import

    if options.trace:
        raise UsageError("--trace: not allowed with --from, because only a campaign has the loads")
    if options.validity:
        raise UsageError(
            "--validity: not allowed with --from, because only a campaign has the runs to judge. "
            "Use `wattwire report DIR --validity KEY=VALUE`."
        )
    written = page.write_stored(Path(options.stored), Path(options.campaign), options.figures)
    return _print_result(*written)


def _put_in(campaign: Campaign | ImportedCampaign, path: Path, class_text: str | None) -> None:
    """Store a trace in its campaign. Raises UsageError for a trace that cannot be aligned."""
    from wattwire.analysis.topics.power_trace.numbers import clock_of  # noqa: PLC0415 - slow
    from wattwire.imports import power_trace  # noqa: PLC0415 - slow to import
    from wattwire.stats import NotComputable  # noqa: PLC0415 - slow to import

    if isinstance(campaign, ImportedCampaign):
        raise UsageError(f"{campaign.path}: --trace: this campaign was imported, without a load")
    if class_text is None:
        raise UsageError(f"--trace-class: missing; allowed: {CLASS_WORDS}")
    accuracy = accuracy_class(class_text, "--trace-class")
    trace = power_trace.read(path)
    about = {"file": path.name, "share": accuracy.share, "watts": accuracy.watts}
    clock = clock_of(campaign.alignment_loads(), trace.times_s, trace.powers_w, about)
    if isinstance(clock, NotComputable):
        raise UsageError(f"{path}: {clock.reason}. The trace was not put in.")
    columns = {"time_s": trace.times_s, "power_w": trace.powers_w}
    campaign.write_trace(pl.DataFrame(columns), about)


def _print_result(page: Path, document: Document) -> int:
    """Print the answers, the page's path and the verdict on limits, and return the exit code."""
    from wattwire.analysis.topics.limits.numbers import Limits  # noqa: PLC0415

    tell_answers(answer_of(page), document, stamps_of(page))
    print(page.resolve())
    return exit_status.of_limits(document.result(Limits))


def _rejudged(campaign: Campaign | ImportedCampaign, changes: list[str]) -> Any:
    """Return the campaign with verdicts according to its validity limits and these changes.

    Raises UsageError for an imported campaign and for an invalid change.
    """
    from wattwire.analysis.rejudged import Rejudged  # noqa: PLC0415 - slow to import

    if isinstance(campaign, ImportedCampaign):
        raise UsageError(
            f"{campaign.path}: --validity: this campaign was imported; it stores no data on the "
            "state of the machine during its runs"
        )
    study = campaign.study.document
    for text in changes:
        if "=" not in text:
            raise UsageError(f"--validity {text}: allowed: KEY=VALUE, e.g. steal_max=0.1")
        study = change(study, f"{VALIDITY}.{text.removeprefix(f'{VALIDITY}.')}")
    keys = {text.partition("=")[0].removeprefix(f"{VALIDITY}.") for text in changes}
    if "look" not in keys and study[VALIDITY].get("look"):
        # A look has no limits, so a given limit disables the look.
        study = change(study, f"{VALIDITY}.look=false")
        changes = [*changes, "look=false"]
    limits = parse_validity(study[VALIDITY], "--validity")
    return Rejudged(campaign, limits, ", ".join(changes))

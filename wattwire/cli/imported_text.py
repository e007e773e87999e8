"""Format text about an imported campaign for the command line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wattwire.cli.wrap import wrapped
from wattwire.model.errors import UsageError, nearest
from wattwire.model.words import count, number, plural
from wattwire.store import ImportedCampaign

REASONS_MAX = 12
"""Maximum number of printed reasons. set_aside.csv lists every file."""
FILES_MAX = 4


def summary_lines(campaign: ImportedCampaign, width: int) -> Iterator[str]:
    """Yield lines on the data, the exclusions, and the agreement with printed numbers."""
    about = campaign.document
    values = plural(int(about["values"]), "value")
    yield wrapped(
        f"{count(about['usable'])} of {plural(about['runs'], 'run')} "
        f"{'is' if about['runs'] == 1 else 'are'} valid, "
        f"with {values} from {plural(about['files'], 'file')}: {campaign.path}",
        width,
    )
    if campaign.study.comparable is not None:  # an imported table whose factors have one level each
        columns = ", ".join(campaign.study.comparable)
        column_hint = f", for example {columns}" if columns else ""
        yield wrapped(
            "There is nothing to compare, because each factor has one level. Import again with "
            f"--factor COLUMN for a column in which runs differ{column_hint}.",
            width,
        )
    if about["recipe"]:
        yield f"Recipe: {about['recipe']}."
    reasons = sorted(about["set_aside"].items(), key=lambda item: -item[1])
    if reasons:
        yield f"Excluded files and rows (full list: {campaign.path / 'set_aside.csv'}):"
    for reason, item_count in reasons[:REASONS_MAX]:
        yield wrapped(f"  {count(item_count)} × {reason}", width)
    if len(reasons) > REASONS_MAX:
        yield f"  and {plural(len(reasons) - REASONS_MAX, 'more reason')}"
    if not about["recipe"]:  # the remarks of a reader are only on the page
        for remark in campaign.remarks():
            yield wrapped(f"{remark['title']}. {remark['text']}", width)
    checks = about["checks"]
    if checks:
        matches = ", ".join(
            f"{count(match_count)} {match}" for match, match_count in checks.items()
        )
        weak_words = f" (weak matches, with few digits: {count(about['weak'])})"
        yield wrapped(f"Printed numbers: {matches}{weak_words if about['weak'] else ''}.", width)


def run_lines(campaign: ImportedCampaign, run: str | None, width: int) -> list[str]:
    """Return lines on a run's treatment, verdict, values and files.

    Raises UsageError for an unknown run.
    """
    document = campaign.run(_known_run(campaign, run))
    row = campaign.summary().filter(run=document["run"]).row(0, named=True)
    levels = ", ".join(f"{name} {level}" for name, level in document["treatment"].items())
    reasons = [str(reason["detail"]) for reason in document["reasons"]]
    reason_words = f": {'; '.join(reasons)}" if reasons else ""
    lines = [f"{document['run']}: {document['verdict']}{reason_words}", f"  {levels}", ""]
    facts = campaign.columns
    provenance = campaign.provenance().filter(run=document["run"])
    for entry in provenance.iter_rows(named=True):
        value, unit = row.get(entry["column"]), facts.get(entry["column"], {}).get("unit", "")
        lines.append(f"  {entry['column']} = {number(value, 5)} {unit}".rstrip())
        lines.append(wrapped(f"    {_origin(entry)}", width, hanging="      "))
    if not provenance.height:
        lines.append("  No value of this run is known.")
    return lines


def no_commands(campaign: ImportedCampaign) -> UsageError:
    """Return the error for a request for an imported run's commands."""
    return UsageError(
        f"{campaign.path}: this campaign was imported, and its data contain no commands; leave "
        "out --commands"
    )


def _known_run(campaign: ImportedCampaign, run: str | None) -> str:
    runs = [entry["run"] for entry in campaign.plan]
    known_runs = f"Allowed: {runs[0]} to {runs[-1]}, or 1 to {len(runs)}."
    if run is None:
        raise UsageError(f"{campaign.path}: RUN is missing. {known_runs}")
    if run.isdigit() and run not in runs:
        if not 1 <= int(run) <= len(runs):
            raise UsageError(
                f"{campaign.path}: run {run} does not exist; allowed: 1 to {len(runs)}"
            )
        return str(runs[int(run) - 1])
    if run not in runs and run.rpartition("-")[0] not in runs:
        raise UsageError(f'{campaign.path}: no run "{run}".{nearest(run, runs)} {known_runs}')
    return run


def _origin(entry: dict[str, Any]) -> str:
    files = entry["files"]
    file_names = ", ".join(files[:FILES_MAX])
    more = f" and {plural(len(files) - FILES_MAX, 'more file')}" if len(files) > FILES_MAX else ""
    left_out = f", {count(entry['rows_left_out'])} excluded" if entry["rows_left_out"] else ""
    return f"{entry['how']}: {plural(entry['rows_used'], 'row')}{left_out} of {file_names}{more}"

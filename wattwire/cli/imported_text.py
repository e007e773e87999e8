"""What is told on the command line of a campaign that others measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from wattwire.cli.wrap import wrapped
from wattwire.model.errors import UsageError, nearest
from wattwire.model.words import count, number, plural
from wattwire.store import ImportedCampaign

REASONS_MAX = 12
"""So many reasons are printed; set_aside.csv has every file."""
FILES_MAX = 4


def told(campaign: ImportedCampaign, width: int) -> Iterator[str]:
    """What was read, what was set aside and why, and how the printed numbers compare."""
    about = campaign.document
    values = plural(int(about["values"]), "value")
    yield wrapped(
        f"{plural(about['usable'], 'run')} of {count(about['runs'])} can be used, with {values} "
        f"from {plural(about['files'], 'file')}: {campaign.path}",
        width,
    )
    if "comparable" in campaign.study:  # a table whose factors have one level each
        columns = ", ".join(campaign.study["comparable"])
        which = f", as in: {columns}" if columns else ""
        yield wrapped(
            "Nothing to compare: each factor has one level. Import again, with --factor for a "
            f"column in which runs differ{which}.",
            width,
        )
    if about["recipe"]:
        yield f"Recipe: {about['recipe']}."
    reasons = sorted(about["set_aside"].items(), key=lambda item: -item[1])
    if reasons:
        yield f"Set aside, each by name in {campaign.path / 'set_aside.csv'}:"
    for why, places in reasons[:REASONS_MAX]:
        yield wrapped(f"  {count(places)} × {why}", width)
    if len(reasons) > REASONS_MAX:
        yield f"  and {plural(len(reasons) - REASONS_MAX, 'more reason')}"
    if not about["recipe"]:  # a table: a reader's findings are many, and stand on the page
        for finding in campaign.findings():
            yield wrapped(f"{finding['title']}. {finding['text']}", width)
    checks = about["checks"]
    if checks:
        verdicts = ", ".join(f"{count(found)} {verdict}" for verdict, found in checks.items())
        weak = f" ({count(about['weak'])} of the matches are weak: few digits)"
        yield wrapped(f"Printed numbers: {verdicts}{weak if about['weak'] else ''}.", width)


def run_lines(campaign: ImportedCampaign, run: str | None, width: int) -> list[str]:
    """One run: treatment, verdict, values and the files they come from. Raises UsageError."""
    document = campaign.run(_named(campaign, run))
    row = campaign.summary().filter(pl.col("run") == document["run"]).row(0, named=True)
    levels = ", ".join(f"{name} {level}" for name, level in document["treatment"].items())
    reasons = [str(reason["detail"]) for reason in document["reasons"]]
    why = f": {'; '.join(reasons)}" if reasons else ""
    lines = [f"{document['run']}: {document['verdict']}{why}", f"  {levels}", ""]
    about = campaign.columns
    provenance = campaign.provenance().filter(pl.col("run") == document["run"])
    for one in provenance.iter_rows(named=True):
        value, unit = row.get(one["column"]), about.get(one["column"], {}).get("unit", "")
        lines.append(f"  {one['column']} = {number(value, 5)} {unit}".rstrip())
        lines.append(wrapped(f"    {_origin(one)}", width, hanging="      "))
    if not provenance.height:
        lines.append("  No value of this run is known.")
    return lines


def no_commands(campaign: ImportedCampaign) -> UsageError:
    """Why nothing of such a campaign can be done again by hand."""
    return UsageError(
        f"{campaign.path}: others ran this campaign, and how its processes were started is not "
        "in their data; leave out --commands"
    )


def _named(campaign: ImportedCampaign, run: str | None) -> str:
    runs = [entry["run"] for entry in campaign.plan]
    known = f"Its {len(runs)} runs are {runs[0]} to {runs[-1]}, or 1 to {len(runs)}."
    if run is None:
        raise UsageError(f"{campaign.path}: no RUN given. {known}")
    if run.isdigit() and run not in runs:
        if not 1 <= int(run) <= len(runs):
            raise UsageError(f"{campaign.path}: run {run}: allowed: 1 to {len(runs)}")
        return str(runs[int(run) - 1])
    if run not in runs and run.rpartition("-")[0] not in runs:
        raise UsageError(f'{campaign.path}: no run "{run}".{nearest(run, runs)} {known}')
    return run


def _origin(one: dict[str, Any]) -> str:
    files = one["files"]
    named = ", ".join(files[:FILES_MAX])
    more = f" and {plural(len(files) - FILES_MAX, 'more file')}" if len(files) > FILES_MAX else ""
    left = f", {count(one['rows_left_out'])} left out" if one["rows_left_out"] else ""
    return f"{one['how']}: {plural(one['rows_used'], 'row')}{left} of {named}{more}"

"""Reads the package of Georgiou and Spinellis (2020) into a campaign; README.md says how."""

from __future__ import annotations

from pathlib import Path

from wattwire.imports import Imported
from wattwire.imports.progress import tell
from wattwire.model.errors import UsageError

from . import checks, described, layout, printed, remarks, sheets, table
from .known import Known
from .observed import Collected
from .runs import tabulate

RECIPES = {
    "right": "energy of a run = sum of its samples − idle power × that run's own client time, "
    "where the samples cover that time; what can't be told stays missing",
    "authors": "energy of a run = sum of its samples − idle power × the time that the tables "
    "print (mostly that of the first run alone); failed runs and sums of one sample count",
}


def read(source: Path, recipe: str) -> Imported:
    """Read the authors' folders in `source`, or a table with a row per run, or both.

    Where both are there, files go first and the table fills what they lack. Raises UsageError
    where neither is.
    """
    source = Path(source)
    collected = Collected()
    folders = layout.platforms(source) if source.is_dir() else {}
    listed = table.find(source)
    if not folders and listed is None:
        raise UsageError(
            f"{source}: found no folder intel or arm with passes (client, server, "
            "resource_usage, …) and no table with a row per run; give the folder that holds them"
        )
    layout.read(source, collected)
    known_sheets = sheets.read(source, folders, collected)
    if listed is not None:
        tell(f"reading {listed.name}")
        table.read(listed, collected)
    tables = printed.load()
    made = tabulate(collected, recipe, tables.times())
    if made.runs.height == 0:
        raise UsageError(f"{source}: found folders of passes, and no file of a run in them")
    known = Known(collected, known_sheets)
    tell("comparing the printed numbers")
    compared = checks.all_checks(known, tables)
    return Imported(
        study=described.study(made.runs),
        runs=made.runs,
        provenance=made.provenance,
        set_aside=(*collected.set_aside, *made.set_aside),
        columns=made.columns,
        reasons=made.reasons,
        checks=compared,
        remarks=remarks.all_remarks(known, tables, compared),
        machine=described.MACHINE,
    )

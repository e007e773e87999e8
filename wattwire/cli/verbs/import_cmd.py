"""Implement `import`, which creates a campaign from published data or from a table."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console

from wattwire import __version__, imports
from wattwire.catalog.catalog import default_roots
from wattwire.cli import imported_text
from wattwire.cli.verbs import add_verb
from wattwire.cli.verbs.report import answer_of, tell_answers, write_report
from wattwire.cli.wrap import columns, unfiltered, wrapped
from wattwire.imports import progress, table
from wattwire.model.errors import EXIT_OK, UsageError
from wattwire.model.publication import READER_FILE
from wattwire.store.imported import refuse_used

CSV = "csv"


def add_to(verbs: Any) -> None:
    """Register the command and its options."""
    verb = add_verb(
        verbs,
        "import",
        description="STUDY reads the data of its paper from DIR, in the layout of the authors. "
        "`import csv FILE --response COL:UNIT --factor COL` reads any table with a row per run. "
        "Without arguments: list the readable studies and their recipes.",
    )
    verb.add_argument("study", nargs="?", metavar="STUDY", help="a study that has a reader, or csv")
    verb.add_argument(
        "source",
        nargs="?",
        metavar="DIR",
        help="folder with the authors' data; for csv: the CSV file",
    )
    verb.add_argument(
        "--recipe", metavar="NAME", help="the recipe of the reader (default: its first recipe)"
    )
    verb.add_argument("--campaign", metavar="DIR", help="directory for the new campaign")
    verb.add_argument("--no-report", action="store_true", help="do not write the page")
    csv_options = verb.add_argument_group("for csv")
    csv_options.add_argument(
        "--response",
        action="append",
        default=[],
        metavar="COL[:UNIT]",
        help="a column of numbers to explain (repeatable)",
    )
    csv_options.add_argument(
        "--factor",
        action="append",
        default=[],
        metavar="COL",
        help="a column of levels to compare (repeatable)",
    )
    csv_options.add_argument("--block", metavar="COL", help="a column with the block of each run")
    csv_options.add_argument(
        "--run", metavar="COL", help="a column that names the run; its rows are averaged"
    )
    csv_options.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="COL=VALUE",
        help="import only rows with this value, e.g. status=OK (repeatable; values of one column "
        "are alternatives)",
    )
    for better in ("higher", "lower"):
        csv_options.add_argument(
            f"--{better}-is-better",
            action="append",
            default=[],
            metavar="COL",
            help=f"a response of which a {better} value is better, if its name and unit do not "
            "tell (repeatable)",
        )
    csv_options.add_argument(
        "--rows-are-runs",
        action="store_true",
        help="accept correlated consecutive rows as independent runs",
    )
    verb.set_defaults(call=import_data)


def import_data(options: argparse.Namespace) -> int:
    """Read the data, write the campaign and its page, and print a summary and the answers.

    Without a study, print the studies that have a reader. Raises UsageError for a study without a
    folder of data.
    """
    from wattwire.run.results.schema import describe  # noqa: PLC0415 - imports all of wattwire.run

    if options.study is None:
        return _list()
    if options.source is None and Path(options.study).is_file():
        raise UsageError(
            f"import {options.study}: this is a file; write `import csv {options.study} "
            "--response COL:UNIT --factor COL`"
        )
    if options.source is None:
        raise UsageError(f"import {options.study}: DIR is missing; name the folder with the data")
    source = Path(options.source)
    stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    with _step_line() as show_step:
        if options.study == CSV:
            name, recipe, data = source.stem, "", _table(options, source)
        else:
            name, recipe, data = _read(options, source)
        folder = Path(options.campaign or f"campaigns/{_folder_name(name)}-import-{stamp}")
        refuse_used(folder)
        about = {
            "study": name,
            "recipe": recipe,
            "source": str(source),
            "wattwire": __version__,
            "imported": datetime.datetime.now(datetime.timezone.utc).isoformat("T", "seconds"),
        }
        campaign = imports.write(data, folder, about, describe(data.runs.columns))
        show_step("writing the page")
        written = None if options.no_report else write_report(folder)
    print("\n".join(imported_text.summary_lines(campaign, columns(sys.stdout))))
    if written:
        page, document = written
        tell_answers(answer_of(page), document, "")
    print(page.resolve() if written else f"Next: wattwire report {shlex.quote(str(folder))}")
    return EXIT_OK


def _list() -> int:
    """Print the studies that have a reader, and the recipes of each reader."""
    reader_folders = imports.readers(default_roots())
    for name, folder in sorted(reader_folders.items()):
        print(f"{name}")
        recipes = imports.listed_recipes(folder)
        if not recipes:
            print(f"  RECIPES in {folder / READER_FILE} is no dict of texts, so it is not listed")
        for recipe, summary in recipes.items():
            print(wrapped(f"  {recipe}: {summary}", columns(sys.stdout)))
    print("csv\n  any table: import csv FILE --response COL:UNIT --factor COL")
    return EXIT_OK


def _read(options: argparse.Namespace, source: Path) -> tuple[str, str, imports.Imported]:
    given = {"--response": options.response, "--factor": options.factor}
    given |= {"--block": options.block, "--run": options.run}
    given |= {"--where": options.where, "--rows-are-runs": options.rows_are_runs}
    given |= {"--higher-is-better": options.higher_is_better}
    given |= {"--lower-is-better": options.lower_is_better}
    foreign = [name for name, value in given.items() if value]
    if foreign:
        raise UsageError(f"{', '.join(foreign)}: allowed only with `import csv FILE`")
    if options.campaign:
        refuse_used(Path(options.campaign))
    folder = imports.folder_of(options.study, default_roots())
    print(f"Executes {folder / READER_FILE}", file=sys.stderr)
    reader = imports.load(folder)
    recipe = options.recipe or reader.default
    return reader.study, recipe, reader.read(source, recipe)


def _table(options: argparse.Namespace, source: Path) -> imports.Imported:
    if options.recipe:
        raise UsageError("--recipe: a table has no recipes; leave out the option")
    request = table.TableRequest(
        tuple(table.response(text) for text in options.response),
        tuple(options.factor),
        options.block,
        options.run,
        tuple(table.condition(text) for text in options.where),
        options.rows_are_runs,
        tuple(options.higher_is_better),
        tuple(options.lower_is_better),
    )
    return table.read(source, request)


def _folder_name(name: str) -> str:
    """Return `name` with only the characters that are safe in a folder name."""
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in name).strip(".-") or "table"


@contextlib.contextmanager
def _step_line() -> Iterator[progress.Listener]:
    """Yield a listener that shows the current step on a terminal and clears it at the end."""
    console = Console(file=unfiltered(sys.stderr))
    if not console.is_terminal:
        yield lambda text: None
        return
    with console.status("reading") as line, progress.listening(line.update):
        yield line.update

"""list, build, check: what is in the open folders."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from wattwire.catalog import Catalog, Cell
from wattwire.catalog.manifest import read_toml
from wattwire.cli.wrap import columns, wrapped
from wattwire.model.errors import EXIT_BAD_RESULT, EXIT_ENVIRONMENT, EXIT_OK, MissingError
from wattwire.rig import AgentClient, Builder


def add_to(verbs: Any) -> None:
    """Register the verbs and their options."""
    verb = verbs.add_parser("list", help="what there is: studies, cells, meters")
    verb.add_argument("what", nargs="?", choices=["studies", "cells", "meters"])
    verb.set_defaults(call=list_things)

    verb = verbs.add_parser("build", help="build cells (all, if none is named)")
    verb.add_argument("cells", nargs="*", metavar="CELL")
    verb.set_defaults(call=build)

    verb = verbs.add_parser("check", help="run the conformance suite on cells")
    verb.add_argument("cells", nargs="*", metavar="CELL", help="name or path; all if none")
    verb.add_argument(
        "--clause",
        action="append",
        metavar="C-NN",
        help="only these clauses, scenarios, or pair: the language pairs",
    )
    verb.add_argument(
        "--no-pairs",
        action="store_true",
        help="leave out the language pairs (one CELL has them with all others, several among them)",
    )
    verb.set_defaults(call=check)


def list_things(options: argparse.Namespace) -> int:
    """List studies, cells and meters that the catalogue finds."""
    catalog = Catalog()
    if options.what in (None, "studies"):
        print(f"{len(catalog.studies)} studies")
        for name, folder in sorted(catalog.studies.items()):
            _print_row(name, read_toml(folder / "study.toml").get("title", ""))
    if options.what in (None, "cells"):
        print(f"{len(catalog.cells)} cells")
        for name in catalog.cells:
            cell = catalog.cell(name)
            _print_row(name, ", ".join(cell.document["patterns"]))
    if options.what in (None, "meters"):
        print(f"{len(catalog.meters)} meters")
        for name, folder in sorted(catalog.meters.items()):
            _print_row(name, read_toml(folder / "meter.toml").get("summary", ""))
    return EXIT_OK


def _print_row(name: str, text: str) -> None:
    """One member of an open folder; what does not fit stands under its text."""
    print(wrapped(f"{name:<17} {text}", columns(sys.stdout), "  ", " " * 18))


def chosen_cells(catalog: Catalog, names: list[str]) -> list[Cell]:
    """Cells by name or by path (middleware/NAME/CELL); all of them if none is named."""
    if not names:
        return [catalog.cell(name) for name in catalog.cells]
    return [catalog.cell("/".join(Path(name).parts[-2:])) for name in names]


def build(options: argparse.Namespace) -> int:
    """Build cells; one that cannot be built does not stop the others."""
    catalog = Catalog()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="wattwire-") as state:
        agent = AgentClient(Path(state))
        try:
            builder = Builder(agent, lambda text: _say(text, "  "))
            for cell in chosen_cells(catalog, options.cells):
                try:
                    result = builder.cell(cell)
                    print(f"{cell.name}: {'was built before' if result.cached else 'built'}")
                except MissingError as error:
                    failed += 1
                    _say(f"{cell.name}: absent: {error}")
        finally:
            agent.close()
    return EXIT_ENVIRONMENT if failed else EXIT_OK


def _say(text: str, indent: str = "") -> None:
    print(wrapped(text, columns(sys.stdout), indent), flush=True)


def check(options: argparse.Namespace) -> int:
    """Run the conformance suite; every failure names the clause that it breaks."""
    from wattwire.cli.conformance import check_cells  # noqa: PLC0415 - needs the repository

    failures = check_cells(options.cells, options.clause, pairs=not options.no_pairs)
    return EXIT_BAD_RESULT if failures else EXIT_OK

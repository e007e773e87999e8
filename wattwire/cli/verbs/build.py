"""Implement `build`, which builds cells before the first run."""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from wattwire.catalog import Catalog
from wattwire.cli.screen import make_progress
from wattwire.cli.verbs import add_verb
from wattwire.cli.wrap import columns, wrapped
from wattwire.model.errors import EXIT_ENVIRONMENT, EXIT_OK, MissingError
from wattwire.rig import AgentClient, Builder


def add_to(verbs: Any) -> None:
    """Register the command."""
    verb = add_verb(verbs, "build")
    verb.add_argument("cells", nargs="*", metavar="CELL")
    verb.set_defaults(call=build)


def build(options: argparse.Namespace) -> int:
    """Build cells and probes. If one cannot be built, the others are still built."""
    catalog = Catalog()
    failed = 0
    progress = make_progress(as_json=False, plain=False)
    with tempfile.TemporaryDirectory(prefix="wattwire-") as state_folder:
        agent = AgentClient(Path(state_folder))
        try:
            builder = Builder(agent, lambda step: progress.event("building", **asdict(step)))
            probes = [name for name in options.cells if name in catalog.probes]
            names = [name for name in options.cells if name not in probes]
            cells = catalog.cells_like(names) if names or not probes else []
            cells += map(catalog.probe, probes)
            builder.unbuilt(cells)
            for cell in cells:
                try:
                    result = builder.cell(cell)
                    print(f"{cell.name}: {'was built before' if result.cached else 'built'}")
                except MissingError as error:
                    failed += 1
                    text = f"{cell.name}: absent: {error}"
                    print(wrapped(text, columns(sys.stdout)), flush=True)
        finally:
            progress.close()
            agent.close()
    return EXIT_ENVIRONMENT if failed else EXIT_OK

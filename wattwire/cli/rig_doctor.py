"""Implement `doctor --rig`, which reports what changes results on the hosts of a rig."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from wattwire import __version__
from wattwire.catalog import Catalog
from wattwire.catalog.manifest import read_toml
from wattwire.catalog.rigs import load_rig
from wattwire.cli.wrap import beside
from wattwire.hosts import Hosts
from wattwire.hosts.health import MISSING, NOTE, OK, Finding, Health, check_rig
from wattwire.model.errors import EXIT_ENVIRONMENT, EXIT_OK

WIDTH = 80
INDENT = " " * 6
MARKS = {OK: "+", MISSING: "-", NOTE: "~"}


def doctor(path: Path, catalog: Catalog, as_json: bool) -> int:
    """Start the hosts of a rig and each network in turn, and print the findings."""
    rig = load_rig(path, catalog)
    if rig.executed:
        print(rig.executed, file=sys.stderr)
    languages = {
        name: read_toml(manifest).get("requires", [])
        for name, manifest in catalog.languages.items()
    }
    with (
        tempfile.TemporaryDirectory(prefix="wattwire-doctor-") as folder,
        Hosts(rig, Path(folder) / "hosts") as hosts,
    ):
        health = check_rig(hosts, Path(folder) / "networks", __version__, languages)
    if as_json:
        print(json.dumps(asdict(health), indent=1, ensure_ascii=False))
    else:
        print("\n".join(lines_of(health)))
    return EXIT_OK if health.ready else EXIT_ENVIRONMENT


def lines_of(health: Health) -> Iterator[str]:
    """Yield the lines of the report, at most 80 columns wide apart from commands."""
    yield from beside("", health.first, WIDTH)
    for title, findings in health.sections.items():
        yield ""
        yield title
        for item in findings:
            yield from _lines_of(item)
    yield ""
    yield "+ nothing to change   ~ changes results   - prevents runs"
    yield "$ command that changes it (PID: the agent of this host during a campaign)"
    yield "? factor of a study that shows the effect"
    yield f"Next: {health.next}"


def _lines_of(item: Finding) -> Iterator[str]:
    # The title of a section names its hosts, except that of a network.
    where = f" ({', '.join(item.hosts)})" if item.network else ""
    check = f"{item.check}{where}: {item.evidence}"
    yield from beside(f"  {MARKS[item.state]} ", check, WIDTH, INDENT)
    if item.cause:
        yield from beside(INDENT, f"{item.cause}.", WIDTH)
    if item.command:
        yield f"{INDENT}$ {item.command}"
    if item.factor and item.cause:
        yield from beside(f"{INDENT}? ", item.factor, WIDTH)

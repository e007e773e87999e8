"""Implement `list`, `build` and `check` for members of the open folders."""

from __future__ import annotations

import argparse
import fnmatch
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from wattwire.catalog import Catalog
from wattwire.catalog.links import MANIFEST as LINK_MANIFEST
from wattwire.catalog.manifest import read_toml
from wattwire.cli.pairing import Pairs
from wattwire.cli.verbs import add_verb
from wattwire.cli.wrap import columns, wrapped
from wattwire.model.errors import (
    EXIT_BAD_RESULT,
    EXIT_ENVIRONMENT,
    EXIT_OK,
    MissingError,
    UsageError,
    nearest,
    unknown,
)

LINKS, BRIDGES = "links", "bridges"
"""First arguments of `check` that select links or bridges instead of cells."""


def add_to(verbs: Any) -> None:
    """Register the commands and their options."""
    verb = add_verb(verbs, "list")
    verb.add_argument("what", nargs="?", choices=["studies", "cells", "meters", "links", "bridges"])
    verb.add_argument(
        "names", nargs="*", metavar="NAME",
        help="list only these: a name, its beginning or a pattern, such as '*/LANGUAGE'",
    )  # fmt: skip
    verb.set_defaults(call=list_things)

    verb = add_verb(verbs, "build")
    verb.add_argument("cells", nargs="*", metavar="CELL")
    verb.set_defaults(call=build)

    verb = add_verb(verbs, "check")
    verb.add_argument(
        "cells",
        nargs="*",
        metavar="CELL",
        help="a name, a path or 'MIDDLEWARE/*' (default: all cells); or 'links' and the names of "
        "links (default: all links), to check the link emulator; or 'bridges' and the names of "
        "bridges",
    )
    verb.add_argument(
        "--clause",
        action="append",
        metavar="C-NN",
        help="check only these clauses or scenarios, or only the pairs of cells (pair)",
    )
    which = verb.add_mutually_exclusive_group()
    which.add_argument(
        "--pairs",
        choices=[choice.value for choice in Pairs],
        help="the pairs to test: all (the default), cross (a ring, and a star around the first "
        "named cell) or none. Several CELLs are paired with each other. A single CELL is paired "
        "with the other cells of its middleware.",
    )
    which.add_argument(
        "--no-pairs",
        dest="pairs",
        action="store_const",
        const=Pairs.NONE.value,
        help="the same as --pairs none",
    )
    verb.add_argument(
        "--cost",
        action="store_true",
        help="instead of the clauses, measure the round-trip time that the kit adds to the "
        "cell's bare client on this machine; pages of later runs report it",
    )
    verb.add_argument(
        "--wire",
        action="store_true",
        help="with 'links': check the emulator between two network namespaces, as root",
    )
    verb.add_argument(
        "--rig",
        metavar="FILE",
        help="run the nodes of each scenario on the hosts of a rig (kind netns), in turn, over its "
        "first network that joins all hosts",
    )
    verb.set_defaults(call=check)


def list_things(options: argparse.Namespace) -> int:
    """Print the studies, cells, meters, links and bridges of the catalogue."""
    catalog = Catalog()
    kinds: dict[str, tuple[Iterable[str], Callable[[str], str]]] = {
        "studies": (catalog.studies, lambda n: _field(catalog.studies[n] / "study.toml", "title")),
        "cells": (catalog.cells, lambda n: ", ".join(catalog.cell(n).document["patterns"])),
        "meters": (catalog.meters, lambda n: _field(catalog.meters[n] / "meter.toml", "summary")),
        "links": (catalog.links, lambda n: _field(catalog.links[n] / LINK_MANIFEST, "summary")),
        "bridges": (catalog.bridges, lambda n: _field(catalog.bridges[n], "summary")),
    }
    for kind, (names, text_of) in kinds.items():
        if options.what not in (None, kind):
            continue
        known = sorted(names)
        chosen = named_like(options.names, known, kind.removesuffix("s")) if options.what else known
        print(f"{len(chosen)} of {len(known)} {kind}" if options.names else f"{len(known)} {kind}")
        for name in chosen:
            _print_row(name, text_of(name))
        if kind == "cells" and options.names:
            print(f"Next: wattwire show cell {chosen[0]}")
    return EXIT_OK


def named_like(wanted: Sequence[str], known: Sequence[str], kind: str) -> list[str]:
    """Return the names in `known` that begin with a word or match it.

    Without words, return all names. Raises UsageError for a word without a match.
    """
    chosen: set[str] = set() if wanted else set(known)
    for word in wanted:
        matches = {n for n in known if n.startswith(word) or fnmatch.fnmatchcase(n, word)}
        if not matches:
            candidates = {*known, *(name.split("/")[0] for name in known)}
            raise UsageError(f'list: unknown {kind} "{word}".{nearest(word, candidates)}')
        chosen |= matches
    return [name for name in known if name in chosen]


def _field(path: Path, key: str) -> str:
    return str(read_toml(path).get(key, ""))


def _print_row(name: str, text: str) -> None:
    """Print the name of a member of an open folder, and its text in a second column."""
    print(wrapped(f"{name:<17} {text}", columns(sys.stdout), "  ", " " * 18))


def build(options: argparse.Namespace) -> int:
    """Build cells. If a cell cannot be built, the others are still built."""
    from wattwire.cli.screen import make_progress  # noqa: PLC0415 - `list` needs none of these
    from wattwire.rig import AgentClient, Builder  # noqa: PLC0415

    catalog = Catalog()
    failed = 0
    progress = make_progress(as_json=False, plain=False)
    with tempfile.TemporaryDirectory(prefix="wattwire-") as state_folder:
        agent = AgentClient(Path(state_folder))
        try:
            builder = Builder(agent, lambda step: progress.event("building", **asdict(step)))
            cells = catalog.cells_like(options.cells)
            builder.unbuilt(cells)
            for cell in cells:
                try:
                    result = builder.cell(cell)
                    print(f"{cell.name}: {'was built before' if result.cached else 'built'}")
                except MissingError as error:
                    failed += 1
                    _print_wrapped(f"{cell.name}: absent: {error}")
        finally:
            progress.close()
            agent.close()
    return EXIT_ENVIRONMENT if failed else EXIT_OK


def _print_wrapped(text: str, indent: str = "") -> None:
    print(wrapped(text, columns(sys.stdout), indent), flush=True)


def check(options: argparse.Namespace) -> int:
    """Run the conformance suite on cells, or check links or bridges. Failures name their clause.

    Raises UsageError for contradictory options.
    """
    if options.cells[:1] == [LINKS]:
        return _check_links(options)
    catalog = Catalog()
    if options.cells[:1] == [BRIDGES] or set(options.cells) & {*catalog.bridges}:
        return _check_bridges(options, catalog)
    if options.wire:
        raise UsageError("check: --wire is for links, as in: wattwire check links --wire")
    from wattwire.cli.conformance import check_cells, measure_costs  # noqa: PLC0415 - the suite

    if options.cost:
        if options.clause or options.pairs or options.rig:
            raise UsageError(
                "--cost cannot be combined with --clause, --pairs or --rig; leave out one of the "
                "options"
            )
        return EXIT_BAD_RESULT if measure_costs(options.cells) else EXIT_OK
    rig = Path(options.rig) if options.rig else None
    return check_cells(options.cells, options.clause, Pairs(options.pairs or "all"), rig)


def _check_bridges(options: argparse.Namespace, catalog: Catalog) -> int:
    """Check bridges between two namespaces. Raises UsageError for options of cells and links."""
    from wattwire.cli.bridge_check import check_bridges  # noqa: PLC0415 - imports polars

    if options.clause or options.pairs or options.cost or options.wire:
        raise UsageError("check bridges: leave out --clause, --pairs, --cost and --wire")
    names = [name for name in options.cells if name != BRIDGES]
    for name in names:
        if name not in catalog.bridges:
            raise unknown("check", "bridge", name, catalog.bridges)
    return EXIT_BAD_RESULT if check_bridges(names or sorted(catalog.bridges), catalog) else EXIT_OK


def _check_links(options: argparse.Namespace) -> int:
    """Check the emulation of links. Raises UsageError for options of cells."""
    from wattwire.cli.link_check import check_links, check_wires  # noqa: PLC0415 - imports scipy

    if options.clause or options.pairs or options.cost or options.rig:
        raise UsageError(
            "check links: --clause, --pairs, --cost and --rig are for cells; leave them out"
        )
    chosen_check = check_wires if options.wire else check_links
    return EXIT_BAD_RESULT if chosen_check(options.cells[1:]) else EXIT_OK

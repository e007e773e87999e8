"""Implement `check`, which checks cells by the conformance suite, links, and bridges."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from wattwire.catalog import Catalog
from wattwire.cli.pairing import Pairs
from wattwire.cli.verbs import add_verb
from wattwire.model.errors import EXIT_BAD_RESULT, EXIT_OK, UsageError, unknown

LINKS, BRIDGES = "links", "bridges"
"""First arguments of `check` that select links or bridges instead of cells."""


def add_to(verbs: Any) -> None:
    """Register the command and its options."""
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
    from wattwire.cli.conformance import check_cells, measure_costs  # noqa: PLC0415 - slow

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
    from wattwire.cli.bridge_check import check_bridges  # noqa: PLC0415 - slow

    if options.clause or options.pairs or options.cost or options.wire:
        raise UsageError("check bridges: leave out --clause, --pairs, --cost and --wire")
    names = [name for name in options.cells if name != BRIDGES]
    for name in names:
        if name not in catalog.bridges:
            raise unknown("check", "bridge", name, catalog.bridges)
    return EXIT_BAD_RESULT if check_bridges(names or sorted(catalog.bridges), catalog) else EXIT_OK


def _check_links(options: argparse.Namespace) -> int:
    """Check the emulation of links. Raises UsageError for options of cells."""
    from wattwire.cli.link_check import check_links, check_wires  # noqa: PLC0415 - slow

    if options.clause or options.pairs or options.cost or options.rig:
        raise UsageError(
            "check links: --clause, --pairs, --cost and --rig are for cells; leave them out"
        )
    chosen_check = check_wires if options.wire else check_links
    return EXIT_BAD_RESULT if chosen_check(options.cells[1:]) else EXIT_OK

"""Implement `list`, which lists the members of the open folders."""

from __future__ import annotations

import argparse
import fnmatch
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from wattwire.catalog import Catalog
from wattwire.catalog.links import MANIFEST as LINK_MANIFEST
from wattwire.catalog.manifest import read_toml
from wattwire.cli.verbs import add_verb
from wattwire.cli.wrap import columns, pairs
from wattwire.model.errors import EXIT_OK, UsageError, nearest


def add_to(verbs: Any) -> None:
    """Register the command."""
    verb = add_verb(verbs, "list")
    verb.add_argument("what", nargs="?", choices=["studies", "cells", "meters", "links", "bridges"])
    verb.add_argument(
        "names", nargs="*", metavar="NAME",
        help="list only these: a name, its beginning or a pattern, such as '*/LANGUAGE'",
    )  # fmt: skip
    verb.set_defaults(call=list_things)


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
        for line in pairs([(name, text_of(name)) for name in chosen], columns(sys.stdout)):
            print(line)
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

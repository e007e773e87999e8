"""Compare kits with the kits of another commit, using the cells of both.

`python -m bench kits --old REV` builds the cells of REV and of the working tree. A client of each
makes consecutive calls. The two clients run in turns, each with a separate server. Null cells are
measured in consecutive runs, old and new in ABBA order.
"""

from __future__ import annotations

import contextlib
import functools
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path

from bench.calls import (
    CALLS,
    COMPILED_LATE,
    HANG_S,
    TRIAL_CALLS,
    WARM_CALLS,
    WARM_S,
    cores,
    sleep_until,
    started,
    timed_per_s,
)
from bench.nodes import Bench, own_cost_roles
from bench.pairs import BROKEN, Comparison, abba, compared, lose_pair
from bench.turns import Turn, on_cores, place, take_turns
from contract.conformance.cell import CellUnderTest
from wattwire.catalog import Cell
from wattwire.catalog.manifest import read_toml
from wattwire.model.errors import UsageError
from wattwire.model.fields import merge

ROOT = Path(__file__).resolve().parents[1]
LANGUAGES = ("go", "java", "csharp", "javascript", "ruby", "php")
RATE_PROMISE = 0.98
OWN_COST_PROMISE = 1.0
MESSAGES = 100_000
PAYLOAD = {
    "payload.encoding": "text", "payload.bytes": 64, "payload.literal": "", "reply": "echo",
    "reply.literal": "", "verify": "full",
}  # fmt: skip
"""Unlike a literal, this payload is stamped and checked."""


def comparisons(
    workbench: Bench, pairs: int, revision: str, patterns: Sequence[str], side_s: float
) -> Iterator[Comparison]:
    """Yield the comparisons of each cell that matches a pattern and exists in both trees."""
    tree = workbench.folder / "old"
    extract(revision, tree)
    for name in workbench.catalog.cells:
        if not is_chosen(name, patterns):
            continue
        cell = workbench.catalog.cell(name)
        if not (tree / cell.folder.relative_to(ROOT)).is_dir():
            print(f"  {name}: absent: {revision} does not have it", flush=True)
            continue
        new, old = workbench.build(cell), workbench.build(of_tree(cell, tree))
        if new is None or old is None:
            continue
        try:
            if name.startswith("null/"):
                yield from own_costs(workbench, new, old, pairs)
            else:
                yield from rates(workbench, (new, old), pairs, side_s)
        except BROKEN as error:
            lose_pair(f"{name}, the trial", 0, 1, error)


def extract(revision: str, folder: Path) -> None:
    """Write the tree of a commit to a new folder. Raise UsageError for an unknown commit."""
    archive = folder.with_suffix(".tar")
    command = ["git", "archive", f"--output={archive}", revision]
    if subprocess.run(command, cwd=ROOT, check=False).returncode != 0:
        raise UsageError(f"--old: found {revision}; allowed: a commit of this repository")
    shutil.unpack_archive(archive, folder)
    archive.unlink()


def of_tree(cell: Cell, tree: Path) -> Cell:
    """Return the cell with the sources, kit and build of another tree.

    The manifests are from this tree, because the other tree's manifests may have unknown keys.
    """
    assert cell.language_folder is not None
    folder, language = (
        tree / path.relative_to(ROOT) for path in (cell.folder, cell.language_folder)
    )
    document = cell.document
    for path in (language / "language.toml", folder / "node.toml"):
        made = {key: value for key, value in read_toml(path).items() if key in ("build", "run")}
        document = merge(document, made)
    return replace(cell, folder=folder, language_folder=language, document=document, variant="old")


def is_chosen(name: str, patterns: Sequence[str]) -> bool:
    """Return whether a cell uses one of the small kits and matches a pattern."""
    return name.partition("/")[2] in LANGUAGES and any(fnmatch(name, p) for p in patterns)


def own_costs(
    workbench: Bench, new: CellUnderTest, old: CellUnderTest, pairs: int
) -> Iterator[Comparison]:
    """Yield the comparison of the kit's own time per message, for each side of a null cell."""
    for role in own_cost_roles(new):
        measured = [
            functools.partial(workbench.per_message_ns, cell, role, MESSAGES) for cell in (new, old)
        ]
        name = f"{new.name}, {role}, own time"
        sides = abba(name, measured[0], measured[1], pairs)
        yield from compared(name, "ns", sides, OWN_COST_PROMISE)


def rates(
    workbench: Bench, cells: tuple[CellUnderTest, CellUnderTest], pairs: int, side_s: float
) -> Iterator[Comparison]:
    """Yield the comparison of the calls per second of the new and the old client."""
    trial_per_s = min(pair(workbench, cells, WARM_CALLS, TRIAL_CALLS, 0))
    count = int(min(max(round(trial_per_s * side_s, -2), CALLS[0]), CALLS[1]))
    language = cells[0].name.rpartition("/")[2]
    warm = int(min(COMPILED_LATE.get(language, WARM_CALLS), trial_per_s * WARM_S))
    measured = []
    for number in range(pairs):
        try:
            measured.append(pair(workbench, cells, warm, count, number))
        except BROKEN as error:
            lose_pair(cells[0].name, number, pairs, error)
            continue
        text = "{:.0f} calls/s, old {:.0f}".format(*measured[-1])
        print(f"  {cells[0].name}, pair {number + 1} of {pairs}: {text}", file=sys.stderr)
    sides = (tuple(new for new, _ in measured), tuple(old for _, old in measured))
    name = f"{cells[0].name}, {count} calls"
    yield from compared(name, "calls/s", sides, RATE_PROMISE, at_least=True)


def pair(
    workbench: Bench, cells: tuple[CellUnderTest, CellUnderTest], warm: int, count: int, number: int
) -> tuple[float, float]:
    """Return the calls per second of both clients, which have the first turn alternately."""
    client_core, server_core = cores(together=False)
    with contextlib.ExitStack() as stack:
        groups, turns = [], []
        for cell in cells:
            nodes = started(workbench, cell, warm + count, "client", "server", **PAYLOAD)
            group = stack.enter_context(nodes)
            client = group.node("client")
            place(client.pid, client_core)
            place(group.node("server").pid, server_core)
            group.go()
            sleep_until(group.start_ns)
            turns.append(Turn(client.pid, lambda node=client: node.line("SENT") is not None))
            turns[-1].stop()
            groups.append(group)
        with on_cores(client_core):
            take_turns(*(turns if number % 2 == 0 else turns[::-1]), HANG_S, seed=number)
        for group in groups:
            group.wait_sent()
            group.finish()
        new, old = (
            timed_per_s(group, turn, warm, count) for group, turn in zip(groups, turns, strict=True)
        )
    return new, old

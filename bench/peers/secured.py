"""Compare secured cells with bare clients of the same library that are secured alike."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from bench.nodes import Bench
from bench.pairs import Comparison, abba, compared
from bench.peers.libraries import (
    CALLS,
    against_both,
    fair_argv,
    fair_program,
    with_contract_work,
)
from contract.conformance.cell import CellUnderTest
from wattwire.cli.round_trips import bare_round_trip_ns
from wattwire.rig.bare_clients import bare_argv

PROMISE = 1.05
TLS_KEYS = ("tls.authority", "tls.certificate", "tls.key")
DDS_CELL = "cyclonedds/cpp"
DDS_KEYS = (*TLS_KEYS, "security.governance", "security.permissions")
BARE_TLS = "BARE_TLS"
"""Environment variable with the paths of a bare client's credentials; a bare client that can be
secured contains its name."""


def comparisons(workbench: Bench, pairs: int, patterns: Sequence[str]) -> Iterator[Comparison]:
    """Yield the comparisons of each cell whose bare client can be secured."""
    for name in workbench.catalog.cells:
        bare = next(iter(workbench.catalog.cell(name).folder.glob("bare.*")), None)
        is_chosen = any(Path(name).match(pattern) for pattern in patterns)
        if is_chosen and bare is not None and BARE_TLS in bare.read_text(encoding="utf-8"):
            cell = workbench.cell(name)
            if cell is not None:
                yield from _against_bare_client(workbench, pairs, cell)
    if any(Path(DDS_CELL).match(pattern) for pattern in patterns):
        cell = workbench.cell(DDS_CELL)
        if cell is not None:
            yield from _against_fair_program(workbench, pairs, cell)


def _secured(
    workbench: Bench, cell: CellUnderTest, names: Sequence[str]
) -> tuple[CellUnderTest, dict[str, str]]:
    """Return a cell whose bare client has the credentials `names`, and the spec keys of nodes."""
    security = cell.security
    assert security is not None and not security.absent, f"{cell.name}: it cannot be secured"
    issue = security.issuer()
    folder = workbench.folder / cell.name.replace("/", "-")
    keys, of_service = issue(folder / "node", ""), issue(folder / "service", "")
    secured = replace(
        cell,
        service=functools.partial(security.service, of_service),
        env={**cell.env, BARE_TLS: " ".join(keys[name] for name in names)},
    )
    return secured, {f"settings.{security.setting}": "on", **keys}


def _against_fair_program(
    workbench: Bench, pairs: int, cell: CellUnderTest
) -> Iterator[Comparison]:
    secured, changes = _secured(workbench, cell, DDS_KEYS)
    ours = functools.partial(workbench.ping_ns, secured, CALLS, **changes)
    fair = [str(fair_program(workbench, cell))]
    peer = functools.partial(bare_round_trip_ns, secured, fair)
    label = f"{cell.name}, secured, against its fair client"
    yield from compared(label, "ns", abba(label, ours, peer, pairs), PROMISE)


def _against_bare_client(workbench: Bench, pairs: int, cell: CellUnderTest) -> Iterator[Comparison]:
    bare = bare_argv(cell.argv)
    assert bare is not None, f"{cell.name}: no bare client in its folder"
    secured, changes = _secured(workbench, cell, TLS_KEYS)
    ours = functools.partial(workbench.ping_ns, secured, CALLS, **changes)
    peer = functools.partial(bare_round_trip_ns, secured, bare)
    fair = fair_argv(bare)
    assert fair is not None, f"{cell.name}: no fair client in its folder"
    fair_ns = functools.partial(bare_round_trip_ns, with_contract_work(secured), fair)
    sides = ours, peer, fair_ns
    yield from against_both(f"{cell.name}, secured", "its bare client", sides, pairs, PROMISE)

"""Test the roles of patterns against the contract's text, and the plans of groups."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from contract.conformance import CellUnderTest
from contract.conformance.group import RELAYS, Group, Member, pair
from contract.conformance.repository import ROOT
from contract.conformance.roles import KINDS, PATTERNS, ROLE_CODES, ROLE_KINDS
from contract.conformance.schema import breaches
from contract.conformance.spec import RECEIVER_NODE, RELAY_NODE, SENDER_NODE

CELL = CellUnderTest("fake/first", (), capabilities=["encoding.bytes", "pacing.kit", "loop.open"])
OTHER = CellUnderTest("fake/second", (), capabilities=CELL.capabilities)


def contract_kinds() -> dict[str, set[int]]:
    """Return the kinds of each role by the first column of the table of C-27."""
    text = (ROOT / "contract" / "CONTRACT.md").read_text(encoding="utf-8")
    table = text.partition("**C-27 Times.**")[2].partition("|---|")[2].partition("\n\n")[0]
    kinds: dict[str, set[int]] = {}
    for roles, kind in re.findall(r"^\| ([a-z_ ]+), ([a-z]+) \|", table, flags=re.MULTILINE):
        for role in roles.split(" and "):
            kinds.setdefault(role, set()).add(KINDS.index(kind))
    # A source records messages like a publisher, and a sink like a subscriber.
    return {**kinds, "source": kinds["publisher"], "sink": kinds["subscriber"]}


def test_each_role_has_the_kinds_of_the_contracts_table() -> None:
    assert contract_kinds() == ROLE_KINDS


def test_every_role_belongs_to_one_pattern() -> None:
    roles = [role for pattern in PATTERNS.values() for role in pattern.roles]
    roles += [pattern.member for pattern in PATTERNS.values() if pattern.member]
    assert sorted(roles) == sorted(ROLE_CODES)


def planned(folder: Path, pattern: str, members: list[Member]) -> list[dict[str, Any]]:
    return [spec for _, spec in Group(folder, pattern, members, []).members]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_planned_group_has_valid_specs(pattern: str, tmp_path: Path) -> None:
    for spec in planned(tmp_path, pattern, pair(CELL, OTHER, pattern)):
        assert list(breaches("spec", spec)) == []


def test_a_chain_alternates_its_cells_and_its_messages_are_those_of_the_source(
    tmp_path: Path,
) -> None:
    specs = planned(tmp_path, "pipeline", pair(CELL, OTHER, "pipeline"))
    assert RELAYS == 2
    assert [(s["cell"], s["role"], s["hop"], s["peers.count"]) for s in specs] == [
        ("fake/first", "source", 0, 1),
        ("fake/second", "relay", 1, 2),
        ("fake/first", "relay", 2, 2),
        ("fake/second", "sink", 3, 1),
    ]
    assert [spec["peers.nodes"] for spec in specs] == [[RELAY_NODE], *([[SENDER_NODE]] * 3)]
    assert specs[-1]["node"] == RECEIVER_NODE


def test_a_stranger_is_no_peer_and_sends_to_the_first_relay(tmp_path: Path) -> None:
    members = [*pair(CELL, CELL, "pipeline"), Member(CELL, "source", {}, 0x0909, True)]
    *chain, stranger = planned(tmp_path, "pipeline", members)
    assert (stranger["hop"], stranger["peers.nodes"]) == (0, [RELAY_NODE])
    assert all(spec["peers.nodes"] == [SENDER_NODE] for spec in chain[1:])


@pytest.mark.parametrize(
    ("pattern", "listening", "start_stages", "stop_stages"),
    [
        ("topic", "subscriber", [1, 0], [0, 1]),
        ("topic", "none", [0, 0], [0, 1]),
        ("service", "server", [1, 0], [0, 1]),
        ("pipeline", "sink", [0, -1, -2, -3], [0, 1, 2, 3]),
        ("pipeline", "none", [0, 0, 0, 0], [0, 1, 2, 3]),
    ],
)
def test_listeners_start_first_and_a_chain_starts_with_its_last_node(
    pattern: str, listening: str, start_stages: list[int], stop_stages: list[int], tmp_path: Path
) -> None:
    specs = planned(tmp_path, pattern, pair(CELL, CELL, pattern))
    roles = PATTERNS[pattern]
    assert [roles.start_stage(spec, listening) for spec in specs] == start_stages
    assert [roles.stop_stage(spec) for spec in specs] == stop_stages


def test_the_relays_of_a_listening_sink_listen_too() -> None:
    roles = PATTERNS["pipeline"]
    assert [role for role in roles.roles if roles.listens(role, "sink")] == ["relay", "sink"]
    assert [role for role in roles.roles if roles.listens(role, "none")] == []

"""Patterns, roles and kinds of the contract's codes (`schemas/codes.json`), and how groups start.

A pattern has a sending and a receiving role. A pipeline (C-37) also has a relay: its nodes are a
chain, and `hop` is the position of a node in this chain.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CODES = json.loads(
    (Path(__file__).resolve().parent.parent / "schemas" / "codes.json").read_text(encoding="utf-8")
)
ROLE_CODES = tuple(CODES["roles"])
KINDS = tuple(CODES["kinds"])
MESSAGE, CALL, GOAL, ACCEPT, FEEDBACK, RESULT, RELAY = range(len(KINDS))
ROLE_KINDS = {
    "publisher": {MESSAGE}, "subscriber": {MESSAGE}, "server": {CALL}, "client": {CALL},
    "ping": {CALL}, "pong": {CALL}, "action_server": {GOAL, ACCEPT, FEEDBACK},
    "action_client": {GOAL, FEEDBACK, RESULT}, "source": {MESSAGE}, "relay": {RELAY},
    "sink": {MESSAGE},
}  # fmt: skip
"""The kinds of each role's records (C-27). The records of a member are those of its parts."""
PATTERN_CLAUSES = {"topic": "C-29", "pingpong": "C-28", "action": "C-30", "pipeline": "C-37"}
"""The clause of each pattern that has its own; the clause of services is C-27."""


@dataclass(frozen=True)
class Pattern:
    """The roles of one pattern; `relay` is "" unless the nodes form a chain (C-37)."""

    name: str
    sender: str
    receiver: str
    relay: str = ""
    member: str = ""
    """The role of a process with several senders and receivers (C-41)."""

    @property
    def roles(self) -> tuple[str, ...]:
        """Return the pattern's roles; the sender is first."""
        return tuple(role for role in (self.sender, self.relay, self.receiver) if role)

    @property
    def is_chain(self) -> bool:
        return bool(self.relay)

    @property
    def is_one_way(self) -> bool:
        """Whether the sender records messages and receives no reply."""
        return ROLE_KINDS[self.sender] == {MESSAGE}

    @property
    def is_of_calls(self) -> bool:
        """Whether the sender makes calls of one request and one reply."""
        return ROLE_KINDS[self.sender] == {CALL}

    @property
    def clauses(self) -> tuple[str, ...]:
        """Return the clause of this pattern, or () if it has none of its own."""
        return (PATTERN_CLAUSES[self.name],) if self.name in PATTERN_CLAUSES else ()

    def hop(self, role: str, index: int, relays: int) -> int:
        """Return the position in a chain with `relays` relays of the node `index` of a role."""
        return {self.sender: 0, self.relay: 1 + index}.get(role, 1 + relays)

    def is_peer(self, spec: dict[str, Any], other_spec: dict[str, Any]) -> bool:
        """Return whether `peers.nodes` of the first node contains the second node.

        Messages of a chain carry the sender's node, so it is the peer of all other nodes. The
        sender's peer is the next node.
        """
        sends = spec["role"] == self.sender
        if sends == (other_spec["role"] == self.sender):
            return False
        return not (sends and self.is_chain) or other_spec["hop"] == 1

    def neighbours(self, role: str) -> int:
        """Return the value of `peers.count` for one node of a chain."""
        return 2 if role == self.relay else 1

    def listens(self, role: str, listening_role: str) -> bool:
        """Return whether a role accepts connections; `listening_role` is the manifest's `listens`.

        If the receiver of a chain listens, its relays listen too.
        """
        return role == listening_role or (role == self.relay and listening_role == self.receiver)

    def start_stage(self, spec: dict[str, Any], listening_role: str) -> int:
        """Return the number of the stage, from 0, in which a node starts.

        A node connects to the listeners of the stage before its own, so a chain starts with its
        last node. Nodes that discover each other start together.
        """
        if listening_role not in self.roles:
            return 0
        if self.is_chain:
            return -int(spec["hop"])
        return int(spec["role"] != listening_role)

    def stop_stage(self, spec: dict[str, Any]) -> int:
        """Return the number of the stage in which a node receives STOP: the sender's is 0.

        A relay sends what it has received before the next node of its chain may end.
        """
        return int(spec["hop"]) if self.is_chain else int(spec["role"] != self.sender)


PATTERNS = {name: Pattern(name, **roles) for name, roles in CODES["patterns"].items()}
SENDING_ROLES = frozenset(pattern.sender for pattern in PATTERNS.values())
CALLING_ROLES = frozenset(p.sender for p in PATTERNS.values() if not p.is_one_way)
"""Sending roles that wait for replies."""
RELAY_ROLES = frozenset(pattern.relay for pattern in PATTERNS.values() if pattern.is_chain)


def calling(patterns: list[str]) -> list[str]:
    """Return the patterns whose sender waits for replies."""
    return [name for name in patterns if not PATTERNS[name].is_one_way]


def chain_roles(pattern: Pattern, relays: int) -> Iterator[str]:
    """Yield the role of each node from the sender to the receiver; pairs have no relay."""
    yield pattern.sender
    for _ in range(relays if pattern.is_chain else 0):
        yield pattern.relay
    yield pattern.receiver

"""List the facts on the hosts of a campaign, and their meters, as its machine.json has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def facts_of(machine: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each fact (key, value, …) after the name of its host."""
    yield from _entries(machine, "facts")


def meters_of(machine: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each meter (name, state, reason, …), present or absent, after the name of its host."""
    yield from _entries(machine, "meters")


def _entries(machine: Mapping[str, Any], kind: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for host, entry in machine.get("hosts", {}).items():
        for item in entry.get(kind, []):
            yield host, item

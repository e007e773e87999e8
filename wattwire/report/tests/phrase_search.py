"""Search phrases by key in texts, lists, parts and sections of the report."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from wattwire.report.words.phrases import Phrase


def phrases_in(made: Any, key: str) -> list[Phrase]:
    """Return the phrases with `key` in `made`, including nested phrases."""
    return [phrase for phrase in _all(made) if phrase.key == key]


def keys_in(made: Any) -> list[str]:
    """Return the keys of all phrases in `made` in order, with outer before nested phrases."""
    return [phrase.key for phrase in _all(made) if phrase.key not in ("", "joined")]


def only(made: Any, key: str) -> Phrase:
    """Return the only phrase with `key` in `made`."""
    found = phrases_in(made, key)
    assert len(found) == 1, f"{len(found)} phrases with the key {key}; all keys: {keys_in(made)}"
    return found[0]


def _all(made: Any) -> Iterator[Phrase]:
    if isinstance(made, Phrase):
        yield made
        yield from _all(made.values)
    elif isinstance(made, Mapping):
        yield from _all(list(made.values()))
    elif isinstance(made, (list, tuple)):
        for member in made:
            yield from _all(member)
    elif dataclasses.is_dataclass(made):
        for field in dataclasses.fields(made):
            yield from _all(getattr(made, field.name))

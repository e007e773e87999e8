"""Provide the titles of levels, and of those levels that only treatments with a finding have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from wattwire.analysis.dataset import Evidence
from wattwire.analysis.topics.findings.runs import Treatment


@dataclass(frozen=True)
class SharedLevels:
    """The titles of a factor's levels at which a finding occurs, of `count` levels with runs."""

    titles: tuple[str, ...]
    count: int


def levels_title(evidence: Evidence, treatment: Treatment) -> str:
    """Return the titles of a treatment's levels; "" if no factor varies."""
    return ", ".join(level_title(evidence, name, word) for name, word in treatment)


def level_title(evidence: Evidence, name: str, word: str) -> str:
    """Return the title of a level, for a sentence."""
    for level in evidence.factors.get(name, ()):
        if evidence.word(name, level) == word:
            return evidence.title(name, level)
    return word


def shared_levels(
    evidence: Evidence, hit: Iterable[Treatment], all_: Iterable[Treatment]
) -> tuple[SharedLevels, ...]:
    """Return the levels of the `hit` treatments, by factor.

    Factors with a hit at every level are omitted.
    """
    return tuple(_shared_levels(evidence, _levels_by_name(hit), _levels_by_name(all_)))


def _shared_levels(
    evidence: Evidence, hit: dict[str, list[str]], all_: dict[str, list[str]]
) -> Iterator[SharedLevels]:
    for name, all_words in all_.items():
        hit_words = hit.get(name, [])
        if hit_words and len(hit_words) < len(all_words):
            titles = tuple(level_title(evidence, name, word) for word in hit_words)
            yield SharedLevels(titles, len(all_words))


def _levels_by_name(treatments: Iterable[Treatment]) -> dict[str, list[str]]:
    words_by_name: dict[str, dict[str, None]] = {}
    for treatment in treatments:
        for name, word in treatment:
            words_by_name.setdefault(name, {})[word] = None
    return {name: list(level_words) for name, level_words in words_by_name.items()}


def study_key(name: str, levels: Sequence[Any]) -> str:
    """Format a factor as a line of a study file, for example `"settings.x" = [false, true]`."""
    key = f'"{name}"' if "." in name else name
    shown = [str(v).lower() if isinstance(v, bool) else str(v) for v in levels]
    return f"{key} = [{', '.join(shown)}]"

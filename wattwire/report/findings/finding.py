"""Findings, the registration of detectors, and titles of levels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from wattwire.analysis.dataset import Evidence
from wattwire.analysis.findings.runs import Run, Treatment
from wattwire.model import words
from wattwire.report.words.phrases import Phrase, Phrases

PHRASES = Phrases("finding", {"shown": "shown by this study", "suspected": "suspected"})


@dataclass(frozen=True)
class Finding:
    """A suspected or shown cause.

    `settles` names the evidence that would prove a suspected cause, and is "" for a shown cause.
    """

    id: str
    title: str
    shown: bool
    cause: str
    evidence: tuple[str, ...]
    settles: str
    parts: tuple[Any, ...] = ()

    @property
    def standing(self) -> Phrase:
        """Return the strength of the evidence, "shown" or "suspected"."""
        return PHRASES("shown" if self.shown else "suspected")


@dataclass(frozen=True)
class Silence:
    """The reason that a detector has no finding or could not run."""

    words: str


@dataclass(frozen=True)
class Searched:
    """Input of the detectors, with latencies of valid and of excluded runs in run order."""

    evidence: Evidence
    runs: Sequence[Run]
    excluded: Sequence[Run]


@dataclass(frozen=True)
class Detector:
    """A detector, with its position among the findings and its function."""

    place: int
    look: Callable[[Searched], Sequence[Finding | Silence]]
    needs_usable_runs: bool = True


def levels_text(evidence: Evidence, treatment: Treatment) -> str:
    """Return the titles of a treatment's levels, for a sentence."""
    return ", ".join(level_text(evidence, name, word) for name, word in treatment)


def level_text(evidence: Evidence, name: str, word: str) -> str:
    """Return the title of a level, for a sentence."""
    for level in evidence.factors.get(name, ()):
        if evidence.word(name, level) == word:
            return evidence.title(name, level)
    return word


def shared_levels(evidence: Evidence, hit: Iterable[Treatment], all_: Iterable[Treatment]) -> str:
    """Return the levels of the `hit` treatments, except for factors with a hit at every level.

    The result is "" if no factor remains.
    """
    hit_levels = _levels_by_name(hit)
    phrases = []
    for name, all_words in _levels_by_name(all_).items():
        hit_words = hit_levels.get(name, [])
        if hit_words and len(hit_words) < len(all_words):
            listed = words.listed([level_text(evidence, name, word) for word in hit_words])
            phrases.append(f"{listed} (of {len(all_words)})" if len(hit_words) > 1 else listed)
    return "; ".join(phrases)


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

"""Collect factors, fixed levels, variants and run order of the design."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from wattwire.analysis.dataset import Evidence, all_levels, grouped_factor
from wattwire.model import words

LEVELS_MAX = 8


@dataclass(frozen=True)
class Factor:
    """A varied factor with the titles of its first levels, and the number of `more` levels."""

    title: str
    levels: tuple[str, ...]
    more: int = 0


@dataclass(frozen=True)
class Level:
    """A key of the study, such as a factor, and its value as text."""

    key: str
    value: str


@dataclass(frozen=True)
class Variant:
    """A variant of the study with its levels, and the commit of its cells, "" without commit."""

    name: str
    levels: tuple[Level, ...] = ()
    has_own_cells: bool = False
    commit: str = ""


@dataclass(frozen=True)
class Part:
    """The requested part of a design, as typed, and the number of treatments not requested."""

    requested: str
    unrequested: int


@dataclass(frozen=True)
class Design:
    """The design and its run order.

    `skipped` counts the treatments that could not be run, for these `reasons`. `is_complete` is
    true if each block contains each treatment. The levels of the factor `grouped_title` are next to
    each other; it is "" if the order is random.
    """

    factors: tuple[Factor, ...] = ()
    fixed: tuple[Level, ...] = ()
    variants: tuple[Variant, ...] = ()
    blocks: int = 0
    treatments: int = 0
    runs: int = 0
    seed: int = 0
    is_complete: bool = True
    grouped_title: str = ""
    has_controls: bool = False
    part: Part | None = None
    skipped: int = 0
    reasons: tuple[str, ...] = ()


def design(evidence: Evidence) -> Design:
    """Return the design of a measured campaign."""
    designed, part = evidence.designed, evidence.study.part
    treatments = {str(sorted(all_levels(entry).items(), key=str)) for entry in designed}
    blocks = len({entry["block"] for entry in designed})
    grouped = grouped_factor(evidence)
    return Design(
        tuple(_factors(evidence)),
        named_levels(sorted(evidence.study.fixed.items())),
        tuple(
            Variant(
                name,
                named_levels(variant.levels.items()),
                bool(variant.root),
                variant.commit if variant.root and variant.commit else "",
            )
            for name, variant in evidence.study.variants.items()
        ),
        blocks,
        len(treatments),
        len(designed),
        evidence.study.plan.seed,
        len(designed) == blocks * len(treatments),
        words.factor_title(grouped) if grouped else "",
        bool(evidence.controls_planned),
        Part(part.option, part.unselected) if part else None,
        len(evidence.skipped),
        tuple(sorted({str(entry["skipped"]) for entry in evidence.skipped})),
    )


def _factors(evidence: Evidence) -> Iterator[Factor]:
    for name, levels in evidence.factors.items():
        if len(levels) > 1:
            titles = tuple(evidence.title(name, level) for level in levels)
            title, more = words.factor_title(name), max(0, len(titles) - LEVELS_MAX)
            yield Factor(title, titles[:LEVELS_MAX], more)


def named_levels(levels: Iterable[tuple[str, Any]]) -> tuple[Level, ...]:
    """Return the levels with their values as text."""
    return tuple(Level(key, words.plain(value)) for key, value in levels)

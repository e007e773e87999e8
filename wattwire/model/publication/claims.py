"""Parse `[[claim]]` tables: statements of a publication, and the comparison that decides each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from wattwire.model.errors import UsageError, unknown
from wattwire.model.fields import given, listed_tables, names, needed, number, read_table
from wattwire.model.layers import PARTS
from wattwire.model.treatment import Level

CLAIM = "claim"
"""Key of the study's tables of claims."""
LOWER, EQUAL, AT_MOST = "lower", "equal", "at most"
RELATIONS = (LOWER, EQUAL, AT_MOST)
LEVELS_OF = ("left", "right", "where")
"""Keys of a claim that map factors to levels."""
COMPARISON = ("response", "left", "right")
"""Keys that a claim with a comparison of treatments must have."""
OF_LAYERS = ("left_layers", "right_layers")
"""Keys that a claim with a comparison of layers must have."""


def _is_positive(value: float) -> bool:
    return 0 < value < math.inf


@dataclass(frozen=True)
class Claim:
    """A statement of a publication, and the comparison of treatments that shows or refutes it.

    The claim is that `left_times` × the response at `left` is lower than `right_times` × the
    response at `right`, equal to it, or at most equal to it. Both sides map the same factors to
    levels. A list of levels requests a comparison for each of them, and so does each level of a
    factor in `by`. `where` selects the treatments of both sides. Instead of treatments, a claim can
    compare the times of `left_layers` and `right_layers` (parts of figure 6, `PARTS`) in the runs
    of the treatments of `where` that record layers. If `unanswerable` is a reason, there is no
    comparison.
    """

    text: str = needed("a sentence")
    source: str = needed('the place of the claim, as "section IV"')
    question: str = given("a question")
    response: str = given('a response, as "latency_p50_us"')
    relation: str = given('"lower", "equal" or "at most"', LOWER, word="relation")
    left: dict[str, tuple[Level, ...]] = given("{factor = level}", {})
    right: dict[str, tuple[Level, ...]] = given("{factor = level}", {})
    left_times: float = number("a number above 0", _is_positive, 1.0)
    right_times: float = number("a number above 0", _is_positive, 1.0)
    left_layers: tuple[str, ...] = names("a list of parts of layers", word="part")
    right_layers: tuple[str, ...] = names("a list of parts of layers", word="part")
    by: tuple[str, ...] = names("a list of factors", word="factor")
    where: dict[str, tuple[Level, ...]] = given("{factor = level}", {})
    unanswerable: str = given("the reason why no comparison decides the claim")
    note: str = given("a sentence")

    @property
    def is_of_layers(self) -> bool:
        """Whether the claim compares layers of the same messages."""
        return bool(self.left_layers)

    @property
    def is_estimate(self) -> bool:
        """Whether the comparison uses a multiple of a measured value, which no run measured."""
        return (self.left_times, self.right_times) != (1.0, 1.0)


def parse_claims(
    items: Any,
    known: Mapping[str, Any],
    margin: float | None,
    check_level: Callable[[str, Any, str], Level],
    where: str,
) -> tuple[Claim, ...]:
    """Parse and validate every `[[claim]]`.

    `known` maps the study's varied and fixed factors to anything. `margin` is the relative
    difference within which two levels are equivalent. Levels that this preset does not measure are
    accepted; `check_claims` rejects those that no preset measures. Raises UsageError with the
    position, the value and the allowed values.
    """
    claims = []
    for place, item in listed_tables(items, CLAIM, where):
        claim = _claim(item, known, check_level, place)
        if claim.relation != LOWER and margin is None:
            raise UsageError(
                f'{place}: relation: "{claim.relation}" needs a margin; set answers.margin, the '
                "relative difference within which two levels are equivalent"
            )
        claims.append(claim)
    return tuple(claims)


def _claim(
    item: Mapping[str, Any],
    known: Mapping[str, Any],
    check_level: Callable[[str, Any, str], Level],
    place: str,
) -> Claim:
    claim = read_table(Claim, item, place, {"factor": known, "relation": RELATIONS, "part": PARTS})
    left, right, where = (
        _levels(getattr(claim, key), known, check_level, f"{place}: {key}") for key in LEVELS_OF
    )
    claim = replace(claim, left=left, right=right, where=where)
    if claim.unanswerable:
        unused = [
            declared.name
            for declared in fields(Claim)
            if declared.name in item
            and declared.name not in ("text", "source", "question", "note", "unanswerable")
        ]
        if unused:
            raise UsageError(
                f"{place}: {unused[0]}: a claim with the key unanswerable has no comparison; "
                "delete one of the two keys"
            )
        return claim
    if claim.left_layers or claim.right_layers:
        _check_layers(claim, place)
        return claim
    for key in COMPARISON:
        if not getattr(claim, key):
            raise UsageError(
                f"{place}: {key}: found nothing; allowed: the comparison that decides the claim "
                f"({', '.join(COMPARISON)}; or {' and '.join(OF_LAYERS)}), or unanswerable = the "
                "reason why there is none"
            )
    _check_sides(claim, place)
    return claim


def _check_layers(claim: Claim, place: str) -> None:
    """Raise UsageError unless the claim has layers on both sides, and nothing of treatments."""
    for key in OF_LAYERS:
        if not getattr(claim, key):
            raise UsageError(f"{place}: {key}: found nothing; allowed: {', '.join(PARTS)}")
    for key in COMPARISON:
        if getattr(claim, key):
            raise UsageError(
                f"{place}: {key}: a claim on layers compares them in the same runs; delete {key}, "
                f"or {' and '.join(OF_LAYERS)}"
            )
    if set(claim.left_layers) == set(claim.right_layers):
        raise UsageError(
            f"{place}: right_layers: found the parts of left_layers; allowed: at least one other"
        )


def _check_sides(claim: Claim, place: str) -> None:
    """Raise UsageError unless both sides differ and no factor has two places in a claim."""
    if claim.left.keys() != claim.right.keys():
        (missing, *_) = sorted(claim.left.keys() ^ claim.right.keys())
        key = "right" if missing in claim.left else "left"
        raise UsageError(
            f"{place}: {key}: {missing} has no level; allowed: the same factors in left and right "
            f"({', '.join(sorted(claim.left.keys() | claim.right.keys()))})"
        )
    for key, others in (("by", claim.by), ("where", claim.where)):
        shared = sorted(claim.left.keys() & set(others))
        if shared:
            raise UsageError(
                f"{place}: {key}: {shared[0]} is a factor of left and right, whose levels replace "
                "it; delete it here"
            )
    if claim.left == claim.right:
        raise UsageError(
            f"{place}: right: found the levels of left; allowed: at least one other level"
        )


def _levels(
    table: Mapping[str, Any],
    known: Mapping[str, Any],
    check_level: Callable[[str, Any, str], Level],
    place: str,
) -> dict[str, tuple[Level, ...]]:
    """Return the levels of each factor as a tuple.

    Raises UsageError for an unknown factor, an invalid level and an empty list.
    """
    levels_by_factor = {}
    for factor, value in table.items():
        if factor not in known:
            raise unknown(place, "factor", factor, known)
        levels = value if isinstance(value, list) else [value]
        if not levels:
            raise UsageError(f"{place}.{factor}: the list is empty; allowed: one level or more")
        levels_by_factor[factor] = tuple(
            check_level(factor, level, f"{place}.{factor}") for level in levels
        )
    return levels_by_factor


def named_levels(claims: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield the position, the factor and the level of each level that a study's claims name.

    Values of another type are skipped, because `parse_claims` rejects them.
    """
    for position, claim in enumerate(claims if isinstance(claims, list) else [], 1):
        for key in LEVELS_OF if isinstance(claim, Mapping) else ():
            named = claim.get(key, {})
            for factor, value in named.items() if isinstance(named, Mapping) else ():
                for level in value if isinstance(value, list) else [value]:
                    yield f"{CLAIM} {position}: {key}", factor, level

"""Arrange the printed numbers of an imported study with the numbers from its data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wattwire.analysis.dataset import Evidence
from wattwire.papers.digits import as_printed, with_more_digits
from wattwire.store import ImportedCampaign

EXACT, BY_SEARCH, NEAR = "exact", "exact by search", "within 1 %"
DIFFERS, ABSENT = "differs", "cannot be computed"
MATCHES = (EXACT, BY_SEARCH, NEAR, DIFFERS, ABSENT)
OPEN_ROWS = 12
"""Maximum number of rows of an expanded table with columns."""
COLUMN = "column"
Check = Mapping[str, Any]


@dataclass(frozen=True)
class PrintedNumber:
    """A number of the paper as `printed`, and our `value`, None if it cannot be computed.

    `text` and `default_text` are our numbers with two digits more than printed. `default` is the
    value by the default recipe. `verdict` is the match, `searched` the number of other choices of a
    match by search. A weak match has few printed digits.
    """

    printed: str
    value: float | None
    text: str
    default: float | None
    default_text: str
    verdict: str
    is_weak: bool
    searched: int
    recipe: str
    explanation: str

    @property
    def is_exact(self) -> bool:
        """Whether our number has the printed digits."""
        return self.verdict == EXACT

    @property
    def is_by_search(self) -> bool:
        """Whether our number has the printed digits after a search over other choices."""
        return self.verdict == BY_SEARCH

    @property
    def is_near(self) -> bool:
        """Whether our number is within 1 % of the printed one."""
        return self.verdict == NEAR

    @property
    def differs(self) -> bool:
        """Whether our number differs from the printed one."""
        return self.verdict == DIFFERS

    @property
    def has_other_default(self) -> bool:
        """Whether the default recipe gives another value."""
        value, default = self.value, self.default
        if value is None or default is None:
            return False
        return abs(value - default) > 1e-6 * max(abs(value), abs(default))


@dataclass(frozen=True)
class MatchCount:
    """The number of printed numbers with a match."""

    match: str
    numbers: int


@dataclass(frozen=True)
class Tally:
    """The printed numbers of a group by match; None if there are none of a match."""

    group: str
    numbers: int
    weak: int | None
    by_match: tuple[int | None, ...]


@dataclass(frozen=True)
class LaidOutRow:
    """A row of a printed table: its place, and a number per printed column, None if it has none."""

    place: tuple[str, ...]
    printed: tuple[str | None, ...]
    numbers: tuple[PrintedNumber | None, ...]


@dataclass(frozen=True)
class ListedNumber:
    """A number with the place where the paper prints it."""

    place: tuple[str, ...]
    number: PrintedNumber


@dataclass(frozen=True)
class Group:
    """The numbers of a table or of a text. `shared` has what all their places share.

    A table with `columns` is laid out as printed, in `rows`; other numbers are `listed`. `inexact`
    has the numbers without an exact match. `names` are the keys of their places.
    """

    group: str
    shared: tuple[str, ...]
    numbers: int
    by_match: tuple[MatchCount, ...]
    names: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[LaidOutRow, ...]
    listed: tuple[ListedNumber, ...]
    inexact: tuple[ListedNumber, ...]
    is_collapsed: bool

    @property
    def has_other_defaults(self) -> bool:
        """Whether the default recipe gives another value of any number."""
        return any(item.number.has_other_default for item in self.listed)


@dataclass(frozen=True)
class RecipeCounts:
    """The printed numbers of a recipe by match; None if there are none of a match."""

    recipe: str
    by_match: tuple[int | None, ...]


@dataclass(frozen=True)
class Replication:
    """The printed numbers of a paper; empty for a campaign without them."""

    groups: tuple[Group, ...] = ()
    tallies: tuple[Tally, ...] = ()
    recipes: tuple[RecipeCounts, ...] = ()
    recipe_matches: tuple[str, ...] = ()
    numbers: int = 0
    exact: int = 0
    by_search: int = 0
    weak: int = 0
    near: int = 0
    differ: int = 0
    absent: int = 0


def replication(evidence: Evidence) -> Replication:
    """Return the printed numbers of an imported campaign with their matches."""
    reader = evidence.reader
    checks = reader.checks() if isinstance(reader, ImportedCampaign) else []
    if not checks:
        return Replication()
    by_group: dict[str, list[Check]] = {}
    for check in checks:
        by_group.setdefault(check["group"], []).append(check)
    counts = Counter(check["match"] for check in checks)
    recipes, matches = _recipes(checks)
    return Replication(
        tuple(_group(group, group_checks) for group, group_checks in by_group.items()),
        tuple(_tally(group, group_checks) for group, group_checks in by_group.items()),
        recipes,
        matches,
        len(checks),
        counts[EXACT],
        counts[BY_SEARCH],
        _weak(checks),
        counts[NEAR],
        counts[DIFFERS],
        counts[ABSENT],
    )


def _weak(checks: Sequence[Check]) -> int:
    return sum(bool(check["weak"]) for check in checks)


def _number(check: Check) -> PrintedNumber:
    value, default, printed = check["value"], check["default_value"], check["published"]
    return PrintedNumber(
        as_printed(printed),
        value,
        with_more_digits(value, printed),
        default,
        with_more_digits(default, printed),
        str(check["match"]),
        bool(check["weak"]),
        check["searched"],
        check["recipe"],
        check["explanation"],
    )


def _tally(group: str, checks: Sequence[Check]) -> Tally:
    counts = Counter(check["match"] for check in checks)
    by_match = tuple(counts.get(match) for match in MATCHES)
    return Tally(group, len(checks), _weak(checks) or None, by_match)


def _group(group: str, checks: Sequence[Check]) -> Group:
    counts = Counter(check["match"] for check in checks)
    by_match = tuple(MatchCount(match, counts[match]) for match in MATCHES if counts[match])
    is_table = all(COLUMN in check["place"] for check in checks)
    names = _place_keys(checks, without=(COLUMN, "table") if is_table else ("table",))
    rows = _laid_out(names, checks) if is_table else ()
    listed = () if is_table else tuple(_listed(names, check) for check in checks)
    inexact_checks = [check for check in checks if check["match"] in (BY_SEARCH, NEAR, DIFFERS)]
    inexact_names = _place_keys(checks, without=("table", "section"))
    has_columns = any(COLUMN in check["place"] for check in checks)
    return Group(
        group,
        tuple(_shared(checks)),
        len(checks),
        by_match,
        names,
        tuple(dict.fromkeys(check["place"][COLUMN] for check in checks)) if is_table else (),
        rows,
        listed,
        tuple(_inexact(inexact_names, check) for check in inexact_checks),
        len(rows or listed) > OPEN_ROWS and has_columns,
    )


def _laid_out(names: Sequence[str], checks: Sequence[Check]) -> tuple[LaidOutRow, ...]:
    columns = list(dict.fromkeys(check["place"][COLUMN] for check in checks))
    rows: dict[tuple[str, ...], dict[str, PrintedNumber]] = {}
    for check in checks:
        place = tuple(str(check["place"].get(name, "")) for name in names)
        rows.setdefault(place, {})[check["place"][COLUMN]] = _number(check)
    return tuple(
        LaidOutRow(
            place,
            tuple(numbers[name].printed if name in numbers else None for name in columns),
            tuple(numbers.get(name) for name in columns),
        )
        for place, numbers in rows.items()
    )


def _listed(names: Sequence[str], check: Check) -> ListedNumber:
    place = tuple(str(check["place"].get(name, "")) for name in names)
    return ListedNumber(place, _number(check))


def _inexact(names: Sequence[str], check: Check) -> ListedNumber:
    place = check["place"]
    return ListedNumber(
        tuple(str(place[name]) for name in names if place.get(name)), _number(check)
    )


def _place_keys(checks: Sequence[Check], without: Sequence[str]) -> tuple[str, ...]:
    """Return the keys whose values differ between the checks' places.

    For a single check, return all keys.
    """
    names = dict.fromkeys(name for check in checks for name in check["place"])
    return tuple(
        name
        for name in names
        if name not in without
        if len({check["place"].get(name) for check in checks}) > 1 or len(checks) == 1
    )


def _shared(checks: Sequence[Check]) -> list[str]:
    """Return the values of the places that all checks share."""
    names = dict.fromkeys(name for check in checks for name in check["place"])
    values = {name: {str(check["place"].get(name, "")) for check in checks} for name in names}
    return [
        text
        for name, (text, *others) in ((key, tuple(texts)) for key, texts in values.items())
        if not others and text and name not in ("table", "section") and len(checks) > 1
    ]


def _recipes(checks: Sequence[Check]) -> tuple[tuple[RecipeCounts, ...], tuple[str, ...]]:
    """Return the matches of each recipe, most exact first, and the matches that occur."""
    counts = Counter((check["recipe"], check["match"]) for check in checks if check["recipe"])
    matches = tuple(
        match for match in MATCHES[:4] if any(match == recorded for _, recorded in counts)
    )
    recipes = dict.fromkeys(recipe for recipe, _ in counts)
    rows = [
        RecipeCounts(recipe, tuple(counts.get((recipe, match)) for match in matches))
        for recipe in sorted(recipes, key=lambda recipe: -counts[recipe, EXACT])
    ]
    return tuple(rows), matches

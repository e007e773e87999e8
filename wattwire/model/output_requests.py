"""Parse `[[table]]`, `[[figure]]`, `[[ranking]]` and `[[break_even]]`, which request output."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from wattwire.model.deployment import ROLES
from wattwire.model.errors import UsageError, unknown
from wattwire.model.fields import given, listed_tables, names, needed, number, read_table
from wattwire.model.limits import check_where
from wattwire.model.treatment import Level, are_numbers

BOTH = "both"
"""The role of tables that show all roles of a run together."""
KINDS: Mapping[str, tuple[str, ...]] = {
    "box": ("response", "instead"),
    "line": ("response", "instead", "x", "scale"),
    "scatter": ("response", "instead", "against"),
    "stacked": ("responses",),
}
"""Kinds of figures, and the keys that only some of the kinds use."""
BREAK_EVEN = "break_even"
"""Key of the study's tables of break-evens."""
_REQUIRED = ("response", "against", "x", "responses")


def _none_or_two(pair: tuple[str, ...]) -> bool:
    return len(pair) in (0, 2)


def _not_one(names: tuple[str, ...]) -> bool:
    return len(names) != 1


Item = TypeVar("Item")
RESPONSE = 'a response, as "cpu_us_per_message"'


@dataclass(frozen=True)
class ShownValue:
    """A response in a table, for each of `roles`, divided by `divide_by`.

    `published` and `ratio` are columns of the published numbers to compare with. `unit` is the unit
    after the division; the default is the response's unit with the name of the multiple.
    """

    response: str = needed(RESPONSE)
    roles: tuple[str, ...] = names("a list of roles", ("both",), word="role")
    published: str = given("a column")
    ratio: str = given("a column")
    divide_by: float = number("a number above 0", lambda value: 0 < value < math.inf, 1.0)
    unit: str = given("a unit")


@dataclass(frozen=True)
class ShownTable:
    """A table per value and role.

    Its rows are the combinations of the levels of `rows`, and its columns are the levels of
    `columns`. If `best` is true, each number has its ratio to the lowest number of its column.
    `published` names tables of published numbers.
    """

    title: str = needed("a heading")
    rows: tuple[str, ...] = names(
        "a factor, or a list of factors", needed=True, word="factor", or_one=True
    )
    columns: str = given("a factor", word="factor")
    values: tuple[ShownValue, ...] = given(
        'a list of tables, as [{response = "cpu_us_per_message", roles = ["client", "server"]}]',
        (),
        needed=True,
        items=ShownValue,
    )
    best: bool = given("true or false", False)
    published: tuple[str, ...] = names('a list of tables of the published numbers, as ["4"]')
    note: str = given("a sentence")


@dataclass(frozen=True)
class ShownFigure:
    """A figure of one of these kinds. If no meter measured `response`, it shows `instead`.

    - "box": a box plot of treatments by the levels of `by`
    - "line": `response` over the numeric factor `x`, with a line per level of `by`
    - "scatter": `response` against another response
    - "stacked": `responses` as segments of a bar per level of `by`

    `where` maps factors to the levels that the figure shows.
    """

    title: str = needed("a heading")
    kind: str = needed("a kind", word="kind")
    response: str = given(RESPONSE)
    against: str = given("a response")
    x: str = given("a factor whose levels are numbers", word="factor")
    scale: str = given('"log" or "plain"', word="scale")
    responses: tuple[str, ...] = names(
        'a list of two or more responses, as ["latency_p50_us", "latency_p99_us"]', allows=_not_one
    )
    instead: str = given("a response")
    by: str = given("a factor", word="factor")
    roles: tuple[str, ...] = names("a list of roles", ("both",), word="role")
    where: dict[str, Level] = given("{factor = level}", {})


@dataclass(frozen=True)
class ShownRanking:
    """A ranking of treatments by the product of two responses, or of two published columns."""

    title: str = needed("a heading")
    product: tuple[str, ...] = names("two responses", needed=True, allows=_none_or_two)
    published: str = given("a table of the published numbers")
    published_product: tuple[str, ...] = names(
        "two columns of the published numbers", allows=_none_or_two
    )
    note: str = given("a sentence")


@dataclass(frozen=True)
class ShownBreakEven:
    """The amount of work from which it takes less time to hand it over than to do it locally.

    A message at the level `x` of `size` has (`x` − `frame`) / `unit` units of work. At the level
    `busy` of `work`, the receiver does the work; at `idle`, it only replies. The levels `workers`
    of `by` are measured at both; all levels of `by` carry messages. `where` maps factors to the
    levels of the runs that it uses.
    """

    title: str = needed("a heading")
    response: str = needed(RESPONSE)
    size: str = needed("a factor whose levels are numbers", word="factor")
    frame: float = number("a finite number, 0 or more", lambda value: 0 <= value < math.inf, 0.0)
    unit: float = number("a number above 0", lambda value: 0 < value < math.inf, 1.0)
    unit_title: str = given('the plural of a unit of work, as "blocks"', "units")
    work: str = needed("a factor", word="factor")
    idle: str = needed("a level of the factor work")
    busy: str = needed("a level of the factor work")
    by: str = needed("a factor", word="factor")
    workers: tuple[str, ...] = names("two or more levels of the factor by", needed=True)
    where: dict[str, Level] = given("{factor = level}", {})
    note: str = given("a sentence")


@dataclass(frozen=True)
class Shown:
    """All tables, figures, rankings and break-evens that a study requests."""

    tables: tuple[ShownTable, ...] = ()
    figures: tuple[ShownFigure, ...] = ()
    rankings: tuple[ShownRanking, ...] = ()
    break_evens: tuple[ShownBreakEven, ...] = ()

    @property
    def published(self) -> set[str]:
        """Return the names of the published tables that the requested tables compare with."""
        return {name for table in self.tables for name in table.published}


def parse_shown(document: Mapping[str, Any], known: Mapping[str, Any], where: str) -> Shown:
    """Parse and validate the entries of a study that request output.

    `known` maps the study's factors to the levels of varied factors or the level of fixed factors.
    Raises UsageError with the position, the
    value and the allowed values.
    """
    has_published = bool(document.get("published"))
    words = {"factor": known, "role": (*ROLES, BOTH), "kind": KINDS, "scale": ("log", "plain")}
    tables = list(_read(ShownTable, document, "table", words, where))
    figures = list(_read(ShownFigure, document, "figure", words, where))
    rankings = list(_read(ShownRanking, document, "ranking", words, where))
    break_evens = list(_read(ShownBreakEven, document, BREAK_EVEN, words, where))
    for place, table in tables:
        _check_table(table, has_published, place)
    for place, figure in figures:
        _check_figure(figure, known, place)
    for place, ranking in rankings:
        has_columns = bool(ranking.published_product)
        _check_published(bool(ranking.published), has_columns, has_published, place)
    for place, item in break_evens:
        _check_break_even(item, known, place)
    return Shown(
        tuple(table for _, table in tables),
        tuple(figure for _, figure in figures),
        tuple(ranking for _, ranking in rankings),
        tuple(item for _, item in break_evens),
    )


def _read(
    kind: type[Item],
    document: Mapping[str, Any],
    key: str,
    words: Mapping[str, Collection[str]],
    where: str,
) -> Iterator[tuple[str, Item]]:
    """Yield the position (for error messages) and the value of each table in the list `key`.

    Raises UsageError for a value that is not a list of tables.
    """
    for place, item in listed_tables(document.get(key, []), key, where):
        yield place, read_table(kind, item, place, words)


def _check_table(table: ShownTable, has_published: bool, place: str) -> None:
    if table.columns in table.rows:
        raise UsageError(
            f"{place}: rows and columns are both {table.columns}. Set columns to another factor, "
            "or delete it."
        )
    has_columns = any(value.published or value.ratio for value in table.values)
    _check_published(bool(table.published), has_columns, has_published, place)


def _check_figure(figure: ShownFigure, known: Mapping[str, Any], place: str) -> None:
    """Raise UsageError for a missing key, a key of another kind, or an invalid `x` or `where`."""
    check_where(figure.where, {name: _levels(known[name]) for name in known}, place)
    used = KINDS[figure.kind]
    allowed = {declared.name: declared.metadata["allowed"] for declared in fields(ShownFigure)}
    for key in dict.fromkeys(key for keys in KINDS.values() for key in keys):
        value = getattr(figure, key)
        if key in used and key in _REQUIRED and not value:
            raise UsageError(f"{place}: {key}: found nothing; allowed: {allowed[key]}")
        if key not in used and value:
            raise UsageError(
                f'{place}: {key}: the kind "{figure.kind}" does not use this key; delete it. '
                f"It uses: {', '.join(used)}."
            )
    if not figure.x:
        return
    if figure.x == figure.by:
        raise UsageError(
            f"{place}: x and by are both {figure.x}. Set by to another factor, or delete it."
        )
    if not are_numbers(_levels(known[figure.x])):
        numeric = sorted(name for name, levels in known.items() if are_numbers(_levels(levels)))
        raise UsageError(
            f'{place}: x: found "{figure.x}"; allowed: {allowed["x"]}: '
            f"{', '.join(numeric) or 'the study has none'}"
        )


def _check_break_even(item: ShownBreakEven, known: Mapping[str, Any], place: str) -> None:
    """Raise UsageError unless size has numbers and the other factors have the named levels."""
    check_where(item.where, {name: _levels(known[name]) for name in known}, place)
    if not are_numbers(_levels(known[item.size])):
        numeric = sorted(name for name, levels in known.items() if are_numbers(_levels(levels)))
        raise UsageError(
            f'{place}: size: found "{item.size}"; allowed: a factor whose levels are numbers: '
            f"{', '.join(numeric) or 'the study has none'}"
        )
    named = [("idle", item.work, item.idle), ("busy", item.work, item.busy)]
    named += [("workers", item.by, worker) for worker in item.workers]
    for key, factor, level in named:
        levels = [str(known_level) for known_level in _levels(known[factor])]
        if level not in levels:
            raise unknown(f"{place}: {key}", f"level of {factor}", level, levels)
    if len(item.workers) < 2 or item.idle == item.busy:
        key = "workers" if len(item.workers) < 2 else "busy"
        raise UsageError(
            f"{place}: {key}: found {getattr(item, key)!r}; allowed: "
            + ("two or more levels" if key == "workers" else "another level than idle")
            + ", because the break-even compares them"
        )


def _levels(levels: Any) -> tuple[Level, ...]:
    """Return the levels of a varied factor, or the level of a fixed factor, as a tuple."""
    return tuple(levels) if isinstance(levels, (list, tuple)) else (levels,)


def _check_published(has_table: bool, has_columns: bool, has_published: bool, place: str) -> None:
    """Raise UsageError unless published tables and columns are both given or both absent.

    `has_table` and `has_columns` state whether the item names them. Published tables also require
    that the study has published numbers.
    """
    if has_table and not has_published:
        raise UsageError(
            f"{place}: published: the study has no published numbers. Name their file at the "
            'top of the study, for example published = "published.csv".'
        )
    if has_table != has_columns:
        missing = "no value names its column" if has_table else "no table is named"
        raise UsageError(
            f"{place}: published: {missing}. Set the published tables and the column of each "
            "value, or delete both."
        )

"""`[[table]]`, `[[figure]]`, `[[ranking]]`: tables and figures that a study requests."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wattwire.model.errors import UsageError, unknown

TABLE_KEYS = ("title", "rows", "columns", "values", "best", "published", "note")
VALUE_KEYS = ("response", "roles", "published", "ratio", "divide_by")
FIGURE_KEYS = ("title", "kind", "response", "against", "instead", "by", "roles")
FIGURE_KINDS = ("box", "scatter")
RANKING_KEYS = ("title", "product", "published", "published_product", "note")
ROLES = (
    "publisher", "subscriber", "client", "server", "action_client", "action_server", "both",
)  # fmt: skip
"""Roles of a run's nodes; "both" is the pair of roles, or the run as a whole."""


@dataclass(frozen=True)
class ShownValue:
    """A response in a table, for each of `roles`, divided by `divide_by`.

    `published` and `ratio` are columns of the study's published numbers for comparison with it.
    """

    response: str
    roles: tuple[str, ...] = ("both",)
    published: str = ""
    ratio: str = ""
    divide_by: float = 1.0


@dataclass(frozen=True)
class ShownTable:
    """A table for each value and role, with the levels of `rows` down and of `columns` across.

    With `best` each number comes with its ratio to the lowest number of its column. `published`
    names tables of the published numbers.
    """

    title: str
    rows: str
    columns: str = ""
    values: tuple[ShownValue, ...] = ()
    best: bool = False
    published: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class ShownFigure:
    """A box plot of treatments by the levels of `by`, or a scatter plot of two responses.

    The figure shows `instead` where no meter measured `response`.
    """

    title: str
    kind: str
    response: str
    against: str = ""
    instead: str = ""
    by: str = ""
    roles: tuple[str, ...] = ("both",)


@dataclass(frozen=True)
class ShownRanking:
    """A ranking of treatments by the product of two responses, and of two published columns."""

    title: str
    product: tuple[str, ...]
    published: str = ""
    published_product: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Shown:
    """All tables, figures and rankings that a study requests for its page."""

    tables: tuple[ShownTable, ...] = ()
    figures: tuple[ShownFigure, ...] = ()
    rankings: tuple[ShownRanking, ...] = ()

    @property
    def published(self) -> set[str]:
        """Return the names of the published tables that the requested tables are compared with."""
        return {name for table in self.tables for name in table.published}


def parse_shown(document: Mapping[str, Any], known: Iterable[str], where: str) -> Shown:
    """Return the checked `[[table]]`, `[[figure]]` and `[[ranking]]` entries of a study.

    `known` are its factors, varied or fixed. Raises UsageError that gives the place, the value
    and the allowed values.
    """
    factors = tuple(known)
    has_published = bool(document.get("published"))
    tables = tuple(
        _table(item, factors, has_published, place)
        for item, place in _items(document, "table", where)
    )
    figures = tuple(
        _figure(item, factors, item_place) for item, item_place in _items(document, "figure", where)
    )
    rankings = tuple(
        _ranking(item, has_published, item_place)
        for item, item_place in _items(document, "ranking", where)
    )
    return Shown(tables, figures, rankings)


def _items(document: Mapping[str, Any], key: str, where: str) -> list[tuple[Any, str]]:
    """Return the tables of the list `key`, each with its place for error messages."""
    items = document.get(key, [])
    if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
        raise UsageError(f"{where}: {key}: found {items!r}; allowed: tables [[{key}]]")
    return [(item, f"{where}: {key} {number}") for number, item in enumerate(items, 1)]


def _table(
    item: Mapping[str, Any], factors: Sequence[str], has_published: bool, place: str
) -> ShownTable:
    _only(item, TABLE_KEYS, place)
    values = item.get("values", [])
    if (
        not isinstance(values, list)
        or not values
        or not all(isinstance(v, Mapping) for v in values)
    ):
        raise UsageError(
            f"{place}: values: found {values!r}; allowed: a list of tables, as "
            '[{response = "cpu_us_per_message", roles = ["client", "server"]}]'
        )
    table = ShownTable(
        title=_text(item, "title", place, "a heading"),
        rows=_factor(item, "rows", factors, place),
        columns=_factor(item, "columns", factors, place, needed=False),
        values=tuple(_value(v, f"{place}: values {number}") for number, v in enumerate(values, 1)),
        best=_flag(item, "best", place),
        published=_names(item, "published", place, 'tables of the published numbers, as ["4"]'),
        note=_text(item, "note", place, "a sentence", needed=False),
    )
    if table.columns == table.rows:
        raise UsageError(
            f"{place}: {table.rows} is both rows and columns; name another factor or leave "
            "columns out"
        )
    has_published_columns = any(value.published or value.ratio for value in table.values)
    _check_published(bool(table.published), has_published_columns, has_published, place)
    return table


def _check_published(has_table: bool, has_columns: bool, has_published: bool, place: str) -> None:
    """Check that published tables and published columns come together, and that numbers exist.

    `has_table` and `has_columns` say whether the item names them.
    """
    if has_table and not has_published:
        raise UsageError(
            f"{place}: published: the study has no published numbers; name the file at its top, "
            'as published = "published.csv"'
        )
    if has_table != has_columns:
        missing = "no value names its column" if has_table else "no table is named"
        raise UsageError(
            f"{place}: published: {missing}; give both the tables and, for each value, the "
            "column, or neither"
        )


def _value(item: Mapping[str, Any], place: str) -> ShownValue:
    _only(item, VALUE_KEYS, place)
    divide_by = item.get("divide_by", 1.0)
    numeric = isinstance(divide_by, (int, float)) and not isinstance(divide_by, bool)
    if not numeric or not 0 < divide_by < math.inf:
        raise UsageError(f"{place}: divide_by: found {divide_by!r}; allowed: a number above 0")
    return ShownValue(
        response=_text(item, "response", place, 'a response, as "cpu_us_per_message"'),
        roles=_roles(item, place),
        published=_text(item, "published", place, "a column", needed=False),
        ratio=_text(item, "ratio", place, "a column", needed=False),
        divide_by=float(divide_by),
    )


def _figure(item: Mapping[str, Any], factors: Sequence[str], place: str) -> ShownFigure:
    _only(item, FIGURE_KEYS, place)
    kind = _text(item, "kind", place, " or ".join(FIGURE_KINDS))
    if kind not in FIGURE_KINDS:
        raise unknown(place, "kind", kind, FIGURE_KINDS)
    against = _text(item, "against", place, "a response", needed=kind == "scatter")
    if against and kind != "scatter":
        raise UsageError(f"{place}: against: a {kind} has one response; delete it")
    return ShownFigure(
        title=_text(item, "title", place, "a heading"),
        kind=kind,
        response=_text(item, "response", place, 'a response, as "cpu_us_per_message"'),
        against=against,
        instead=_text(item, "instead", place, "a response", needed=False),
        by=_factor(item, "by", factors, place, needed=False),
        roles=_roles(item, place),
    )


def _ranking(item: Mapping[str, Any], has_published: bool, place: str) -> ShownRanking:
    _only(item, RANKING_KEYS, place)
    product = _names(item, "product", place, "two responses")
    if len(product) != 2:
        raise UsageError(f"{place}: product: found {list(product)!r}; allowed: two responses")
    published_columns = _names(
        item, "published_product", place, "two columns of the published numbers"
    )
    table = _text(item, "published", place, "a table of the published numbers", needed=False)
    _check_published(bool(table), bool(published_columns), has_published, place)
    if published_columns and len(published_columns) != 2:
        raise UsageError(
            f"{place}: published_product: found {list(published_columns)!r}; allowed: two columns"
        )
    return ShownRanking(
        title=_text(item, "title", place, "a heading"),
        product=product,
        published=table,
        published_product=published_columns,
        note=_text(item, "note", place, "a sentence", needed=False),
    )


def _only(item: Mapping[str, Any], allowed: Sequence[str], place: str) -> None:
    """Raise UsageError for the first key of `item` that is not in `allowed`."""
    for key in item:
        if key not in allowed:
            raise unknown(place, "key", key, allowed)


def _text(item: Mapping[str, Any], key: str, place: str, allowed: str, needed: bool = True) -> str:
    value = item.get(key, "")
    if not isinstance(value, str) or (needed and not value):
        value_text = "nothing" if value == "" else repr(value)
        raise UsageError(f"{place}: {key}: found {value_text}; allowed: {allowed}")
    return value


def _flag(item: Mapping[str, Any], key: str, place: str) -> bool:
    value = item.get(key, False)
    if not isinstance(value, bool):
        raise UsageError(f"{place}: {key}: found {value!r}; allowed: true or false")
    return value


def _names(item: Mapping[str, Any], key: str, place: str, allowed: str) -> tuple[str, ...]:
    value = item.get(key, [])
    if not isinstance(value, list) or not all(isinstance(name, str) and name for name in value):
        raise UsageError(f"{place}: {key}: found {value!r}; allowed: a list of {allowed}")
    if len(set(value)) != len(value):
        raise UsageError(f"{place}: {key}: a name is given twice in {value!r}; give it once")
    return tuple(value)


def _roles(item: Mapping[str, Any], place: str) -> tuple[str, ...]:
    roles = _names(item, "roles", place, "roles") or ("both",)
    for role in roles:
        if role not in ROLES:
            raise unknown(f"{place}: roles", "role", role, ROLES)
    return roles


def _factor(
    item: Mapping[str, Any], key: str, factors: Sequence[str], place: str, needed: bool = True
) -> str:
    name = _text(item, key, place, f"a factor: {', '.join(sorted(factors))}", needed)
    if name and name not in factors:
        raise unknown(f"{place}: {key}", "factor", name, factors)
    return name

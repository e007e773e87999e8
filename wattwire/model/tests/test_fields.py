"""Tests of the parser of tables, including typed values, defaults and errors."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from wattwire.model.errors import UsageError
from wattwire.model.fields import given, listed_tables, names, needed, number, read_table


@dataclass(frozen=True)
class Leaf:
    name: str = needed("a leaf's name")


@dataclass(frozen=True)
class Made:
    name: str = needed("a name")
    count: int = 3
    length_s: float = 1.5
    works: bool = True
    kind: str = given("a kind", "flat", word="kind")
    parts: tuple[str, ...] = names("parts' names", ("all",), word="part")
    share: float | None = number("between 0 and 1", lambda value: 0 < value < 1)
    table: dict[str, int] = given("a table", {})
    leaves: tuple[Leaf, ...] = given("a list of tables", (), items=Leaf)


WORDS = {"kind": ("flat", "steep"), "part": ("head", "tail")}


def read(**table):
    return read_table(Made, {"name": "x", **table}, "file: made", WORDS, {"amount": "count"})


def test_values_are_typed_and_what_is_left_out_has_its_default():
    assert read() == Made("x")
    made = read(length_s=2, parts=["tail"], share=0.5, table={"a": 1}, leaves=[{"name": "l"}])
    assert made == Made("x", 3, 2.0, True, "flat", ("tail",), 0.5, {"a": 1}, (Leaf("l"),))
    assert type(made.length_s) is float and read(parts=[]).parts == ("all",)


@pytest.mark.parametrize(
    ("table", "told"),
    [
        (
            {"nam": "x"},
            'file: made: unknown key "nam"; known: count, kind, leaves, length_s, name,',
        ),
        ({"amount": 1}, 'Did you mean "count"?'),
        ({"name": ""}, "file: made: name: found nothing; allowed: a name"),
        ({"kind": ["flat"]}, "found ['flat']; allowed: a kind (one name without brackets)"),
        ({"name": 3}, "name: found 3; allowed: a name"),
        ({"count": True}, "count: found True; allowed: an integer"),
        ({"count": 1.5}, "count: found 1.5; allowed: an integer"),
        ({"count": -1}, "count: found -1; allowed: a finite number, 0 or more"),
        ({"length_s": "1"}, "length_s: found '1'; allowed: a finite number"),
        ({"length_s": float("nan")}, "length_s: found nan; allowed: a finite number"),
        ({"length_s": 10**400}, "allowed: a finite number"),
        ({"works": 1}, "works: found 1; allowed: true or false"),
        ({"kind": 1}, "kind: found 1; allowed: a kind: flat, steep"),
        ({"kind": "flatt"}, 'kind: unknown kind "flatt"; known: flat, steep. Did you mean "flat"?'),
        ({"parts": "head"}, "parts: found 'head'; allowed: parts' names"),
        ({"parts": ["head", "head"]}, "parts: found a part twice in ['head', 'head']"),
        (
            {"parts": ["heed"]},
            'parts: unknown part "heed"; known: head, tail. Did you mean "head"?',
        ),
        ({"share": 1}, "share: found 1; allowed: between 0 and 1"),
        ({"table": []}, "table: found []; allowed: a table"),
        ({"leaves": [3]}, "leaves: found [3]; allowed: a list of tables"),
        ({"leaves": [{"name": "l"}, {}]}, "leaves 2: name: found nothing; allowed: a leaf's name"),
    ],
)
def test_a_wrong_table_is_refused_in_words(table, told):
    with pytest.raises(UsageError) as caught:
        read(**table)
    assert told in str(caught.value)


def test_each_table_of_a_list_has_its_position():
    tables = listed_tables([{"name": "a"}, {}], "leaf", "file")
    assert tables == [("file: leaf 1", {"name": "a"}), ("file: leaf 2", {})]


@pytest.mark.parametrize("items", [{"name": "a"}, "a", 3, [{}, "a"]])
def test_any_other_value_than_a_list_of_tables_is_refused(items):
    with pytest.raises(UsageError) as caught:
        listed_tables(items, "leaf", "file")
    assert str(caught.value) == f"file: leaf: found {items!r}; allowed: tables [[leaf]]"

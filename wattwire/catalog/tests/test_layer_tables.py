"""Tables of wrapped functions: their keys, and functions that two tables wrap."""

from __future__ import annotations

from pathlib import Path

import pytest

from wattwire.catalog import home
from wattwire.catalog.layer_tables import layer_tables
from wattwire.model.errors import UsageError
from wattwire.model.layers import SPANS, WRAPPED

POINT = '[[points]]\npoint = "notify"\nlibrary = "libc.so.6"\nsymbol = "sem_post"\narguments = 1\n'
CALLERS = 'callers = ["liba.so*"]\n'


def write(root: Path, middleware: str, text: str) -> None:
    folder = root / "middleware" / middleware / "layers"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "table.toml").write_text(text)


def test_the_tables_of_this_repository_have_every_span() -> None:
    points = {wrapper.point for wrapper in layer_tables([home()])}
    assert {*SPANS, "notify", "rcl_take"} <= points <= set(WRAPPED)


def test_a_folder_without_tables_has_no_wrappers(tmp_path: Path) -> None:
    assert layer_tables([tmp_path]) == ()


def test_one_wrapper_serves_the_callers_of_two_tables(tmp_path: Path) -> None:
    write(tmp_path, "a", POINT + CALLERS)
    write(tmp_path, "b", POINT + CALLERS.replace("liba", "libb"))
    (wrapper,) = layer_tables([tmp_path])
    assert wrapper.callers == ("liba.so*", "libb.so*")


@pytest.mark.parametrize(
    ("second", "fragment"),
    [
        (POINT, "in another way"),
        (POINT.replace("notify", "timer") + CALLERS, "in another way"),
    ],
)
def test_two_tables_that_disagree_on_a_symbol_are_named(
    tmp_path: Path, second: str, fragment: str
) -> None:
    write(tmp_path, "a", POINT + CALLERS)
    write(tmp_path, "b", second)
    with pytest.raises(UsageError, match=fragment) as raised:
        layer_tables([tmp_path])
    assert "b/layers/table.toml" in str(raised.value)
    assert "a/layers/table.toml" in str(raised.value)


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("", "no \\[\\[points\\]\\]"),
        (POINT.replace("notify", "notfy"), 'Did you mean "notify"'),
        (POINT.replace("arguments = 1", "arguments = 13"), "allowed: 1 to 12"),
        (POINT.replace("arguments = 1\n", ""), "arguments is missing"),
        (POINT.replace("sem_post", "sem post"), "as `nm -D` prints it"),
        (POINT.replace("symbol", "symbols"), 'unknown key "symbols"'),
        (POINT + "callers = " + str([f"l{i}" for i in range(5)]), "at most 4"),
    ],
)
def test_a_damaged_table_is_refused_with_its_place(
    tmp_path: Path, text: str, fragment: str
) -> None:
    write(tmp_path, "a", text)
    with pytest.raises(UsageError, match=fragment) as raised:
        layer_tables([tmp_path])
    assert "a/layers/table.toml" in str(raised.value)

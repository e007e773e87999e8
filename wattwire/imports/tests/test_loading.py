"""Test that readers in studies are found by name and path, loaded, or refused with a message."""

from __future__ import annotations

from pathlib import Path

import pytest

from wattwire import imports
from wattwire.catalog import home
from wattwire.model.errors import UsageError
from wattwire.model.publication import READER_FILE

READER = """
import polars as pl
from wattwire.imports import Imported
from wattwire.imports.imported import PROVENANCE
from . import values

RECIPES = {"right": "as it is", "theirs": "twice"}


def read(source, recipe):
    number = values.NUMBER * (2 if recipe == "theirs" else 1)
    runs = pl.DataFrame({
        "run": ["a", "b"], "attempt": [1, 1], "block": [1, 1], "position": [1, 2],
        "verdict": ["valid", "valid"], "outcome": ["completed"] * 2, "used": [True, True],
        "control": ["", ""], "factor.size": [1, 2], "power_w": [number, number + 1],
    })
    told = [{"run": r, "column": "power_w", "files": ["x.csv"], "rows_used": 1,
             "rows_left_out": 0, "how": "read"} for r in ("a", "b")]
    return Imported({"name": "tiny"}, runs, pl.DataFrame(told, schema=PROVENANCE), ())
"""


def study(root: Path, name: str = "tiny", reader: str = READER, number: float = 1.5) -> Path:
    folder = root / "studies" / name
    folder.mkdir(parents=True)
    (folder / "replication.py").write_text(reader, encoding="utf-8")
    (folder / "values.py").write_text(f"NUMBER = {number}\n", encoding="utf-8")
    return folder


def test_a_reader_is_found_by_its_study_and_loads_the_modules_beside_it(tmp_path) -> None:
    study(tmp_path)
    reader = imports.find("tiny", [tmp_path])
    assert reader.default == "right" and reader.study == "tiny"
    assert reader.read(tmp_path).runs["power_w"].to_list() == [1.5, 2.5]
    assert reader.read(tmp_path, "theirs").runs["power_w"].to_list() == [3.0, 4.0]


def test_the_first_root_that_has_a_study_wins(tmp_path) -> None:
    study(tmp_path / "one", number=1.0)
    study(tmp_path / "two", number=9.0)
    for roots, expected in ((("one", "two"), 1.0), (("two", "one"), 9.0)):
        reader = imports.find("tiny", [tmp_path / root for root in roots])
        assert reader.read(tmp_path).runs["power_w"][0] == expected


def test_studies_whose_names_read_alike_keep_their_modules_apart(tmp_path) -> None:
    """Both names are converted to the same Python identifier."""
    study(tmp_path, "a-b", number=1.0)
    study(tmp_path, "a_b", number=2.0)
    found = [imports.find(name, [tmp_path]).read(tmp_path).runs["power_w"][0]
             for name in ("a-b", "a_b", "a-b")]  # fmt: skip
    assert found == [1.0, 2.0, 1.0]


def test_a_study_is_found_by_its_folder(tmp_path) -> None:
    folder = study(tmp_path)
    assert imports.find(str(folder), []).study == "tiny"


def test_an_unknown_study_is_named_with_those_that_can_be_read(tmp_path) -> None:
    study(tmp_path)
    with pytest.raises(UsageError, match=r'unknown study with a reader "tinny"; known: tiny'):
        imports.find("tinny", [tmp_path])


@pytest.mark.parametrize(
    ("reader", "words"),
    [
        (
            "RECIPES = {}\ndef read(a, b): ...",
            "RECIPES: found {}; allowed: a dict of names and descriptions",
        ),
        ("RECIPES = {'a': 'b'}", "the function read"),
        ("1 / 0", "cannot be loaded .ZeroDivisionError"),
        ("def read(:", "cannot be loaded .SyntaxError"),
    ],
)
def test_a_broken_reader_is_refused_with_its_place(tmp_path, reader: str, words: str) -> None:
    folder = study(tmp_path, reader=reader)
    with pytest.raises(UsageError, match=words):
        imports.load(folder)


def test_a_study_without_a_reader_says_what_else_there_is(tmp_path) -> None:
    (tmp_path / "bare").mkdir()
    with pytest.raises(UsageError, match="import csv FILE"):
        imports.find(str(tmp_path / "bare"), [])


def test_what_is_not_there_cannot_be_read(tmp_path) -> None:
    study(tmp_path)
    with pytest.raises(UsageError, match="this folder does not exist; name the folder"):
        imports.find("tiny", [tmp_path]).read(tmp_path / "no")


def test_a_reader_that_hands_over_something_else_is_named(tmp_path) -> None:
    folder = study(tmp_path, reader="RECIPES = {'a': 'b'}\ndef read(a, b): return 5")
    with pytest.raises(UsageError, match=r"read\(\) must return an Imported object"):
        imports.load(folder).read(tmp_path)


def test_listing_recipes_executes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "studies" / "tiny"
    folder.mkdir(parents=True)
    touched = tmp_path / "executed"
    code = f"open({str(touched)!r}, 'w').close()\n"
    (folder / READER_FILE).write_text(code + 'RECIPES = {"a": "one " "text", "b": "two"}\n')
    assert imports.listed_recipes(folder) == {"a": "one text", "b": "two"}
    (folder / READER_FILE).write_text(code + 'RECIPES: dict[str, str] = {"a": "one"}\n')
    assert imports.listed_recipes(folder) == {"a": "one"}
    (folder / READER_FILE).write_text(code + "RECIPES = dict(a=1)\n")
    assert imports.listed_recipes(folder) == {}
    assert not touched.exists()


def test_the_studies_of_this_repository_list_their_recipes_without_execution() -> None:
    listed = {name: imports.listed_recipes(folder)
              for name, folder in imports.readers([home()]).items()}  # fmt: skip
    assert len(listed) > 1
    assert all(listed[name] == dict(imports.find(name, [home()]).recipes) for name in listed)

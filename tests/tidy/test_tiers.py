"""Test that the table of tiers decides for every test, and that each of its entries is needed.

`tools/tests/test_tiers.py` compares the tiers with all tests that pytest collects.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests import tiers
from tests.tidy.tree import ROOT, files

TEST_FILES = tuple(path for path in files() if re.fullmatch(r"test_.*\.py", path.name))
NEEDS_MORE_THAN_PYTHON = re.compile(
    r"\b(?:AgentClient|find_agent|find_emulator|built_cells|user_namespace)\b"
    r"|\bmark\.(?:quiet|browser|hardware|matrix)\b"
)


def functions_in(path: Path) -> set[str]:
    nodes = ast.walk(ast.parse((ROOT / path).read_text("utf-8")))
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef)}


def test_every_test_has_a_tier() -> None:
    assert len(TEST_FILES) > 300
    assert {tiers.tier_of(path.as_posix()) for path in TEST_FILES} == {"quick", "test", "full"}


@pytest.mark.parametrize("entry", tiers.ENTRIES)
def test_an_entry_names_tests_that_exist(entry: str) -> None:
    place, _, name = entry.partition("[")[0].partition("::")
    assert [path for path in TEST_FILES if Path(place) in (path, *path.parents)]
    assert not name or name in functions_in(Path(place))


@pytest.mark.parametrize("entry", tiers.ENTRIES)
def test_an_entry_has_another_tier_than_what_contains_it(entry: str) -> None:
    _, *above = tiers.containing(entry)
    inherited = next((tiers.ENTRIES[place] for place in above if place in tiers.ENTRIES), "")
    assert tiers.ENTRIES[entry] in {"quick", "test", "full"} - {inherited}


def test_quick_tests_need_python_alone() -> None:
    quick = [path for path in TEST_FILES if tiers.tier_of(path.as_posix()) == "quick"]
    assert len(quick) > 50
    problems = [
        f"{path}: {match.group()}"
        for path in quick
        if path.name != Path(__file__).name
        for match in NEEDS_MORE_THAN_PYTHON.finditer((ROOT / path).read_text("utf-8"))
    ]
    assert problems == []


def test_the_nearest_entry_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = {"a": "full", "a/b.py": "test", "a/b.py::c": "full", "a/b.py::c[d/e]": "quick"}
    monkeypatch.setattr(tiers, "ENTRIES", entries)
    tests = ("a/x/y.py::z", "a/b.py::x[c]", "a/b.py::c[d]", "a/b.py::c[d/e]")
    assert [tiers.tier_of(test) for test in tests] == ["full", "test", "full", "quick"]
    assert tiers.tiers_in("a") == {"quick", "test", "full", "all"}
    assert tiers.tiers_in("a/x") == {"full", "all"}
    with pytest.raises(LookupError, match="ab/c.py: no tier; add its folder to tests/tiers.toml"):
        tiers.tier_of("ab/c.py")


@pytest.mark.parametrize(
    ("tier", "after", "selected"),
    [
        ("quick", "", {"quick"}),
        ("test", "", {"quick", "test"}),
        ("full", "", {"quick", "test", "full"}),
        ("full", "test", {"full"}),
        ("all", "quick", {"test", "full", "all"}),
        ("test", "full", set()),
    ],
)
def test_a_tier_includes_those_before_it(tier: str, after: str, selected: set[str]) -> None:
    assert tiers.selected(tier, after) == selected

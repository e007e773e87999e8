"""Test that folders have few files, and that files are named after their content."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.tidy.tree import ROOT, files

FILES_MAX = 25
SUFFIXES = {".py", ".rs"}


def crowded(paths: list[Path]) -> dict[str, int]:
    """Return the folders with more than FILES_MAX source files, without tests."""
    counts: dict[str, int] = {}
    for path in paths:
        if path.suffix in SUFFIXES and "tests" not in path.parts:
            counts[str(path.parent)] = counts.get(str(path.parent), 0) + 1
    return {folder: count for folder, count in counts.items() if count > FILES_MAX}


def test_no_folder_holds_more_than_a_reader_looks_through() -> None:
    assert crowded(files()) == {}


def test_a_crowded_folder_is_named() -> None:
    assert crowded([Path(f"wattwire/x/m{at}.py") for at in range(26)]) == {"wattwire/x": 26}
    assert crowded([Path(f"wattwire/x/tests/test_{at}.py") for at in range(26)]) == {}


SECTIONS = sorted((ROOT / "wattwire" / "report" / "sections").glob("[a-z]*.py"))


@pytest.mark.parametrize("path", SECTIONS, ids=lambda path: path.stem)
def test_a_section_is_in_the_file_of_its_anchors_name(path: Path) -> None:
    anchors = re.findall(r'Section\(\s*"([a-z-]+)"', path.read_text("utf-8"))
    assert anchors and anchors[0].replace("-", "_") == path.stem


def test_the_page_is_known_to_the_command_line_alone() -> None:
    """The table of layers checks this for `run`. This test covers code outside the package."""
    imported = set()
    for path in files():
        if path.suffix == ".py" and path.parts[0] == "bench":
            nodes = ast.walk(ast.parse((ROOT / path).read_text("utf-8")))
            imported |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    of_pages = {name for name in imported if name.startswith("wattwire.report")}
    assert {name for name in of_pages if ".tests." not in name} == set()

"""Test that folders have few files, and that files are named after their content."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.tidy.layers import is_test
from tests.tidy.tree import ROOT, files

FILES_MAX = 25
SUFFIXES = {".py", ".rs"}
SOURCE_SUFFIXES = SUFFIXES | {".j2", ".js", ".css", ".toml"}


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


CORE = ("wattwire", "agent", "emulator")
SAME_NAME_MAX = 2
SHARED_NAMES = frozenset({"__init__.py", "conftest.py", "numbers.py", "page.html.j2", "words.j2"})
"""Names that tools require, and names of the files of a topic, which its folder distinguishes."""


def repeated_names(paths: list[Path]) -> dict[str, int]:
    """Return the file names of the core that occur more than SAME_NAME_MAX times, without tests."""
    counts: dict[str, int] = {}
    for path in paths:
        if path.parts[0] in CORE and not is_test(path):
            counts[path.name] = counts.get(path.name, 0) + 1
    return {
        name: count
        for name, count in counts.items()
        if count > SAME_NAME_MAX and name not in SHARED_NAMES
    }


def test_a_file_name_states_the_content_and_not_only_the_subject() -> None:
    """A reader who knows a name must not open three files to find the content."""
    repeated = repeated_names([path for path in files() if path.suffix in SOURCE_SUFFIXES])
    assert repeated == {}, "rename these files after their content"


def test_a_name_of_three_files_is_found() -> None:
    paths = [Path(f"wattwire/{folder}/results.py") for folder in "abc"]
    assert repeated_names(paths) == {"results.py": 3}
    assert repeated_names(paths[1:]) == {}
    tests = [Path(f"wattwire/{folder}/tests/made_up.py") for folder in "abc"]
    topics = [Path(f"wattwire/analysis/topics/{topic}/numbers.py") for topic in "abc"]
    assert repeated_names([*tests, *topics]) == {}


def test_the_page_is_known_to_the_command_line_alone() -> None:
    """The table of layers checks this for `run`. This test covers code outside the package."""
    imported = set()
    for path in files():
        if path.suffix == ".py" and path.parts[0] == "bench":
            nodes = ast.walk(ast.parse((ROOT / path).read_text("utf-8")))
            imported |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    of_pages = {name for name in imported if name.startswith("wattwire.report")}
    assert {name for name in of_pages if ".tests." not in name} == set()

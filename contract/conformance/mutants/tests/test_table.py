"""Test that an invalid table of mutants is rejected with its file, key and value."""

from __future__ import annotations

from pathlib import Path

import pytest

from contract.conformance.mutants.__main__ import main
from contract.conformance.mutants.table import mutants, read_table

VALID = """quick = ["a fault"]
[[mutant]]
name = "a fault"
file = "kit.x"
find = "one"
replace = "two"
clause = "C-10"
scenarios = ["open[topic]", "lines"]
"""


def table(folder: Path, text: str = VALID) -> Path:
    """Create a language with a one-file kit and a cell for topics; return its table's path."""
    for name, content in {
        "languages/x/kit/kit.x": "one",
        "languages/x/mutants.toml": text,
        "middleware/loopback/x/node.toml": 'patterns = ["topic"]\n',
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder / "languages/x/mutants.toml"


def test_a_valid_table_is_read_with_its_language(tmp_path):
    (mutant,) = read_table(table(tmp_path))
    assert mutant.identity == "x: a fault" and mutant.quick
    assert mutant.scenarios == ("open[topic]", "lines")


@pytest.mark.parametrize(
    ("valid", "invalid", "message"),
    [
        ('"lines"', '"line"', 'mutant "a fault": scenarios: unknown scenario "line"; similar:'),
        ("open[topic]", "open[service]", 'scenarios: unknown scenario "open[service]"'),
        ("C-10", "C-99", 'mutant "a fault": clause: unknown clause "C-99"'),
        ('"kit.x"', '"kitt.x"', "file: unknown file of the kit \"kitt.x\"; similar: kit.x"),
        ("find =", "fnid =", 'mutant "a fault": unknown key "fnid"; similar: find'),
        ('find = "one"\n', "", 'mutant "a fault": find: missing'),
        ('["open[topic]", "lines"]', "[]", 'mutant "a fault": scenarios: found []'),
        ('quick = ["a fault"]', 'quick = ["a fualt"]', 'quick: unknown mutant "a fualt"'),
        ("quick =", 'without = {C-77 = "no"}\nquick =', 'without: unknown clause "C-77"'),
        ("quick =", "quik =", 'unknown key "quik"; similar: quick'),
        ("quick =", 'middleware = "tpc"\nquick =', "middleware: tpc has no cell in x"),
    ],
)  # fmt: skip
def test_an_invalid_entry_is_rejected_with_file_key_and_value(tmp_path, valid, invalid, message):
    assert VALID.count(valid) == 1 or valid in ("quick =",)
    path = table(tmp_path, VALID.replace(valid, invalid, 1))
    with pytest.raises(LookupError) as caught:
        read_table(path)
    assert str(caught.value).startswith(f"{path}: ") and message in str(caught.value)


def test_a_fault_may_be_in_a_file_of_the_cell(tmp_path):
    path = table(tmp_path, VALID.replace('"kit.x"', '"cell:node.toml"'))
    assert read_table(path)[0].file == "cell:node.toml"
    path.write_text(VALID.replace('"kit.x"', '"cell:kit.x"'))
    with pytest.raises(LookupError, match='unknown file of the cell "kit.x"; allowed: node.toml'):
        read_table(path)


def test_every_table_of_the_repository_is_valid():
    assert len({mutant.language for mutant in mutants()}) > 1


def test_the_command_reports_the_error_and_builds_nothing(monkeypatch, tmp_path, capsys):
    table(tmp_path, VALID.replace('"lines"', '"line"'))
    monkeypatch.setattr("contract.conformance.mutants.table.ROOT", tmp_path)
    assert main([]) == 2
    assert 'unknown scenario "line"; similar: lines' in capsys.readouterr().err

"""An invalid table of planted faults is refused on reading, with its file, key and value."""

from __future__ import annotations

from pathlib import Path

import pytest

from contract.conformance.mutants.__main__ import main
from contract.conformance.mutants.table import mutants, read_table

SOUND = """quick = ["a fault"]
[[mutant]]
name = "a fault"
file = "kit.x"
find = "one"
replace = "two"
clause = "C-10"
scenarios = ["open[topic]", "lines"]
"""


def table(folder: Path, text: str = SOUND) -> Path:
    """Return a language with a one-file kit, tested by a cell for topics."""
    for name, content in {
        "languages/x/kit/kit.x": "one",
        "languages/x/mutants.toml": text,
        "middleware/loopback/x/node.toml": 'patterns = ["topic"]\n',
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder / "languages/x/mutants.toml"


def test_a_sound_table_is_read_with_its_language(tmp_path):
    (mutant,) = read_table(table(tmp_path))
    assert mutant.identity == "x: a fault" and mutant.quick
    assert mutant.scenarios == ("open[topic]", "lines")


@pytest.mark.parametrize(
    ("found", "wrong", "told"),
    [
        ('"lines"', '"line"', 'mutant "a fault": scenarios: there is no scenario "line"; close to'),
        ("open[topic]", "open[service]", 'scenarios: there is no scenario "open[service]"'),
        ("C-10", "C-99", 'mutant "a fault": clause: there is no clause "C-99"'),
        ('"kit.x"', '"kitt.x"', "file: there is no file of the kit \"kitt.x\"; close to it: kit.x"),
        ("find =", "fnid =", 'mutant "a fault": there is no key "fnid"; close to it: find'),
        ('find = "one"\n', "", 'mutant "a fault": find: missing'),
        ('["open[topic]", "lines"]', "[]", 'mutant "a fault": scenarios: found []'),
        ('quick = ["a fault"]', 'quick = ["a fualt"]', 'quick: there is no mutant "a fualt"'),
        ("quick =", 'without = {C-77 = "no"}\nquick =', 'without: there is no clause "C-77"'),
        ("quick =", "quik =", 'there is no key "quik"; close to it: quick'),
        ("quick =", 'middleware = "tpc"\nquick =', "middleware: tpc has no cell in x"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_refused_by_file_key_and_name(tmp_path, found, wrong, told):
    assert SOUND.count(found) == 1 or found in ("quick =",)
    path = table(tmp_path, SOUND.replace(found, wrong, 1))
    with pytest.raises(LookupError) as caught:
        read_table(path)
    assert str(caught.value).startswith(f"{path}: ") and told in str(caught.value)


def test_every_table_of_the_repository_is_sound():
    assert len({mutant.language for mutant in mutants()}) > 1


def test_the_command_says_what_is_wrong_and_builds_nothing(monkeypatch, tmp_path, capsys):
    table(tmp_path, SOUND.replace('"lines"', '"line"'))
    monkeypatch.setattr("contract.conformance.mutants.table.ROOT", tmp_path)
    assert main([]) == 2
    assert 'there is no scenario "line"; close to it: lines' in capsys.readouterr().err

"""Test that all keys of phrases are used and none is missing, and that tests assert valid keys."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.tidy.layers import is_test
from tests.tidy.phrases import Table, asserted_keys, table_of, use_problems
from tests.tidy.tree import texts

SOURCES = [
    (path, text)
    for path, text in texts()
    if path.parts[0] == "wattwire" and path.suffix == ".py" and not is_test(path)
]


@cache
def _tables() -> tuple[dict[str, list[Path]], set[str], list[str]]:
    """Return the files by table name, all full keys, and all problems."""
    files: dict[str, list[Path]] = {}
    keys: set[str] = set()
    problems: list[str] = []
    for path, text in SOURCES:
        if "PHRASES" not in text and "Phrases(" not in text:
            continue
        table, form_problems = table_of(path, text)
        problems += form_problems + use_problems(path, text, table)
        if table is not None:
            files.setdefault(table.name, []).append(path)
            keys |= {f"{table.name}.{key}" for key in table.placeholders}
    return files, keys, problems


def test_every_phrase_is_used_and_every_use_names_a_phrase_and_its_values() -> None:
    files, _, problems = _tables()
    problems += [
        f'{paths[0]}: the name "{name}" is also that of {paths[1]}'
        for name, paths in files.items()
        if len(paths) > 1
    ]
    assert not problems, "\n" + "\n".join(problems)
    assert len(files) > 3


def test_tests_assert_keys_that_exist() -> None:
    """A test that asserts the absence of a key would always pass after the key is renamed."""
    files, keys, _ = _tables()
    unknown = [
        f'{path}:{line}: no phrase has the key "{key}"'
        for path, text in texts()
        if path.suffix == ".py" and is_test(path) and path.name != "test_phrases.py"
        for line, key in asserted_keys(text, frozenset(files))
        if key not in keys
    ]
    assert not unknown, "\n" + "\n".join(unknown)


GOOD = 'PHRASES = Phrases("x", {"a": "{n:count} runs", "b": ("b " "{n}")})\n'
HERE = Path("a.py")


def problems_of(source: str) -> list[str]:
    table, problems = table_of(HERE, source)
    return problems + use_problems(HERE, source, table)


def test_a_table_with_its_uses_has_no_problem() -> None:
    assert problems_of(GOOD + 'PHRASES("a", n=1)\nPHRASES("b" if x else "a", n=2)\n') == []
    assert table_of(HERE, GOOD)[0] == Table("x", {"a": frozenset("n"), "b": frozenset("n")})
    assert problems_of("x = 1\n") == []


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ('PHRASES("a", n=1)\n', '"b" is never used'),
        ('PHRASES("a", n=1)\nPHRASES("b", n=1)\nPHRASES("c", n=1)\n', 'no phrase "c"'),
        ('PHRASES("a", n=1)\nPHRASES("b", m=1)\n', "['n'], given are ['m']"),
        ('PHRASES("a", n=1)\nPHRASES("b", n=1, m=1)\n', "given are ['m', 'n']"),
        ('PHRASES("a", **n)\nPHRASES("b", n=1)\n', "given are ['**']"),
        ('PHRASES("a", n=1)\nPHRASES("b", n=1)\nPHRASES(key, n=1)\n', "written out"),
        ('PHRASES("a", n=1)\nPHRASES("b", n=1)\nf(PHRASES)\n', "nowhere else"),
        ('PHRASES("a", n=1)\nPHRASES("b", n=1)\nQ = Phrases("y", {})\n', "2 tables"),
        ('PHRASES("a", n=1)\nPHRASES("b", n=1)\nQ = Phrases("y", TEXTS)\n', "write Phrases("),
    ],
)
def test_a_wrong_use_is_found(source: str, problem: str) -> None:
    (found,) = problems_of(GOOD + source)
    assert problem in found


def test_a_key_given_twice_and_a_table_of_another_file_are_found() -> None:
    twice = 'PHRASES = Phrases("x", {"a": "1", "a": "2"})\nPHRASES("a")\n'
    assert ["a key twice" in problem for problem in problems_of(twice)] == [True]
    borrowed = 'from wattwire.report.words.comparing import PHRASES\nPHRASES("a")\n'
    assert len(problems_of(borrowed)) == 2


def test_keys_that_tests_assert_are_found() -> None:
    source = (
        'only(part, "x.a")\nassert phrases_in(part, "x.b") == []\nassert text.key == "x.c"\n'
        'assert keys_in(part) == ["x.d", "x.e"]\nassert name == "x.f"\n'
        'assert (text.key, text.values["factor"]) == ("x.g", "settings.depth")\n'
    )
    found = sorted(key for _, key in asserted_keys(source, frozenset("x")))
    assert found == ["x.a", "x.b", "x.c", "x.d", "x.e", "x.g"]


def test_no_phrase_has_a_backtick_which_the_page_would_show() -> None:
    quoted = [
        f"{path}:{node.lineno}"
        for path, text in SOURCES
        if path.parts[1] == "report" and "Phrases(" in text
        for call in ast.walk(ast.parse(text))
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Phrases"
        for node in ast.walk(call)
        if isinstance(node, ast.Constant) and "`" in str(node.value)
    ]
    assert not quoted, quoted

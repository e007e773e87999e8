"""Test that only the table of patterns names roles, so that a pattern can be added as data."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy.layers import is_test
from wattwire.model.deployment import ROLES

ROOT = Path(__file__).resolve().parents[2]
TABLE = "wattwire/model/deployment.py"
GENERATED = "wattwire/model/sample_codes.py"
AMBIGUOUS = frozenset({"source"})
"""Roles whose names are also common words of the code."""


def role_problems(path: str, source: str) -> Iterator[str]:
    """Yield each string in a module that is the name of a role."""
    for item in ast.walk(ast.parse(source)):
        if isinstance(item, ast.Constant) and item.value in ROLES.keys() - AMBIGUOUS:
            yield f"{path}:{item.lineno}: the role {item.value} is named outside {TABLE}"


def test_no_module_outside_the_table_names_a_role() -> None:
    problems = [
        problem
        for path in sorted((ROOT / "wattwire").rglob("*.py"))
        for problem in role_problems(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))
        if not is_test(path.relative_to(ROOT))
        and str(path.relative_to(ROOT)) not in (TABLE, GENERATED)
    ]
    assert not problems, "\n" + "\n".join(problems)


@pytest.mark.parametrize("source", ['if role == "relay": pass', 'ROLES = ("ping", "pong")'])
def test_a_planted_role_is_found(source: str) -> None:
    assert list(role_problems("wattwire/run/x.py", source))


def test_prose_and_other_words_are_no_problem() -> None:
    source = '"""A relay and a publisher."""\nname = "source"\nword = "clients"\n'
    assert not list(role_problems("wattwire/run/x.py", source))

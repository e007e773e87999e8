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
NAMES = frozenset(ROLES) - {"source"}
"""Names of roles, without one that is also a common word of the code."""


def role_problems(path: str, source: str) -> Iterator[str]:
    """Yield each string in a module that is the name of a role."""
    for item in ast.walk(ast.parse(source)):
        if isinstance(item, ast.Constant) and item.value in NAMES:
            yield f"{path}:{item.lineno}: the role {item.value} is named outside {TABLE}"


def test_no_module_outside_the_table_names_a_role() -> None:
    paths = (path.relative_to(ROOT) for path in sorted((ROOT / "wattwire").rglob("*.py")))
    problems = [
        problem
        for path in paths
        if not is_test(path) and str(path) not in (TABLE, GENERATED)
        for problem in role_problems(str(path), (ROOT / path).read_text(encoding="utf-8"))
    ]
    assert not problems, "\n" + "\n".join(problems)


@pytest.mark.parametrize("source", ['if role == "relay": pass', 'ROLES = ("ping", "pong")'])
def test_a_planted_role_is_found(source: str) -> None:
    assert list(role_problems("wattwire/run/x.py", source))


def test_prose_and_other_words_are_no_problem() -> None:
    source = '"""A relay and a publisher."""\nname = "source"\nword = "clients"\n'
    assert not list(role_problems("wattwire/run/x.py", source))
